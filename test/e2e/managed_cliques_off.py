"""The gate ComputeDomainCliques off: members stand in the domain's status, everything else is as before (AT-G8)."""

from commands import check, wait
from domains import create, daemons, gone, nodes_of, undisturbed, wait_daemons, wait_status
from harness import NAMESPACE, test
from installations import CLIQUES_OFF
from objects import uid_of, workload

INSTALLATION = CLIQUES_OFF
BOTH = ("node-1", "node-2")


def start(world, *nodes):
    """A domain with a workload on each node, all Ready; the domain with these nodes in its status."""
    create(world)
    world.apply(*(workload(f"domain-{n}", "domain-channel", node=n) for n in nodes))
    for node in nodes:
        world.wait_pod_ready(f"domain-{node}")

    def told():
        domain = world.get("computedomain", "domain")
        found = nodes_of(domain)
        return domain if set(found) == set(nodes) and all(n["status"] == "Ready" for n in found.values()) else None
    return wait(f"{', '.join(nodes)} Ready in status.nodes", told, 20)


@test
def members_stand_in_the_status_and_there_are_no_cliques(world):
    domain = start(world, *BOTH)
    check(domain["status"]["status"] == "Ready", str(domain["status"]))
    check({n["index"] for n in nodes_of(domain).values()} == {0, 1}, f"nodes: {nodes_of(domain)}")
    check(not world.list("computedomaincliques", NAMESPACE), "there are cliques")
    world.delete("pod", "domain-node-2", seconds=10)
    wait("node-2 out of the status", lambda: set(nodes_of(world.get("computedomain", "domain"))) == {"node-1"}, 20)
    wait_status(world, "domain", "Ready")


@test
def a_daemon_deleted_by_force_finds_its_place_again(world):
    domain = start(world, *BOTH)
    index = nodes_of(domain)["node-1"]["index"]
    old = daemons(world, domain)["node-1"]
    with undisturbed(world, "domain-node-1", "domain-node-2"):
        world.kill_pod(old)
        now = wait_daemons(world, domain, BOTH, 60, others_than=[uid_of(old)])
        wait("the new address", lambda: nodes_of(world.get("computedomain", "domain"))["node-1"]["ipAddress"]
             == now["node-1"]["status"]["podIP"], 20)
        domain = wait_status(world, "domain", "Ready", 20)
        check(nodes_of(domain)["node-1"]["index"] == index, "the node has another index")


@test
def a_domain_is_deleted_with_all_that_is_its(world):
    start(world, "node-1")
    world.delete("pods", "--all", seconds=20)
    gone(world)
