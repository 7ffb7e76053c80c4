"""What a domain says about itself: B1 to B4 of the test-suite, numbers of nodes, names, wrong claims."""

import json
import time

import host_neighbours
from commands import check, check_in, stays, wait
from domains import (CONTAINER, create, daemons, form, gone, node_label, nodes_of, status_of, wait_event, wait_reason,
                     wait_status)
from harness import HERE, test
from installations import DEFAULT
from objects import claim, claim_template, compute_domain, condition, uid_of, workload

INSTALLATION = DEFAULT
INJECTION = HERE / "manifests/channel-injection.yaml"
NAME = "imex-channel-injection"
LONG = "a" * 63 + "." + "b" * 63 + "." + "c" * 63 + "." + "d" * 61  # 253


@test
def B1_B2_B3_status_follows_the_workload(world):
    world.kubectl("apply", "-f", INJECTION)
    pod = world.wait_pod_ready(NAME, 100)
    check_in("channel0", world.kubectl("logs", NAME))
    domain = wait_status(world, NAME, "Ready", 4)
    node = pod["spec"]["nodeName"]
    check(set(nodes_of(domain)) == {node} and nodes_of(domain)[node]["status"] == "Ready", str(domain["status"]))
    with world.following_log(daemons(world, domain)[node], CONTAINER) as log:
        world.delete("pod", NAME, seconds=10)
        began = time.monotonic()
        wait("status.nodes absent", lambda: "nodes" not in world.get("computedomain", NAME)["status"], 3)
        nodes_gone = time.monotonic() - began
        wait_status(world, NAME, "NotReady", max(0.1, 5 - nodes_gone))
        wait("the daemon's last words", lambda: any(
            "Successfully removed daemon" in line and f"from ComputeDomain default/{NAME}" in line
            for line in log().splitlines()), 5)
    gone(world, NAME, seconds=10)
    return f"status.nodes empty {nodes_gone:.1f} s after the pod was gone"


@test
def B4_an_unknown_field_in_a_claim_is_named_in_the_event(world):
    host_neighbours.refuse_claim(world, {"domainID": "not-needed-for-test", "unexpectedField": "unexpectedValue"},
                                 'strict decoding error: unknown field "unexpectedField"')


@test
def a_claim_in_another_namespace_gets_no_channel_and_no_daemon(world):
    world.try_kubectl("create", "namespace", "other")
    domain = create(world, "here")
    host_neighbours.refuse_claim(world, {"domainID": uid_of(domain)}, 'claim namespace "other" differs', namespace="other")
    check(not daemons(world, domain), "a daemon was started for the foreign claim")
    check([node_label(world, n) for n in ("node-1", "node-2")] == [None, None], "a node carries the domain's label")


@test
def a_hostile_domainID_is_refused(world):
    host_neighbours.refuse_claim(world, {"domainID": "../../x"}, 'domainID "../../x" is not a valid single path component')


@test
def a_user_cannot_claim_a_daemon_device_for_a_domain(world):
    domain = create(world)
    stolen = claim("stolen", {"domainID": uid_of(domain)})
    stolen["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "compute-domain-daemon.nvidia.com"
    stolen["spec"]["devices"]["config"][0]["opaque"]["parameters"]["kind"] = "ComputeDomainDaemonConfig"
    world.apply(stolen, workload("thief", claim="stolen"))
    world.wait_prepare_event("thief", "namespace", 15)
    check(world.get("pod", "thief")["status"]["phase"] == "Pending", "the pod was started")


@test
def a_domain_for_more_nodes_than_there_are_says_what_is_missing_and_starts_workloads(world):
    create(world, nodes=3)
    wait_reason(world, "domain", "0 of 3")
    world.apply(workload("work", "domain-channel"))
    world.wait_pod_ready("work")
    domain = wait_reason(world, "domain", "1 of 3")
    check(domain["status"]["status"] == "NotReady", "the domain is Ready with 1 of 3 nodes")
    stays("NotReady", lambda: status_of(world, "domain") == "NotReady", 3)


@test
def numNodes_are_honoured_in_both_directions(world):
    domain = create(world, nodes=2)
    wait_status(world, "domain", "NotReady")
    world.apply(*(workload(f"work-{n}", "domain-channel", node=f"node-{n}") for n in (1, 2)))
    for n in (1, 2):
        world.wait_pod_ready(f"work-{n}")
    domain = wait_status(world, "domain", "Ready")
    check(set(nodes_of(domain)) == {"node-1", "node-2"}, f"nodes: {nodes_of(domain)}")
    world.delete("pod", "work-2", seconds=10)
    domain = wait_status(world, "domain", "NotReady")
    check(set(nodes_of(domain)) == {"node-1"}, f"nodes: {nodes_of(domain)}")


@test
def a_domain_without_nodes_is_Ready_once_its_objects_exist_and_never_flaps(world):
    create(world)
    stays("Ready", lambda: status_of(world, "domain") == "Ready", 3)
    check("nodes" not in world.get("computedomain", "domain")["status"], "there are nodes without a workload")


@test
def the_list_of_domains_shows_status_and_nodes(world):
    form(world, "node-1", "node-2")
    header, row = world.kubectl("get", "cd").splitlines()
    check(header.split() == ["NAME", "STATUS", "NODES", "AGE"] and row.split()[:3] == ["domain", "Ready", "2/2"],
          f"{header}\n{row}")


@test
def names_at_their_limit_work_and_longer_ones_are_refused(world):
    world.apply(compute_domain(LONG, LONG))
    world.wait_domain_ready(LONG)
    world.apply(workload("work", LONG))
    world.wait_pod_ready("work")
    check(world.has_channel("work"), "the container has no channel0")
    world.delete("pod", "work")
    gone(world, LONG)
    for name, template in ((LONG + "e", "channel"), ("domain", LONG + "e"), ("domain", ""), ("domain", "Upper"),
                           ("domain", "a\nmetadata: {}")):
        status, text = world.try_kubectl("create", "-f", "-", text=json.dumps(compute_domain(name, template)))
        check(status != 0 and ("Invalid value" in text or "invalid" in text), f"{name!r} with {template!r}: {text}")


@test
def a_template_name_taken_by_a_user_makes_nothing_and_heals(world):
    world.apply(claim_template("domain-channel"))
    before = uid_of(world.get("resourceclaimtemplate", "domain-channel"))
    world.apply(compute_domain("domain", "domain-channel"))
    found = host_neighbours.wait_reason(world, "domain", "TemplateNameTaken")
    check_in("ResourceClaimTemplate default/domain-channel exists", found["message"])
    wait_event(world, "domain", "TemplateNameTaken")
    domain = world.get("computedomain", "domain")
    check(status_of(world, "domain") == "NotReady", "the domain is Ready without its template")
    check(world.get("daemonset", f"computedomain-daemon-{uid_of(domain)}", "dra-driver-nvidia-gpu") is None,
          "there is a DaemonSet though the name is taken")
    check(uid_of(world.get("resourceclaimtemplate", "domain-channel")) == before, "the user's template was replaced")
    world.delete("resourceclaimtemplate", "domain-channel")
    wait_status(world, "domain", "Ready", 20)
    world.apply(workload("work", "domain-channel"))
    world.wait_pod_ready("work")


@test
def the_conditions_tell_the_way_of_a_domain(world):
    domain = create(world)
    check(condition(domain, "Ready").get("status") == "True", str(domain["status"]))
    for gpu in world.gpu:
        gpu.faults(**{"nvidia-imex": {"state": "INIT_GPU"}})
    world.apply(workload("work", "domain-channel", node="node-1"))
    domain = wait_reason(world, "domain", "node-1", "INIT_GPU", seconds=40)
    check(condition(domain, "Ready").get("status") == "False", str(domain["status"]))
    world.gpu_node("node-1").faults()
    world.wait_pod_ready("work")
    domain = wait_status(world, "domain", "Ready")
    check(condition(domain, "Ready").get("status") == "True", str(domain["status"]))
