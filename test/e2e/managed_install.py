"""Installing with default values, and what is refused: AT-I1 to I9, and B8, B10, B11 of the test-suite."""

import json
import os
import signal
import time

from commands import check, check_in, wait
from harness import CHART, NAMESPACE, RELEASE, test
from installations import DEFAULT
from objects import is_ready, name_of, restarts, uid_of
from processes import container_path, main_process

INSTALLATION = DEFAULT
HOST_MODE = "resources.computeDomains.imex.mode=hostManaged"
HOST_GATE = "featureGates.HostManagedIMEXDaemon=true"
DAEMON_OBJECTS = ("compute-domain-daemon.nvidia.com", "compute-domain-daemon-service-account", "compute-domain-daemon-role")


def refused(world, *values, namespace=NAMESPACE):
    """What helm says when it refuses to render the chart with these values."""
    status, text = world.render(*values, namespace=namespace)
    check(status != 0, f"helm renders the chart with {values} in {namespace}")
    return text


@test
def I1_helm_installs_with_default_values(world):
    status = json.loads(world.cluster.helm("status", RELEASE, "-n", NAMESPACE, "-o", "json", check=True,
                                           capture_output=True, text=True).stdout)
    info = status["info"]
    check((info["status"], status["version"], info["description"]) == ("deployed", 1, "Install complete"), str(info))


@test
def I2_one_controller_and_one_plugin_per_node_run(world):
    (controller,) = world.wait_for_component("controller", 1)
    plugins = world.wait_for_component("kubelet-plugin", 2)
    check({p["spec"]["nodeName"] for p in plugins} == {"node-1", "node-2"}, "the plugins are not one per node")
    for pod in (controller, *plugins):
        check(len(pod["spec"]["containers"]) == 1 and restarts(pod) == 0, f"{name_of(pod)}: {pod['status']}")


@test
def I3_both_device_classes_exist(world):
    classes = {name_of(c) for c in world.list("deviceclasses")}
    check(classes == {"compute-domain-daemon.nvidia.com", "compute-domain-default-channel.nvidia.com"}, str(classes))


@test
def I4_each_node_publishes_a_channel_and_a_daemon(world):
    slices = {s["spec"]["nodeName"]: s["spec"] for s in world.list("resourceslices")}
    check(set(slices) == {"node-1", "node-2"}, f"slices of {set(slices)}")
    for node, spec in slices.items():
        check((spec["driver"], spec["pool"]["name"]) == ("compute-domain.nvidia.com", node), str(spec))
        devices = {d["name"]: (d["attributes"]["type"]["string"], d["attributes"]["id"]["int"]) for d in spec["devices"]}
        check(devices == {"channel-0": ("channel", 0), "daemon-0": ("daemon", 0)}, str(devices))


@test
def I5_the_definitions_exist(world):
    for name in ("computedomains", "computedomaincliques"):
        check(world.get("crd", f"{name}.resource.nvidia.com") is not None, f"there is no {name}")


@test
def I6_hostManaged_without_its_gate_is_refused_by_helm_and_by_the_programs(world):
    text = refused(world, HOST_MODE)
    check_in("hostManaged", text)
    check_in("HostManagedIMEXDaemon", text)
    targets = {f"deployment/{RELEASE}-controller": "controller", f"daemonset/{RELEASE}-kubelet-plugin": "kubelet-plugin"}
    try:
        for target, component in targets.items():
            world.kubectl("set", "env", target, "-n", NAMESPACE, "IMEX_MODE=hostManaged")
            wait(f"the {component} ended with an error that names the gate", lambda: ended_with(
                world, component, "HostManagedIMEXDaemon"), 30)
    finally:
        for target, component in targets.items():
            world.kubectl("set", "env", target, "-n", NAMESPACE, "IMEX_MODE=driverManaged")
            world.wait_for_component(component, 1 if component == "controller" else 2)


def ended_with(world, component, part):
    """Whether a container of the component has exited with an error, and the part stands in its log."""
    for pod in world.pods_of(component):
        for status in pod["status"].get("containerStatuses", ()):
            ended = status["state"].get("terminated") or status.get("lastState", {}).get("terminated")
            if ended and ended["exitCode"] != 0:
                log = world.try_kubectl("logs", name_of(pod), "-n", NAMESPACE, "-c", status["name"])[1]
                log += world.try_kubectl("logs", name_of(pod), "-n", NAMESPACE, "-c", status["name"], "--previous")[1]
                return part in log
    return False


@test
def I7_isolation_by_channel_is_refused(world):
    check_in("domain", refused(world, "resources.computeDomains.imex.isolation=channel"))


@test
def I8_the_namespace_default_is_refused(world):
    check_in("allowDefaultNamespace", refused(world, namespace="default"))


@test
def I9_hostManaged_renders_without_anything_of_daemons(world):
    status, text = world.render(HOST_GATE, HOST_MODE)
    check(status == 0, text)
    found = [name for name in DAEMON_OBJECTS if f"name: {name}\n" in text]
    check(not found, f"rendered: {found}")
    default = world.render()[1]
    check(all(f"name: {name}\n" in default for name in DAEMON_OBJECTS), "the default has no objects of daemons")


@test
def I11_no_nvidia_imex_of_the_host_runs(world):
    for gpu in world.gpu:
        check(not gpu.service_is_active(), f"{gpu.node.name}: nvidia-imex.service is active")


@test
def B8_the_plugin_logs_its_node_clique_and_driver(world):
    for node in ("node-1", "node-2"):
        log = world.plugin_log(node)
        for part in ("nodeName", "identified fabric clique", "driver version validation"):
            check(part in log, f"{node}: the plugin's log has no {part!r}")


@test
def B10_SIGUSR2_writes_what_the_plugin_is_doing(world):
    pod = world.plugin("node-1")
    pid = main_process(pod["status"]["containerStatuses"][0]["containerID"])
    dump = container_path(pid, "/tmp/goroutine-stacks.dump")
    os.kill(pid, signal.SIGUSR2)
    wait("the dump", lambda: dump.exists() and "main.RunPlugin" in dump.read_text(errors="replace"), 10)
    check(uid_of(world.plugin("node-1")) == uid_of(pod) and restarts(world.plugin("node-1")) == 0, "the plugin has ended")


@test
def B11_an_upgrade_of_the_same_is_ready_in_time(world):
    world.kubectl("rollout", "restart", "-n", NAMESPACE, f"daemonset/{RELEASE}-kubelet-plugin")
    settings = [part for value in DEFAULT.values for part in ("--set", value)]
    began = time.monotonic()
    done = world.cluster.helm("upgrade", "--install", RELEASE, CHART, "-n", NAMESPACE, "--create-namespace", "--wait",
                              "--timeout=1m5s", *settings, capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    seconds = time.monotonic() - began
    (controller,) = world.wait_for_component("controller", 1, 10)
    plugins = world.wait_for_component("kubelet-plugin", 2, 15)
    container = controller["spec"]["containers"][0]
    check(container["name"] == "compute-domain" and container["image"].startswith("nvdra:"), str(container))
    for pod in (controller, *plugins):
        check(is_ready(pod) and pod["metadata"]["labels"].get("app.kubernetes.io/name") == "nvdra", name_of(pod))
    return f"{seconds:.1f} s"
