"""Things that break while nvdra works, and what is expected of it then."""

import time

import gpu_node
from commands import check, check_in, wait
from harness import CHART, CHECKPOINT, NAMESPACE, RELEASE, test
from installations import HOST_MANAGED
from objects import claim, compute_domain, condition, uid_of, workload

INSTALLATION = HOST_MANAGED
SETTLE = 15  # seconds: a call that is held ends within a few; the kubelet would ask again only after 20


def container_of(world, pod="work"):
    """What a restart of the pod's container would change."""
    status = world.get("pod", pod)["status"]["containerStatuses"][0]
    return status["containerID"], status["restartCount"]


def cdi_files(world, node):
    """The CDI files on a node."""
    return list(world.cluster.node(node).path("/run/cdi").glob("*.*"))


def start_waiting(world, gpu, *parts):
    """A workload on a node that is not ready: its pod's event has the parts. The pod."""
    world.apply(compute_domain("domain", "domain-channel"))
    world.wait_domain_ready("domain")
    world.apply(workload("work", "domain-channel", node=gpu.node.name))
    event = world.wait_prepare_event("work", parts[0], 30)
    for part in ("host nvidia-imex daemon readiness check failed", *parts):
        check_in(part, event)
    return world.get("pod", "work")


def check_recovery(world, pod):
    """The same pod becomes Ready and has its channel."""
    now = world.wait_pod_ready("work", SETTLE)
    check(uid_of(now) == uid_of(pod), "the pod was created anew")
    check(world.has_channel("work"), "the container has no channel0")


@test
def a_service_that_hangs_is_told_and_the_pod_starts_when_it_answers(world):
    gpu = world.gpu[0]
    gpu.service_hang()
    pod = start_waiting(world, gpu, "gave no answer within", gpu.socket, "check `systemctl status nvidia-imex`")
    gpu.service_resume()
    check_recovery(world, pod)


@test
def a_service_that_is_not_ready_is_told_with_its_state(world):
    first, second = world.gpu
    first.faults(**{"nvidia-imex-ctl": {"stdout": "INITIALIZING\n"}})
    pod = start_waiting(world, first, 'is not ready, it answered "INITIALIZING"', first.socket)
    first.faults()
    check_recovery(world, pod)
    second.faults(**{"nvidia-imex-ctl": {"stdout": "NOT_READY\n"}})
    world.apply(workload("other", "domain-channel", node=second.node.name))
    world.wait_prepare_event("other", 'it answered "NOT_READY"')


@test
def a_missing_nvidia_imex_ctl_is_told_and_found_when_it_is_there(world):
    gpu = world.gpu[1]
    gpu.remove_tool("nvidia-imex-ctl")
    pod = start_waiting(world, gpu, "cannot be asked", "nvidia-imex-ctl", gpu_node.DRIVER_ROOT,
                        "check that nvidia-imex is installed on this node")
    gpu.restore_tool("nvidia-imex-ctl")
    check_recovery(world, pod)


@test
def a_service_that_crashed_and_left_its_socket_is_told(world):
    gpu = world.gpu[0]
    gpu.service_crash()
    start_waiting(world, gpu, "nobody listens on the nvidia-imex command socket", gpu.socket)


@test
def a_pod_that_waits_for_its_claim_can_be_deleted_at_once(world):
    gpu = world.gpu[1]
    gpu.service_stop()
    start_waiting(world, gpu, "does not exist")
    # The kubelet does not cancel the call that the plugin holds; the plugin has to notice.
    world.delete("pod", "work", seconds=10)
    check(world.held_claims(gpu.node.name) == 0, "the plugin still holds the claim")


@test
def a_plugin_killed_under_a_workload_changes_nothing_for_it(world):
    node = world.start_workload()["spec"]["nodeName"]
    before = container_of(world)
    world.restart_plugin(node)
    check(container_of(world) == before and world.has_channel("work"), "the workload was disturbed")
    check(len(cdi_files(world, node)) == 1, f"CDI files: {cdi_files(world, node)}")
    world.delete("pod", "work", seconds=20)
    wait("the claim's CDI file gone", lambda: not cdi_files(world, node), 10)


@test
def a_workload_can_be_deleted_while_no_plugin_runs_and_is_unprepared_later(world):
    node = world.start_workload(node="node-1")["spec"]["nodeName"]
    daemons = f"daemonset/{RELEASE}-kubelet-plugin"
    world.kubectl("patch", "-n", NAMESPACE, daemons, "--type=merge", "-p",
                  '{"spec":{"template":{"spec":{"nodeSelector":{"nvdra-test":"none"}}}}}')
    try:
        wait("no plugin", lambda: not world.list("pods", NAMESPACE, "nvdra-component=kubelet-plugin"), 40)
        world.kubectl("delete", "pod", "work", "--wait=false")
    finally:
        world.kubectl("patch", "-n", NAMESPACE, daemons, "--type=json", "-p",
                      '[{"op":"remove","path":"/spec/template/spec/nodeSelector"}]')
        world.wait_for_component("kubelet-plugin", 2)
    wait("the pod gone", lambda: world.get("pod", "work") is None, 60)
    wait("the claim's CDI file gone", lambda: not cdi_files(world, node), 10)


@test
def a_kubelet_restart_under_a_workload_changes_nothing_for_it(world):
    node = world.start_workload()["spec"]["nodeName"]
    before = container_of(world)
    world.cluster.restart_kubelet(node)
    check(container_of(world) == before and world.has_channel("work"), "the workload was disturbed")
    world.delete("pod", "work", seconds=30)
    world.apply(workload("next", "domain-channel", node=node))
    world.wait_pod_ready("next", SETTLE)
    check(world.has_channel("next"), "the next workload has no channel0")


@test
def a_controller_killed_comes_back_and_does_what_was_asked_meanwhile(world):
    world.apply(compute_domain("before", "before-channel"))
    world.wait_domain_ready("before")
    old = world.pods_of("controller")
    world.delete("pod", "-n", NAMESPACE, old[0]["metadata"]["name"], "--force", "--grace-period=0")
    world.apply(compute_domain("meanwhile", "meanwhile-channel"))
    world.wait_for_component("controller", 1, others_than=[uid_of(p) for p in old])
    world.wait_domain_ready("meanwhile")
    world.wait_domain_ready("before")


@test
def an_API_server_that_is_away_for_20_s_costs_no_restart(world):
    world.start_workload()
    before = container_of(world)
    server = world.cluster.process("kube-apiserver")
    server.stop()
    time.sleep(20)  # the fault itself
    server.start()
    wait("the API server", lambda: world.try_kubectl("get", "--raw", "/readyz")[0] == 0, 60)
    began = time.monotonic()
    for name in ("kube-controller-manager", "kube-scheduler"):  # they would come back only 30 s later
        world.cluster.process(name).stop()
        world.cluster.process(name).start()
    world.apply(compute_domain("after", "after-channel"))
    world.wait_domain_ready("after", 40)
    seconds = time.monotonic() - began
    world.cluster.wait_for_nodes()
    node = world.get("pod", "work")["spec"]["nodeName"]
    other = next(g.node.name for g in world.gpu if g.node.name != node)
    world.apply(workload("after", "after-channel", node=other))
    world.wait_pod_ready("after", 90)
    check(container_of(world) == before, "the workload was disturbed")
    for component in ("controller", "kubelet-plugin"):
        for pod in world.pods_of(component):
            count = pod["status"]["containerStatuses"][0]["restartCount"]
            check(count == 0, f"{pod['metadata']['name']} was restarted {count} times")
    return f"a new ComputeDomain was Ready {seconds:.1f} s after the API server was back"


@test
def a_pod_starts_again_after_the_CDI_folder_was_emptied(world):
    world.apply(compute_domain("domain", "domain-channel"))
    domain = world.wait_domain_ready("domain")
    world.apply(claim("kept", {"domainID": uid_of(domain)}), workload("work", claim="kept"))
    node = world.wait_pod_ready("work")["spec"]["nodeName"]
    check(cdi_files(world, node), "there is no CDI file")
    for file in cdi_files(world, node):
        file.unlink()
    world.delete("pod", "work", seconds=20)
    world.apply(workload("work", claim="kept"))
    world.wait_pod_ready("work", SETTLE)
    check(world.has_channel("work"), "the container has no channel0")


@test
def a_corrupt_checkpoint_is_set_aside_and_the_workload_can_be_deleted(world):
    node = world.start_workload()["spec"]["nodeName"]
    before = container_of(world)
    checkpoint = world.cluster.node(node).path(CHECKPOINT)
    checkpoint.write_text(checkpoint.read_text()[:-40])
    world.restart_plugin(node)
    wait("the Event CheckpointCorrupted", lambda: world.list(
        "events", "default", fields=f"reason=CheckpointCorrupted,involvedObject.name={node}"), 20)
    check(list(checkpoint.parent.glob("checkpoint.json.corrupt-*")), "the corrupt file was not kept")
    check(container_of(world) == before and world.has_channel("work"), "the workload was disturbed")
    world.delete("pod", "work", seconds=20)
    wait("the claim's CDI file gone", lambda: not cdi_files(world, node), 10)


@test
def controller_and_plugins_are_ready_and_count(world):
    node = world.start_workload()["spec"]["nodeName"]
    controller = world.pods_of("controller")[0]
    for pod, port in ((controller, 8080), (world.plugin(node), 8081)):
        for path in ("/healthz", "/readyz"):
            answer = world.http(pod, port, path)
            check(answer.strip() == "ok", f"{pod['metadata']['name']} {path}: {answer}")
    check_in('nvidia_dra_compute_domain_info{status="Ready"} 1', world.http(controller, 8080, "/metrics"))
    series = world.http(world.plugin(node), 8081, "/metrics")
    for name in ("nvidia_dra_requests_total", "nvidia_dra_request_duration_seconds_bucket",
                 "nvidia_dra_requests_inflight", "nvidia_dra_prepared_devices"):
        check_in(name + "{", series)
    prepared = [line for line in series.splitlines() if line.startswith("nvidia_dra_prepared_devices")
                and 'device_type="channel"' in line]
    check(prepared and prepared[0].endswith(" 1"), f"prepared channels: {prepared}")


@test
def another_controller_takes_over_when_the_leader_is_killed(world):
    values = ("controller.replicas=2", "controller.leaderElection.enabled=true")
    world.helm("upgrade", RELEASE, CHART, values=values)
    try:
        world.wait_for_component("controller", 2)

        def holder():
            name = (world.get("lease", f"{RELEASE}-controller", NAMESPACE) or {}).get("spec", {}).get("holderIdentity")
            return next((p for p in world.pods_of("controller") if name and name.startswith(p["metadata"]["name"])), None)
        leader = wait("a leader among the controllers", holder, 20)
        world.delete("pod", "-n", NAMESPACE, leader["metadata"]["name"], "--force", "--grace-period=0")
        began = time.monotonic()
        wait("another leader", lambda: (now := holder()) and uid_of(now) != uid_of(leader), 20)
        seconds = time.monotonic() - began
        world.apply(compute_domain("led", "led-channel"))
        world.wait_domain_ready("led")
        check(condition(world.get("computedomain", "led"), "Ready").get("status") == "True", "no condition Ready")
    finally:
        world.helm("upgrade", RELEASE, CHART)
        world.wait_for_component("controller", 1)
    return f"another leader after {seconds:.1f} s"
