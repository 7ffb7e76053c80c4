"""Nodes: a reboot, a pod's address that is used again, a driver root that changes, eighteen slots."""

from checkpoint import of_another_boot
from commands import Failed, check, stays, wait
from domains import (CLIQUE, LABEL, create, daemons, form, gone, imex_view, members, node_label, status_of, undisturbed,
                     wait_daemons, wait_event, wait_fabric, wait_members_ready, wait_reason, wait_status)
from harness import CHECKPOINT, NAMESPACE, test
from installations import DEFAULT
from objects import is_ready, name_of, uid_of, workload
from reboot import reboot

INSTALLATION = DEFAULT
BOTH = ("node-1", "node-2")
OTHER_BOOT = "beefbeef-beef-4eef-8eef-beefbeef0001"


def lose_power(world, node):
    """The node is rebooted; the checkpoint says that it was written in another boot."""
    machine = world.cluster.node(node)
    reboot(machine)
    file = machine.path(CHECKPOINT)
    file.write_text(of_another_boot(file.read_text(), OTHER_BOOT))
    check(not list(machine.path("/run").glob("cdi/*")), "there are CDI files after the reboot")
    world.cluster.wait_for_nodes()


@test
def a_node_that_was_rebooted_gets_its_daemon_and_workload_back(world):
    domain, _ = form(world, *BOTH)
    index = members(world, domain)["node-2"]["index"]
    with undisturbed(world, "domain-node-1"):
        lose_power(world, "node-2")
        world.wait_for_component("kubelet-plugin", 2, 90)
        wait("the workload started again", lambda: world.get("pod", "domain-node-2")["status"]["containerStatuses"][0][
            "restartCount"] == 1, 120)
        world.wait_pod_ready("domain-node-2", 120)
        check(world.has_channel("domain-node-2"), "the container has no channel after the reboot")
        wait_daemons(world, domain, BOTH, 60)
        wait_members_ready(world, domain, BOTH)
        check(members(world, domain)["node-2"]["index"] == index, "the node has another index")
        wait_status(world, "domain", "Ready", 20)
        wait_fabric(world, domain, BOTH)
    check(node_label(world, "node-2") == uid_of(domain), "the node has no label of the domain")


@test
def a_node_whose_workload_was_deleted_while_it_was_off_is_free_again(world):
    domain, _ = form(world, "node-2")
    machine = world.cluster.node("node-2")
    machine.kubelet.stop(patience=0)
    world.kill_pod(world.get("pod", "domain-node-2"))
    wait("the claim gone", lambda: not world.list("resourceclaims"), 20)
    lose_power(world, "node-2")
    world.wait_for_component("kubelet-plugin", 2, 90)
    wait("the node free", lambda: node_label(world, "node-2") is None, 60)
    wait("the daemon gone", lambda: not daemons(world, domain), 60)


@test
def the_address_of_a_dead_daemon_used_by_another_domain_disturbs_nobody(world):
    first, found = form(world, *BOTH, name="first")
    wait_fabric(world, first, BOTH)
    address = found["node-2"]["status"]["podIP"]
    with undisturbed(world, "first-node-1"):
        world.kill_pod(world.get("pod", "first-node-2"))
        world.kill_pod(found["node-2"])
        wait("node-2 free", lambda: node_label(world, "node-2") is None, 60)
        wait("its address free", lambda: not (leases(world) / address).exists(), 40)
        second = create(world, "second")
        # Addresses are given out in turn: the next one is the dead daemon's.
        (leases(world) / "last_reserved_ip.0").write_text(before(address))
        world.apply(workload("second-node-2", "second-channel", node="node-2"))
        world.wait_pod_ready("second-node-2")
        heir = wait_daemons(world, second, ["node-2"])["node-2"]
        check(heir["status"]["podIP"] == address, f"the address {address} was not used again: {heir['status']['podIP']}")
        stays("both domains Ready", lambda: {status_of(world, n) for n in ("first", "second")} == {"Ready"}, 4)
        check_alone(world, first, "node-1")
        check_alone(world, second, "node-2")
        # An nvidia-imex that ends tells its peers, who must not take it for one of theirs.
        world.delete("pod", "second-node-2", seconds=20)
        gone(world, "second")
        stays("the first domain Ready", lambda: status_of(world, "first") == "Ready", 4)
        check_alone(world, first, "node-1")


def leases(world):
    """The folder in which the network plugin notes used addresses, one file each."""
    return world.cluster.folder / "addresses/nvdra"


def before(address):
    """The address before this one."""
    head, _, last = address.rpartition(".")
    return f"{head}.{int(last) - 1}"


def check_alone(world, domain, node):
    """nvidia-imex of the node is READY and connected with nobody but itself."""
    index = str(members(world, domain)[node]["index"])
    own = imex_view(daemons(world, domain)[node])["nodes"][index]
    connected = [i for i, c in own["connections"].items() if c["status"] == "CONNECTED" and i != index]
    check(own["status"] == "READY" and not connected, f"{node}: {own['status']}, connected with members {connected}")


@test
def members_without_a_pod_make_room_for_a_node_that_comes(world):
    domain = create(world)
    name = f"{uid_of(domain)}.{CLIQUE}"
    entries = [{"nodeName": f"ghost-{i}", "ipAddress": f"198.18.1.{i + 1}", "cliqueID": CLIQUE, "index": i,
                "status": "Ready"} for i in range(18)]
    full = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomainClique",
                   "metadata": {"name": name, "namespace": NAMESPACE, "labels": {
                       LABEL: uid_of(domain),
                       f"{LABEL}.cliqueID": CLIQUE}}, "daemons": entries}
    world.apply(full)
    # Entries without a pod are removed, on proof; then there is room.
    world.apply(workload("work", "domain-channel", node="node-1"))
    world.wait_pod_ready("work", 90)
    wait("only the live member left", lambda: set(members(world, domain)) == {"node-1"}, 30)


@test
def a_node_that_changes_its_clique_is_told_and_serves_new_workloads_in_the_new_one(world):
    gpu = world.gpu_node("node-2")
    facts = gpu.read_facts()
    form(world, "node-2")
    try:
        gpu.write_facts({**facts, "fabric": {**facts["fabric"], "cliqueId": 9}})
        world.restart_plugin("node-2")
        wait("the change told", lambda: told_clique(world), 60)
        world.delete("pod", "domain-node-2", seconds=20)
        wait("the old daemon gone", lambda: not daemons(world, world.get("computedomain", "domain")), 30)
        world.apply(workload("next", "domain-channel", node="node-2"))
        world.wait_pod_ready("next")
        domain = wait_status(world, "domain", "Ready")
        nodes = {n["name"]: n["cliqueID"] for n in domain["status"]["nodes"]}
        check(nodes == {"node-2": CLIQUE.rpartition(".")[0] + ".9"}, f"nodes: {nodes}")
        world.delete("pod", "next", seconds=20)
    finally:
        gpu.write_facts(facts)
        world.restart_plugin("node-2")


def told_clique(world):
    """Whether an Event, a condition or the plugin's log names the new clique beside the old one."""
    texts = [e["message"] for e in world.list("events", None)]
    texts += str(world.get("computedomain", "domain").get("status", {})), world.plugin_log("node-2")
    if not any(".9" in t and "clique" in t.lower() for t in texts):
        raise Failed("nobody speaks of the clique .9")
    return True


@test
def a_domain_over_two_cliques_counts_and_shows_both(world):
    gpu = world.gpu_node("node-2")
    facts = gpu.read_facts()
    try:
        gpu.write_facts({**facts, "fabric": {**facts["fabric"], "cliqueId": 9}})
        world.restart_plugin("node-2")
        domain = create(world)
        world.apply(*(workload(f"domain-{n}", "domain-channel", node=n) for n in BOTH))
        for node in BOTH:
            world.wait_pod_ready(f"domain-{node}")
        wait_status(world, "domain", "Ready")
        cliques = [name_of(c) for c in world.list("computedomaincliques", NAMESPACE)]
        check(len(cliques) == 2 and all(c.startswith(uid_of(domain)) for c in cliques), f"cliques: {cliques}")
        wait_reason(world, "domain", "2 NVLink cliques")
        world.delete("pods", "--all", seconds=20)
    finally:
        gpu.write_facts(facts)
        world.restart_plugin("node-2")


@test
def a_daemon_whose_node_died_does_not_keep_the_domain_Ready(world):
    form(world, *BOTH)
    machine = world.cluster.node("node-2")
    machine.kubelet.stop(patience=0)
    try:
        wait_status(world, "domain", "NotReady", 90)
        wait_event(world, "domain", "node-2", seconds=10)
    finally:
        machine.kubelet.start()
        world.cluster.wait_for_nodes()
    wait_status(world, "domain", "Ready", 60)
    check(all(is_ready(p) for p in daemons(world, world.get("computedomain", "domain")).values()), "daemons not Ready")
