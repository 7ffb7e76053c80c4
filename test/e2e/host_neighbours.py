"""What stands beside the guide's path: other placements, wrong claims, names that collide, deletions."""

import gpu_node
from commands import check, check_in, wait
from harness import test
from installations import HOST_MANAGED
from objects import claim, claim_template, compute_domain, condition, uid_of, workload

INSTALLATION = HOST_MANAGED


def wait_reason(world, domain, reason):
    """Returns the condition Ready of a ComputeDomain once it is False for that reason."""
    def seen():
        found = condition(world.get("computedomain", domain), "Ready")
        return found if (found.get("status"), found.get("reason")) == ("False", reason) else None
    return wait(f"ComputeDomain {domain} not Ready because of {reason}", seen, 10)


def refuse_claim(world, parameters, *parts, namespace="default"):
    """A claim with these parameters: its pod's event has the parts, and both can be deleted at once."""
    world.apply(claim("bad", parameters, namespace), workload("bad", claim="bad", namespace=namespace))
    event = world.wait_prepare_event("bad", parts[0], 10, namespace)
    for part in ("error preparing devices", *parts):
        check_in(part, event)
    node = world.get("pod", "bad", namespace)["spec"]["nodeName"]
    wait(f"a `Permanent error` with the text in the log of {node}'s plugin", lambda: any(
        "Permanent error" in line and "/bad:" in line and parts[0].replace('"', "") in line.replace("\\", "").replace('"', "")
        for line in world.plugin_log(node).splitlines()), 10)
    world.delete("pod", "bad", "-n", namespace, seconds=10)
    world.delete("resourceclaim", "bad", "-n", namespace, seconds=10)


@test
def a_ComputeDomain_is_listed_with_its_status_by_its_short_name(world):
    world.apply(compute_domain("listed", "listed-channel"))
    world.wait_domain_ready("listed")
    header, row = world.kubectl("get", "cd").splitlines()
    check(header.split() == ["NAME", "STATUS", "NODES", "AGE"] and row.split()[:2] == ["listed", "Ready"], header + row)


@test
def a_node_without_fabric_runs_the_workload_without_device(world):
    gpu = world.gpu_node("node-2")
    gpu.faults(fabric="none")
    world.restart_plugin("node-2")
    try:
        wait("node-2 without clique label", lambda: "nvidia.com/gpu.clique" not in world.get(
            "node", "node-2")["metadata"]["labels"], 30)
        gpu.service_stop()
        world.start_workload(node="node-2")
        check(not world.has_channel("work"), "the container has channel0")
        world.delete("pod", "work")
    finally:
        gpu.faults()
        world.restart_plugin("node-2")
        world.wait_for_slices()


@test
def a_claim_in_another_namespace_is_told_where_it_belongs(world):
    world.try_kubectl("create", "namespace", "other")
    world.apply(compute_domain("here", "here-channel"))
    domain = world.wait_domain_ready("here")
    refuse_claim(world, {"domainID": uid_of(domain)},
                 'claim namespace "other" differs from the namespace "default" of ComputeDomain here', namespace="other")


@test
def an_unknown_field_in_a_claim_is_named_in_the_event(world):
    refuse_claim(world, {"domainID": "not-needed-for-test", "unexpectedField": "unexpectedValue"},
                 'strict decoding error: unknown field "unexpectedField"')


@test
def a_hostile_domainID_is_refused(world):
    refuse_claim(world, {"domainID": "../../x"}, 'domainID "../../x" is not a valid single path component')


@test
def a_claim_for_a_ComputeDomain_that_does_not_exist_says_so(world):
    refuse_claim(world, {"domainID": "00000000-0000-4000-8000-000000000000"},
                 "ComputeDomain with UID 00000000-0000-4000-8000-000000000000 was not found")


@test
def a_template_name_taken_by_a_user_is_shown_and_heals(world):
    world.apply(claim_template("taken"))
    before = uid_of(world.get("resourceclaimtemplate", "taken"))
    world.apply(compute_domain("unlucky", "taken"))
    found = wait_reason(world, "unlucky", "TemplateNameTaken")
    check_in("ResourceClaimTemplate default/taken exists", found["message"])
    wait("the Event TemplateNameTaken", lambda: world.list(
        "events", "default", fields="reason=TemplateNameTaken,involvedObject.name=unlucky"), 10)
    check(uid_of(world.get("resourceclaimtemplate", "taken")) == before, "the user's template was replaced")
    world.delete("resourceclaimtemplate", "taken")
    world.wait_domain_ready("unlucky")
    check(world.get("resourceclaimtemplate", "taken") is not None, "there is no template")


@test
def of_two_domains_with_one_template_name_the_second_waits_for_the_first(world):
    world.apply(compute_domain("first", "shared"))
    world.wait_domain_ready("first")
    world.apply(compute_domain("second", "shared"))
    check_in("belongs to ComputeDomain default/first", wait_reason(world, "second", "TemplateNameTaken")["message"])
    world.wait_domain_ready("first")
    world.delete("computedomain", "first")
    world.wait_domain_ready("second")


@test
def a_template_that_a_user_deletes_comes_back(world):
    world.apply(compute_domain("robbed", "robbed-channel"))
    world.wait_domain_ready("robbed")
    old = uid_of(world.get("resourceclaimtemplate", "robbed-channel"))
    # kubectl would wait for the end of a name that is taken again at once.
    world.delete("resourceclaimtemplate", "robbed-channel", "--wait=false")
    wait("a new template", lambda: uid_of(world.get("resourceclaimtemplate", "robbed-channel") or {
        "metadata": {"uid": old}}) != old, 10)
    world.wait_domain_ready("robbed")


@test
def a_ComputeDomain_deleted_under_its_workload_leaves_the_workload_running(world):
    pod = world.start_workload()
    world.delete("computedomain", "domain", seconds=10)
    check(world.get("resourceclaimtemplate", "domain-channel") is None, "the template is left")
    check(world.has_channel("work"), "the workload has lost its channel")
    world.delete("pod", "work", seconds=20)
    left = list(world.cluster.node(pod["spec"]["nodeName"]).path("/run/cdi").glob("*"))
    check(not left, f"CDI files are left: {left}")


@test
def the_spec_of_a_ComputeDomain_cannot_be_changed_or_removed(world):
    world.apply(compute_domain("fixed", "fixed-channel"))
    for patch in ('[{"op":"replace","path":"/spec/numNodes","value":3}]', '[{"op":"remove","path":"/spec"}]'):
        status, text = world.try_kubectl("patch", "computedomain", "fixed", "--type=json", "-p", patch)
        check(status != 0, f"the API server took {patch}")
        check("spec is immutable" in text or "spec: Required value" in text, text)


@test
def the_plugin_labels_each_node_with_its_clique(world):
    label = f"{gpu_node.CLUSTER_UUID}.{gpu_node.CLIQUE}"
    for node in world.list("nodes"):
        check(node["metadata"]["labels"].get("nvidia.com/gpu.clique") == label,
              f"{node['metadata']['name']} has the labels {node['metadata']['labels']}")
