"""Several nodes in a domain, several domains in a cluster, and objects of others that look like ours."""

import json
import re

from commands import check, check_in, stays, wait
from domains import (CLIQUE, CONTAINER, LABEL, clique, create, daemon_set_name, daemons, form, gone, members, node_label,
                     nodes_of, status_of, undisturbed, wait_daemons, wait_event, wait_fabric, wait_members_ready,
                     wait_unavailable)
from harness import NAMESPACE, test
from installations import DEFAULT
from objects import compute_domain, name_of, uid_of, workload
from processes import container_path, main_process

INSTALLATION = DEFAULT
BOTH = ("node-1", "node-2")


def hosts_of(pod):
    """Lines of a daemon's /etc/hosts about members: name to address."""
    pid = main_process(pod["status"]["containerStatuses"][0]["containerID"])
    lines = container_path(pid, "/etc/hosts").read_text().splitlines()
    return {name: address for address, name in (line.split()[:2] for line in lines if "compute-domain-daemon-" in line)}


@test
def two_nodes_form_one_domain_and_their_IMEX_daemons_are_connected(world):
    domain, found = form(world, *BOTH)
    entries = members(world, domain)
    check({m["index"] for m in entries.values()} == {0, 1}, f"indices: {entries}")
    for node, entry in entries.items():
        check((entry["cliqueID"], entry["ipAddress"]) == (CLIQUE, found[node]["status"]["podIP"]), str(entry))
        told = nodes_of(domain)[node]
        check((told["index"], told["cliqueID"], told["status"]) == (entry["index"], CLIQUE, "Ready"), str(told))
    labels = clique(world, domain)["metadata"]["labels"]
    check((labels[LABEL], labels[f"{LABEL}.cliqueID"]) == (uid_of(domain), CLIQUE), str(labels))
    wait_fabric(world, domain, BOTH)


@test
def members_have_names_of_their_domain_and_free_slots_lead_nowhere(world):
    domain, found = form(world, *BOTH)
    entries = members(world, domain)
    wanted = {entry["index"]: entry["ipAddress"] for entry in entries.values()}
    for node in BOTH:
        hosts = wait(f"18 names on {node}", lambda: (h := hosts_of(found[node])) and len(h) == 18 and h, 10)
        hashes = set()
        for name, address in hosts.items():
            parts = re.fullmatch(r"compute-domain-daemon-([456789bcdf]{1,10})-(\d{4})", name)
            check(parts is not None, f"the name {name}")
            hashes.add(parts[1])
            check(address == wanted.get(int(parts[2]), "127.0.0.2"), f"{node}: {name} is {address}; members: {entries}")
        check(len(hashes) == 1, f"several hashes in one domain: {hashes}")


@test
def a_node_that_joins_later_changes_nothing_for_the_first(world):
    domain, found = form(world, "node-1")
    with undisturbed(world, "domain-node-1"):
        first = found["node-1"]["status"]["containerStatuses"][0]["containerID"]
        index = members(world, domain)["node-1"]["index"]
        world.apply(workload("domain-node-2", "domain-channel", node="node-2"))
        world.wait_pod_ready("domain-node-2")
        wait_daemons(world, domain, BOTH)
        wait_members_ready(world, domain, BOTH)
        wait_fabric(world, domain, BOTH)
        check(members(world, domain)["node-1"]["index"] == index, "the first node's index has changed")
        now = daemons(world, domain)["node-1"]["status"]["containerStatuses"][0]["containerID"]
        check(now == first, "the first node's daemon was restarted")


@test
def a_node_that_leaves_is_forgotten_and_its_slot_used_again(world):
    domain, _ = form(world, *BOTH)
    index = members(world, domain)["node-2"]["index"]
    with undisturbed(world, "domain-node-1"):
        world.delete("pod", "domain-node-2", seconds=10)
        wait("node-2 out of the clique", lambda: set(members(world, domain)) == {"node-1"}, 10)
        wait("node-2 out of status.nodes", lambda: set(nodes_of(world.get("computedomain", "domain"))) == {"node-1"}, 10)
        wait("the label off node-2", lambda: node_label(world, "node-2") is None, 10)
        wait_unavailable(world, domain, index, of="node-1")
        world.apply(workload("domain-node-2", "domain-channel", node="node-2"))
        world.wait_pod_ready("domain-node-2")
        check(members(world, domain)["node-2"]["index"] == index, "the free slot was not used")
        wait_fabric(world, domain, BOTH)


@test
def two_domains_run_side_by_side_on_disjoint_nodes(world):
    first, _ = form(world, "node-1", name="first")
    second, _ = form(world, "node-2", name="second")
    check((node_label(world, "node-1"), node_label(world, "node-2")) == (uid_of(first), uid_of(second)), "wrong labels")
    check(set(members(world, first)) == {"node-1"} and set(members(world, second)) == {"node-2"}, "members are mixed")
    with undisturbed(world, "second-node-2"):
        world.delete("pod", "first-node-1", seconds=10)
        gone(world, "first")
        stays("the second domain Ready", lambda: status_of(world, "second") == "Ready", 2)


@test
def a_second_domain_waits_for_the_node_and_gets_it(world):
    first, _ = form(world, "node-1", name="first")
    second = create(world, "second")
    world.apply(workload("second-node-1", "second-channel", node="node-1"))
    check_in("cannot allocate all claims", wait_event(world, "second-node-1", "FailedScheduling"))
    check(not daemons(world, second), "a daemon of the second domain runs")
    world.delete("pod", "first-node-1", seconds=10)
    world.wait_pod_ready("second-node-1")
    check(node_label(world, "node-1") == uid_of(second), "the node belongs to another domain")
    check(set(members(world, second)) == {"node-1"}, f"members: {members(world, second)}")
    wait("the first domain's daemon gone", lambda: not daemons(world, first), 10)


@test
def a_domain_of_another_namespace_is_one_of_its_own(world):
    world.try_kubectl("create", "namespace", "other")
    mine, _ = form(world, "node-1")
    world.apply(compute_domain("domain", "domain-channel", "other"))
    world.wait_domain_ready("domain", namespace="other")
    world.apply(workload("work", "domain-channel", node="node-2", namespace="other"))
    world.wait_pod_ready("work", namespace="other")
    other = world.get("computedomain", "domain", "other")
    check(uid_of(other) != uid_of(mine) and set(members(world, other)) == {"node-2"}, "the domains are mixed")
    check(world.has_channel("work", "other"), "no channel in the other namespace")


@test
def a_DaemonSet_of_somebody_else_with_our_label_is_left_alone(world):
    domain = create(world)
    foreign = foreign_daemon_set("foreign", {LABEL: uid_of(domain)})
    try:
        world.apply(foreign)
        before = uid_of(world.get("daemonset", "foreign", NAMESPACE))
        world.apply(workload("work", "domain-channel"))
        world.wait_pod_ready("work")
        check(world.get("daemonset", daemon_set_name(domain), NAMESPACE) is not None, "the domain has no DaemonSet of its own")
        world.delete("pod", "work")
        gone(world)
        now = world.get("daemonset", "foreign", NAMESPACE)
        check(now is not None and uid_of(now) == before and "deletionTimestamp" not in now["metadata"],
              "the foreign DaemonSet was deleted")
    finally:
        world.try_kubectl("delete", "daemonset", "foreign", "-n", NAMESPACE)


def foreign_daemon_set(name, labels):
    """A DaemonSet of a user that wants no node."""
    pod = {"metadata": {"labels": {"app": name}}, "spec": {
        "nodeSelector": {"nvdra-test": "none"}, "containers": [{"name": "app", "image": "ubuntu:22.04"}]}}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
            "spec": {"selector": {"matchLabels": {"app": name}}, "template": pod}}


@test
def a_daemon_is_shaped_as_documented(world):
    domain, found = form(world, "node-1")
    pod = found["node-1"]
    spec = pod["spec"]
    check(spec["serviceAccountName"] == "compute-domain-daemon-service-account", spec["serviceAccountName"])
    check(spec["dnsPolicy"] == "ClusterFirst" and {"name": "ndots", "value": "1"} in spec["dnsConfig"]["options"], str(spec))
    check(spec["priorityClassName"] == "system-node-critical", str(spec.get("priorityClassName")))
    check(name_of(pod).startswith(daemon_set_name(domain)) and not spec.get("hostNetwork"), name_of(pod))
    check(pod["metadata"]["labels"].get(f"{LABEL}.cliqueID") == CLIQUE, str(pod["metadata"]["labels"]))
    check(spec["containers"][0]["name"] == CONTAINER, spec["containers"][0]["name"])


@test
def a_domain_of_a_framework_has_a_name_of_the_servers_and_goes_with_its_owner(world):
    world.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "replica", "namespace": "default"}})
    owner = world.get("configmap", "replica")
    wanted = compute_domain("unused", "replica-channel")
    wanted["metadata"] = {"generateName": "replica-", "namespace": "default", "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "replica", "uid": uid_of(owner), "blockOwnerDeletion": True}]}
    created = world.kubectl("create", "-f", "-", "-o", "name", text=json.dumps(wanted))
    name = created.strip().partition("/")[2]
    check(re.fullmatch("replica-[a-z0-9]{5}", name) is not None, name)
    world.apply(workload("work", "replica-channel", node="node-1"))
    world.wait_pod_ready("work")
    domain = wait("the domain Ready with its node", lambda: set(nodes_of(world.get("computedomain", name))) == {"node-1"}
                  and status_of(world, name) == "Ready" and world.get("computedomain", name), 20)
    check(domain["metadata"]["ownerReferences"] == wanted["metadata"]["ownerReferences"], str(domain["metadata"]))
    world.delete("pod", "work", seconds=10)
    world.delete("configmap", "replica")
    wait("no domain, template, DaemonSet or clique", lambda: not any((
        world.get("computedomain", name), world.get("resourceclaimtemplate", "replica-channel"),
        world.get("daemonset", daemon_set_name(domain), NAMESPACE), clique(world, domain))), 40)
