"""Both gates off (AT-G8): members by address, IMEX starts when all numNodes are there. The last test leaves nvdra broken."""

from commands import check, wait
from domains import create, daemons, nodes_of, stays_pending, wait_event, wait_reason, wait_status
from harness import CHART, NAMESPACE, RELEASE, test
from installations import BOTH_GATES_OFF
from managed_install import ended_with
from objects import uid_of, workload
from processes import container_path, main_process

INSTALLATION = BOTH_GATES_OFF
BOTH = ("node-1", "node-2")


@test
def G8_a_domain_with_the_number_of_its_nodes_forms_by_addresses(world):
    domain = create(world, nodes=2)
    world.apply(*(workload(f"domain-{n}", "domain-channel", node=n) for n in BOTH))
    for node in BOTH:
        world.wait_pod_ready(f"domain-{node}", 90)
    domain = wait_status(world, "domain", "Ready", 20)
    check(set(nodes_of(domain)) == set(BOTH), f"nodes: {nodes_of(domain)}")
    check(not world.list("computedomaincliques", NAMESPACE), "there are cliques")
    addresses = {n["ipAddress"] for n in nodes_of(domain).values()}
    for node, pod in daemons(world, domain).items():
        pid = main_process(pod["status"]["containerStatuses"][0]["containerID"])
        lines = set(container_path(pid, "/imexd/nodes.cfg").read_text().split())
        check(lines == addresses, f"{node}: nodes.cfg has {lines}, the members are {addresses}")


@test
def G8_a_domain_waits_for_all_its_nodes_and_says_so(world):
    create(world, nodes=2)
    world.apply(workload("domain-node-1", "domain-channel", node="node-1"))
    wait_reason(world, "domain", "of 2 daemons", "node-1", seconds=40)
    stays_pending(world, "domain-node-1", 3)
    world.apply(workload("domain-node-2", "domain-channel", node="node-2"))
    for node in BOTH:
        world.wait_pod_ready(f"domain-{node}", 120)
    wait_status(world, "domain", "Ready", 20)


@test
def G8_numNodes_0_can_never_start_here_and_says_so(world):
    world.apply({"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain", "metadata": {"name": "domain"},
                 "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "domain-channel"}}}})
    wait("the workload template", lambda: world.get("resourceclaimtemplate", "domain-channel"), 10)
    world.apply(workload("domain-node-1", "domain-channel", node="node-1"))
    wait_reason(world, "domain", "numNodes", seconds=20)
    wait_event(world, "domain", "numNodes", "IMEXDaemonsWithDNSNames", seconds=10)
    stays_pending(world, "domain-node-1", 3)


@test
def G8_a_daemon_that_comes_back_has_the_same_place(world):
    domain = create(world, nodes=1)
    world.apply(workload("domain-node-1", "domain-channel", node="node-1"))
    world.wait_pod_ready("domain-node-1", 90)
    old = daemons(world, domain)["node-1"]
    world.kill_pod(old)
    wait("another daemon Ready", lambda: uid_of(daemons(world, domain)["node-1"]) != uid_of(old), 60)
    wait_status(world, "domain", "Ready", 60)


@test
def G8_cliques_without_DNS_names_are_refused_by_both_programs(world):
    values = (*INSTALLATION.values, "featureGates.ComputeDomainCliques=true")
    status, text = world.try_helm("upgrade", RELEASE, CHART, values=values)
    try:
        if status:  # the chart may say it first
            check("IMEXDaemonsWithDNSNames" in text and "ComputeDomainCliques" in text, text)
            return "refused by helm"
        for component in ("controller", "kubelet-plugin"):
            wait(f"the {component} ended with an error that names both gates", lambda c=component: ended_with(
                world, c, "IMEXDaemonsWithDNSNames") and ended_with(world, c, "ComputeDomainCliques"), 40)
    finally:
        world.helm("upgrade", RELEASE, CHART)
    return "refused by the programs"
