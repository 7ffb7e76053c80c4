"""Users who delete what is not theirs, or theirs in another order than the guide's."""

from commands import check, stays, wait
from domains import (LABEL, create, daemon_set, daemon_set_name, daemons, form, gone, members, node_label, undisturbed,
                     wait_daemons, wait_fabric, wait_members_ready, wait_status)
from harness import NAMESPACE, test
from installations import DEFAULT
from objects import compute_domain, name_of, uid_of, workload

INSTALLATION = DEFAULT
BOTH = ("node-1", "node-2")


@test
def a_DaemonSet_that_a_user_deletes_comes_back_and_workloads_run_on(world):
    domain, found = form(world, *BOTH)
    old = uid_of(daemon_set(world, domain))
    with undisturbed(world, "domain-node-1", "domain-node-2"):
        # kubectl would wait for the end of a name that is taken again at once.
        world.delete("daemonset", daemon_set_name(domain), "-n", NAMESPACE, "--wait=false")
        wait("a new DaemonSet", lambda: (now := daemon_set(world, domain)) and uid_of(now) != old, 20)
        wait_daemons(world, domain, BOTH, 60, others_than=[uid_of(p) for p in found.values()])
        wait_members_ready(world, domain, BOTH)
        wait_status(world, "domain", "Ready", 20)
        wait_fabric(world, domain, BOTH)


@test
def a_DaemonSet_deleted_before_any_workload_came_is_there_for_the_first(world):
    domain = create(world)
    old = uid_of(daemon_set(world, domain))
    world.delete("daemonset", daemon_set_name(domain), "-n", NAMESPACE, "--wait=false")
    wait("a new DaemonSet", lambda: (now := daemon_set(world, domain)) and uid_of(now) != old, 20)
    world.apply(workload("work", "domain-channel"))
    world.wait_pod_ready("work")


@test
def templates_that_a_user_deletes_come_back(world):
    domain, _ = form(world, "node-1")
    with undisturbed(world, "domain-node-1"):
        for kind, name, namespace in (("resourceclaimtemplate", "domain-channel", "default"),
                                      ("resourceclaimtemplate", daemon_set_name(domain), NAMESPACE)):
            old = uid_of(world.get(kind, name, namespace))
            world.delete(kind, name, "-n", namespace, "--wait=false")
            wait(f"a new {namespace}/{name}", lambda n=name, ns=namespace, o=old: (
                now := world.get("resourceclaimtemplate", n, ns)) and uid_of(now) != o, 10)
        world.apply(workload("domain-node-2", "domain-channel", node="node-2"))
        world.wait_pod_ready("domain-node-2")
        wait_fabric(world, domain, BOTH)


@test
def a_finalizer_and_labels_that_a_user_removes_come_back(world):
    domain = create(world)
    world.kubectl("patch", "computedomain", "domain", "--type=json", "-p", '[{"op":"remove","path":"/metadata/finalizers"}]')
    world.kubectl("label", "daemonset", daemon_set_name(domain), "-n", NAMESPACE, f"{LABEL}-")
    wait("the finalizer", lambda: LABEL in world.get("computedomain", "domain")["metadata"].get("finalizers", ()), 10)
    wait("the label", lambda: daemon_set(world, domain)["metadata"].get("labels", {}).get(LABEL) == uid_of(domain), 10)
    gone(world, seconds=10)


@test
def a_domain_deleted_under_its_workload_goes_and_the_workload_runs_on(world):
    domain, _ = form(world, *BOTH)
    with undisturbed(world, "domain-node-1", "domain-node-2"):
        gone(world, seconds=30)
        check(world.get("resourceclaimtemplate", "domain-channel") is None, "the template is left")
        wait("the domain's daemons gone", lambda: not daemons(world, domain), 40)
        wait("no node labelled", lambda: not any(node_label(world, n) for n in BOTH), 10)
        stays("no daemon comes back", lambda: not daemons(world, domain), 2)
    for node in BOTH:
        world.delete("pod", f"domain-{node}", seconds=20)


@test
def a_domain_deleted_while_its_workload_waits_lets_the_workload_be_deleted(world):
    for gpu in world.gpu:
        gpu.faults(**{"nvidia-imex": {"state": "INIT_GPU"}})
    create(world)
    world.apply(workload("work", "domain-channel"))
    world.wait_prepare_event("work")
    gone(world, seconds=30)
    world.delete("pod", "work", seconds=20)


@test
def a_new_domain_of_the_same_name_is_another_domain(world):
    first, _ = form(world, "node-1")
    world.kubectl("delete", "computedomain", "domain", "--wait=false")
    world.delete("pod", "domain-node-1", seconds=20)
    wait("the first domain gone", lambda: world.get("computedomain", "domain") is None, 30)
    second, _ = form(world, "node-1")
    check(uid_of(second) != uid_of(first), "it is the same domain")
    check(node_label(world, "node-1") == uid_of(second), "the node belongs to the old domain")
    check(not daemons(world, first), "daemons of the old domain run")


@test
def a_domain_deleted_at_once_after_its_creation_leaves_nothing(world):
    for round_ in range(5):
        world.apply(compute_domain(f"brief-{round_}", "brief-channel"))
        world.kubectl("delete", "computedomain", f"brief-{round_}", "--wait=false")
    wait("all gone", lambda: not world.list("computedomains") and not world.list("resourceclaimtemplates"), 20)


@test
def a_daemon_pod_deleted_by_force_is_replaced_in_its_slot(world):
    domain, found = form(world, *BOTH)
    before = {node: m["index"] for node, m in members(world, domain).items()}
    with undisturbed(world, "domain-node-1", "domain-node-2"):
        world.kill_pod(found["node-1"])
        now = wait_daemons(world, domain, BOTH, 60, others_than=[uid_of(found["node-1"])])
        entries = wait_members_ready(world, domain, BOTH)
        check({node: m["index"] for node, m in entries.items()} == before, f"indices before {before}, now {entries}")
        wait("the new address", lambda: members(world, domain)["node-1"]["ipAddress"] == now["node-1"]["status"]["podIP"], 10)
        wait_status(world, "domain", "Ready", 10)
        wait_fabric(world, domain, BOTH)


@test
def a_daemon_pod_deleted_by_the_rules_is_replaced_too(world):
    domain, found = form(world, "node-1")
    with undisturbed(world, "domain-node-1"):
        world.delete("pod", name_of(found["node-1"]), "-n", NAMESPACE, seconds=20)
        wait_daemons(world, domain, ["node-1"], 60, others_than=[uid_of(found["node-1"])])
        wait_members_ready(world, domain, ["node-1"])
        wait_status(world, "domain", "Ready", 10)


@test
def a_workload_deleted_by_force_gives_its_node_back(world):
    domain, _ = form(world, "node-1")
    world.kill_pod(world.get("pod", "domain-node-1"))
    wait("the node free", lambda: node_label(world, "node-1") is None, 30)
    wait("the daemon gone", lambda: not daemons(world, domain), 30)
    world.apply(workload("next", "domain-channel", node="node-1"))
    world.wait_pod_ready("next")
