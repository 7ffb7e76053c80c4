"""The driver moves to another namespace while a domain runs: ADDITIONAL_NAMESPACES names the earlier one."""

import time

from commands import Failed, check, wait
from domains import LABEL, daemon_set, daemon_set_name, node_label, nodes_of, undisturbed, wait_status
from harness import CHART, RELEASE, test
from installations import DEFAULT, MOVED
from objects import compute_domain, is_ready, uid_of, workload

INSTALLATION = DEFAULT
EARLIER = "earlier"
NODE = "node-1"


@test
def domains_of_an_earlier_namespace_live_on_and_go_when_they_are_deleted(world):
    world.uninstall()
    try:
        domain = form_earlier(world)
        with undisturbed(world, "work"):
            world.install(MOVED)
            began = time.monotonic()
            world.apply(compute_domain("next", "next-channel"), workload("next", "next-channel", node="node-2"))
            world.wait_pod_ready("next")
            seen = wait_status(world, "domain", "Ready", 20)
            check(set(nodes_of(seen)) == {NODE}, f"nodes: {nodes_of(seen)}")
            check(is_ready(daemon_of(world, domain)), "the daemon is not Ready")
            check(daemon_set(world, domain) is None, "the domain has a second DaemonSet")
            seconds = time.monotonic() - began
        check(world.get("daemonset", daemon_set_name(world.get("computedomain", "next")), EARLIER) is None,
              "a new domain has its DaemonSet in the earlier namespace")
        world.delete("pod", "work", seconds=20)
        wait("the node free", lambda: node_label(world, NODE) is None, 20)
        world.delete("computedomain", "domain", seconds=40)
        wait("nothing of the domain in the earlier namespace", lambda: nothing_left(world), 40)
    finally:
        world.cluster.helm("uninstall", RELEASE, "--namespace", EARLIER, "--ignore-not-found", capture_output=True)
        world.try_kubectl("delete", "namespace", EARLIER, "--wait=false")
    return f"the new driver showed both domains after {seconds:.1f} s"


def form_earlier(world):
    """A domain of a driver in the earlier namespace, which is uninstalled; the domain."""
    settings = [part for value in DEFAULT.values for part in ("--set", value)]
    where = "--namespace", EARLIER
    done = world.cluster.helm("install", RELEASE, CHART, *where, "--create-namespace", "--wait", "--timeout=90s", *settings,
                              capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    world.installation = DEFAULT  # how nodes get their labels
    world.wait_for_slices()
    world.installation = None
    world.apply(compute_domain("domain", "domain-channel"), workload("work", "domain-channel", node=NODE))
    world.wait_pod_ready("work")
    domain = world.wait_domain_ready("domain")
    wait("the daemon Ready", lambda: is_ready(daemon_of(world, domain)), 10)
    done = world.cluster.helm("uninstall", RELEASE, *where, "--wait", "--timeout=60s", capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    return domain


def daemon_of(world, domain):
    """The domain's daemon in the earlier namespace."""
    (pod,) = world.list("pods", EARLIER, f"{LABEL}={uid_of(domain)}")
    return pod


def nothing_left(world):
    """Whether nothing of a domain is in the earlier namespace."""
    left = [kind for kind in ("daemonsets", "pods", "computedomaincliques", "resourceclaimtemplates", "resourceclaims")
            if world.list(kind, EARLIER, "" if kind == "resourceclaims" else LABEL)]
    if left:
        raise Failed(f"there are {left}")
    return True
