"""nvdra, the kubelet, the container runtime or the API server go away and come back, at each stage of a domain's life.

Stages: the domain is just made; its workload waits for IMEX; the workload runs; the domain is being deleted.
"""

import json
import time

from commands import check, stays, wait
from domains import (CLIQUE, create, daemons, form, members, status_of, undisturbed, wait_daemon_running, wait_daemons, wait_members_ready,
                     wait_status)
from harness import NAMESPACE, test
from installations import DEFAULT
from objects import compute_domain, name_of, restarts, uid_of, workload

INSTALLATION = DEFAULT
NODE = "node-1"
STUCK = {"nvidia-imex": {"state": "INIT_GPU"}}


def kill_controller(world):
    """The controller's pod, by force; waits for its successor."""
    old = world.pods_of("controller")
    world.kill_pod(old[0])
    world.wait_for_component("controller", 1, others_than=[uid_of(p) for p in old])


def restart_containerd(world):
    """containerd on NODE, killed and started; the kubelet finds it again."""
    node = world.cluster.node(NODE)
    node.containerd.stop(patience=0)
    node.containerd.start()
    node.wait_for_containerd()
    world.cluster.wait_for_nodes()


def live_through(world, restart):
    """All stages, with a restart in each."""
    world.apply(compute_domain("domain", "domain-channel"))
    restart(world)
    domain = world.wait_domain_ready("domain", 40)

    world.gpu_node(NODE).faults(**STUCK)
    world.apply(workload("work", "domain-channel", node=NODE))
    wait_daemon_running(world, domain, NODE, 60)
    restart(world)
    check(world.get("pod", "work")["status"]["phase"] == "Pending", "the workload was started without IMEX")
    world.gpu_node(NODE).faults()
    # A kubelet whose call was cut off asks again only with the pod's next regular sync.
    world.wait_pod_ready("work", 120)
    wait_status(world, "domain", "Ready")

    with undisturbed(world, "work"):
        daemon = uid_of(daemons(world, domain)[NODE])
        restart(world)
        wait_status(world, "domain", "Ready", 20)
        check(uid_of(wait_daemons(world, domain, [NODE])[NODE]) == daemon, "the daemon was replaced")

    world.kubectl("delete", "pod", "work", "--wait=false")
    world.kubectl("delete", "computedomain", "domain", "--wait=false")
    restart(world)
    wait("pod and domain gone", lambda: not world.get("pod", "work") and not world.get("computedomain", "domain"), 90)


@test
def the_controller_may_be_killed_at_any_stage(world):
    live_through(world, kill_controller)


@test
def the_plugin_may_be_killed_at_any_stage(world):
    live_through(world, lambda w: w.restart_plugin(NODE))


@test
def the_kubelet_may_be_restarted_at_any_stage(world):
    live_through(world, lambda w: w.cluster.restart_kubelet(NODE))


@test
def containerd_may_be_restarted_at_any_stage(world):
    live_through(world, restart_containerd)


@test
def a_workload_deleted_while_no_plugin_runs_gives_its_node_back_later(world):
    domain, _ = form(world, NODE)
    daemon_set = "daemonset/nvdra-kubelet-plugin"
    world.kubectl("patch", "-n", NAMESPACE, daemon_set, "--type=merge", "-p",
                  '{"spec":{"template":{"spec":{"nodeSelector":{"nvdra-test":"none"}}}}}')
    try:
        wait("no plugin", lambda: not world.list("pods", NAMESPACE, "nvdra-component=kubelet-plugin"), 40)
        world.kubectl("delete", "pod", f"domain-{NODE}", "--wait=false")
    finally:
        world.kubectl("patch", "-n", NAMESPACE, daemon_set, "--type=json", "-p",
                      '[{"op":"remove","path":"/spec/template/spec/nodeSelector"}]')
        world.wait_for_component("kubelet-plugin", 2)
    wait("the pod gone", lambda: world.get("pod", f"domain-{NODE}") is None, 60)
    wait("the daemon gone", lambda: not daemons(world, domain), 30)


@test
def an_API_server_that_is_away_for_30_s_costs_no_restart_and_no_workload(world):
    running, _ = form(world, "node-1", name="running")
    waiting = create(world, "waiting")
    world.gpu_node("node-2").faults(**STUCK)
    world.apply(workload("work", "waiting-channel", node="node-2"))
    wait_daemon_running(world, waiting, "node-2")
    pods = [p for p in world.list("pods", NAMESPACE)]
    counts = {name_of(p): restarts(p) for p in pods}
    with undisturbed(world, "running-node-1"):
        server = world.cluster.process("kube-apiserver")
        server.stop()
        time.sleep(15)  # the fault itself
        world.gpu_node("node-2").faults()  # IMEX gets READY while nobody can be told
        time.sleep(15)
        server.start()
        wait("the API server", lambda: world.try_kubectl("get", "--raw", "/readyz")[0] == 0, 60)
        began = time.monotonic()
        for name in ("kube-controller-manager", "kube-scheduler"):  # they would come back only 30 s later
            world.cluster.process(name).stop()
            world.cluster.process(name).start()
        world.wait_pod_ready("work", 120)
        seconds = time.monotonic() - began
        world.cluster.wait_for_nodes()
        for name in ("running", "waiting"):
            wait_status(world, name, "Ready", 30)
        wait_members_ready(world, running, ["node-1"])
        third = create(world, "after")
        check(status_of(world, "after") == "Ready" and uid_of(third), "no new domain")
    now = {name_of(p): restarts(p) for p in world.list("pods", NAMESPACE)}
    check(now == counts, f"restarts before {counts}, now {now}")
    return f"the waiting workload was Ready {seconds:.1f} s after the API server was back"


@test
def the_status_is_right_again_after_somebody_else_wrote_it(world):
    form(world, NODE)
    world.kubectl("patch", "computedomain", "domain", "--subresource=status", "--type=merge", "-p",
                  '{"status":{"status":"NotReady","nodes":null}}')
    domain = wait_status(world, "domain", "Ready", 10)
    check([n["name"] for n in domain["status"].get("nodes", ())] == [NODE], f"nodes: {domain['status']}")
    stays("Ready", lambda: status_of(world, "domain") == "Ready", 2)


@test
def a_clique_edited_or_deleted_by_hand_is_right_again(world):
    domain, _ = form(world, "node-1", "node-2")
    name = f"{uid_of(domain)}.{CLIQUE}"
    with undisturbed(world, "domain-node-1", "domain-node-2"):
        world.kubectl("delete", "computedomainclique", name, "-n", NAMESPACE)
        wait_members_ready(world, domain, ("node-1", "node-2"), 30)
        wait_status(world, "domain", "Ready", 20)
        entries = members(world, domain)
        lonely = [e for n, e in entries.items() if n == "node-1"]
        world.kubectl("patch", "computedomainclique", name, "-n", NAMESPACE, "--type=merge", "-p",
                      '{"daemons":%s}' % json.dumps(lonely))
        wait_members_ready(world, domain, ("node-1", "node-2"), 30)
        wait_status(world, "domain", "Ready", 20)
