"""nvidia-imex itself misbehaves: what the pod's event, the domain's conditions and the daemon say, and how it heals."""

import contextlib
import os
import signal
import subprocess
import time

import gpu_node
from commands import Failed, check, stays, wait
from domains import (COMMAND_PORT, CONTAINER, PORT, create, daemons, form, in_container, members, stays_pending,
                     status_of, undisturbed, wait_daemon_running, wait_daemons, wait_fabric, wait_members_ready,
                     wait_reason, wait_status)
from driver_files import file_of
from harness import NAMESPACE, test
from installations import DEFAULT
from objects import is_ready, name_of, restarts, uid_of, workload
from processes import container_path, main_process, named

INSTALLATION = DEFAULT
NODE = "node-1"


def imex(**faults):
    """The argument of GpuNode.faults() for nvidia-imex."""
    return {"nvidia-imex": faults}


def start_waiting(world, *parts, **faults):
    """A domain and a workload on NODE, whose nvidia-imex has these faults: the domain, once a condition names the parts."""
    world.gpu_node(NODE).faults(**faults)
    create(world)
    world.apply(workload("work", "domain-channel", node=NODE))
    return wait_reason(world, "domain", NODE, *parts, seconds=40)


def check_recovery(world, seconds=60):
    """The same pod starts once the faults are away; seconds until then."""
    pod = world.get("pod", "work")
    check(pod["status"]["phase"] == "Pending", f"the workload is {pod['status']['phase']}")
    began = time.monotonic()
    world.gpu_node(NODE).faults()
    now = world.wait_pod_ready("work", seconds)
    taken = time.monotonic() - began
    check(uid_of(now) == uid_of(pod) and world.has_channel("work"), "it is another pod, or it has no channel")
    wait_status(world, "domain", "Ready")
    return f"Ready {taken:.1f} s after the fault was gone"


def daemon(world):
    """The daemon's pod on NODE."""
    return daemons(world, world.get("computedomain", "domain"))[NODE]


@test
def IMEX_that_never_gets_READY_is_told_and_holds_the_workload(world):
    domain = start_waiting(world, "INIT_GPU", **imex(state="INIT_GPU"))
    check(status_of(world, "domain") == "NotReady", "the domain is Ready")
    check(not is_ready(daemon(world)), "the daemon's pod is Ready")
    check(members(world, domain)[NODE]["status"] == "NotReady", "the member is Ready")
    world.wait_prepare_event("work", NODE, 60)
    return check_recovery(world)


@test
def a_node_that_never_gets_READY_holds_its_own_workload_only(world):
    world.gpu_node("node-2").faults(**imex(state="INIT_GPU"))
    domain = create(world)
    world.apply(*(workload(f"domain-{node}", "domain-channel", node=node) for node in (NODE, "node-2")))
    world.wait_pod_ready(f"domain-{NODE}")
    check(world.has_channel(f"domain-{NODE}"), "the workload has no channel")
    wait_reason(world, "domain", "node-2", "INIT_GPU")
    wait_status(world, "domain", "NotReady")
    found = members(world, domain)
    check({node: member["status"] for node, member in found.items()} == {NODE: "Ready", "node-2": "NotReady"}, str(found))
    stays_pending(world, "domain-node-2", 3)
    world.gpu_node("node-2").faults()
    world.wait_pod_ready("domain-node-2")
    wait_status(world, "domain", "Ready")


@test
def IMEX_that_crashes_at_each_start_is_told_and_started_ever_more_rarely(world):
    start_waiting(world, "exit", **imex(exitAtStart=3))
    pod = daemon(world)
    log = world.kubectl("logs", name_of(pod), "-n", NAMESPACE, "-c", CONTAINER)
    before = log.count("IMEX version")
    check(before > 0, f"the daemon's log has no start of nvidia-imex: {log}")
    time.sleep(6)  # how often it is started in a time
    log = world.kubectl("logs", name_of(pod), "-n", NAMESPACE, "-c", CONTAINER)
    starts = log.count("IMEX version") - before
    check(starts <= 4, f"nvidia-imex was started {starts} times in 6 s")
    check(restarts(daemon(world)) == 0, "the container itself was restarted")
    # While it waits for the next start, somebody takes its ports: that for commands is asked for once it has the other.
    with taken_port(pod, COMMAND_PORT):
        with taken_port(pod, PORT):
            world.gpu_node(NODE).faults()
            wait_reason(world, "domain", NODE, f"cannot listen on port {PORT}", seconds=60)
        wait_reason(world, "domain", NODE, f"cannot listen on port {COMMAND_PORT}", seconds=60)
    return check_recovery(world, 90) + f"; {starts} starts in 6 s"


@contextlib.contextmanager
def taken_port(pod, port):
    """A port on the pod's address is taken by another program."""
    pid = main_process(pod["status"]["containerStatuses"][0]["containerID"])
    script = f"import socket,time; s=socket.create_server(('{pod['status']['podIP']}', {port})); time.sleep(600)"
    taker = subprocess.Popen(["nsenter", f"--net=/proc/{pid}/ns/net", "python3", "-c", script])
    try:
        yield
    finally:
        taker.kill()
        taker.wait()


def kill_imex(container):
    """Kills the container's nvidia-imex; returns when another one runs."""
    (old,) = named(container, "nvidia-imex")
    os.kill(old, signal.SIGKILL)
    wait("another nvidia-imex", lambda: named(container, "nvidia-imex") not in ([], [old]), 20)


@test
def IMEX_that_crashes_once_is_started_again_and_the_workload_runs_on(world):
    domain, found = form(world, "node-1", "node-2")
    container = found[NODE]["status"]["containerStatuses"][0]["containerID"]
    with undisturbed(world, "domain-node-1", "domain-node-2"):
        kill_imex(container)
        wait_daemons(world, domain, ("node-1", "node-2"), 20)
        wait_members_ready(world, domain, ("node-1", "node-2"))
        wait_fabric(world, domain, ("node-1", "node-2"))
        wait_status(world, "domain", "Ready")
    check(restarts(daemon(world)) == 0, "the container itself was restarted")


@test
def files_of_a_host_service_in_the_container_are_not_read(world):
    domain, found = form(world, "node-1", "node-2")
    container = found[NODE]["status"]["containerStatuses"][0]["containerID"]
    pid = main_process(container)
    for name, text in (("nodes_config.cfg", "198.51.100.1\n198.51.100.2\n"), ("config.cfg", "no configuration\n")):
        file = container_path(pid, f"/etc/nvidia-imex/{name}")
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    refused = in_container(pid, "nvidia-imex")
    check(refused.returncode != 0 and "no configuration" in refused.stdout + refused.stderr,
          f"nvidia-imex reads other files by itself: {refused}")
    with undisturbed(world, "domain-node-1", "domain-node-2"):
        kill_imex(container)
        wait_members_ready(world, domain, ("node-1", "node-2"))
        wait_fabric(world, domain, ("node-1", "node-2"))
        wait_status(world, "domain", "Ready")


@test
def a_domain_is_NotReady_while_IMEX_of_a_node_is_not_READY_or_hangs(world):
    _, found = form(world, "node-1", "node-2")
    container = found[NODE]["status"]["containerStatuses"][0]["containerID"]
    with undisturbed(world, "domain-node-1", "domain-node-2"):
        world.gpu_node(NODE).faults(**imex(state="DEGRADED"))
        began = time.monotonic()
        wait_status(world, "domain", "NotReady", 20)
        seconds = time.monotonic() - began
        wait_reason(world, "domain", NODE, "DEGRADED")
        world.gpu_node(NODE).faults(**imex(hang=True))
        wait_reason(world, "domain", NODE, "no answer", seconds=40)
        stays("few nvidia-imex-ctl", lambda: len(named(container, "nvidia-imex-ctl")) <= 2, 3)
        world.gpu_node(NODE).faults()
        wait_status(world, "domain", "Ready", 40)
    return f"NotReady after {seconds:.1f} s"


@test
def IMEX_that_is_READY_without_its_peers_is_NotReady_and_told(world):
    domain, found = form(world, "node-1", "node-2")
    with undisturbed(world, "domain-node-1", "domain-node-2"):
        world.gpu_node(NODE).faults(**imex(unconnected=True))
        began = time.monotonic()
        wait_reason(world, "domain", NODE, "not connected", "node-2", "NEVER_CONNECTED", seconds=120)
        seconds = time.monotonic() - began
        wait_status(world, "domain", "NotReady")
        check(not is_ready(daemon(world)), "the daemon's pod is Ready")
        world.gpu_node(NODE).faults()
        wait_members_ready(world, domain, ("node-1", "node-2"), 40)
        wait_status(world, "domain", "Ready", 40)
    check(all(restarts(pod) == 0 for pod in found.values()), "a daemon was restarted")
    return f"told after {seconds:.0f} s"


@test
def a_member_with_another_nodes_file_is_refused_and_told(world):
    """As a daemon of a release that names the slots differently has."""
    domain, found = form(world, "node-1", "node-2")
    container = found["node-2"]["status"]["containerStatuses"][0]["containerID"]
    with undisturbed(world, "domain-node-1", "domain-node-2"):
        nodes = container_path(main_process(container), "/imexd/nodes.cfg")
        nodes.write_text(nodes.read_text() + "compute-domain-daemon-of-another-release\n")
        kill_imex(container)
        began = time.monotonic()
        wait_reason(world, "domain", "refuses", "node-1", "node-2", "MISMATCH", "one release", seconds=120)
        seconds = time.monotonic() - began
        wait_status(world, "domain", "NotReady")
        for pod in found.values():
            world.delete("pod", name_of(pod), "-n", NAMESPACE)
        wait("two other daemons", lambda: (now := daemons(world, domain)) and set(now) == set(found) and not any(
            uid_of(now[node]) == uid_of(found[node]) for node in found), 40)
        wait_members_ready(world, domain, ("node-1", "node-2"), 40)
        wait_status(world, "domain", "Ready", 40)
    return f"told after {seconds:.0f} s"


@test
def GPUs_held_by_a_host_service_and_an_IMEX_of_another_version_are_told(world):
    world.gpu_node("node-2").faults(**imex(driverVersion="570.00"))
    start_waiting(world, **imex(inUse=True))
    world.apply(workload("other", "domain-channel", node="node-2"))
    wait_reason(world, "domain", NODE, "nvidia-imex.service", seconds=40)
    wait_reason(world, "domain", "node-2", "not matching with current GPU driver version", seconds=40)
    world.gpu_node("node-2").faults()
    note = check_recovery(world, 90)
    world.wait_pod_ready("other", 90)
    return note


@test
def IMEX_that_ignores_SIGTERM_does_not_keep_the_daemon(world):
    domain, _ = form(world, "node-1")
    world.gpu_node(NODE).faults(**imex(ignoreTerm=True))
    world.delete("pod", "domain-node-1", seconds=20)
    began = time.monotonic()
    wait("the daemon gone", lambda: not world.list("pods", NAMESPACE, f"resource.nvidia.com/computeDomain={uid_of(domain)}"),
         40)
    check(not members(world, domain), "its member is left")
    return f"{time.monotonic() - began:.1f} s"


@test
def a_library_of_the_driver_that_is_missing_is_named(world):
    gpu = world.gpu_node(NODE)
    library = file_of("libcuda")
    gpu.remove_library(library)
    try:
        world.restart_plugin(NODE)
        create(world)
        world.apply(workload("work", "domain-channel", node=NODE))
        wait("the library's name where a user looks", lambda: told(world, "libcuda"), 60)
        check(world.get("pod", "work")["status"]["phase"] == "Pending", "the workload was started")
    finally:
        gpu.restore_library(library)
    began = time.monotonic()
    world.wait_pod_ready("work", 120)
    return f"Ready {time.monotonic() - began:.1f} s after the library was there again"


def told(world, part):
    """Whether an Event or a condition of the domain, its pods or its daemons has the part."""
    texts = [e["message"] for e in world.list("events", None) if e["reason"] != "Pulled"]
    texts.append(str(world.get("computedomain", "domain").get("status", {})))
    if not any(part in text for text in texts):
        raise Failed(str(texts[-5:]))
    return True


@test
def a_daemon_without_its_devices_would_not_have_started(world):
    """The stand-in refuses to start without them; so this is about the stand-in as much as about the claim."""
    _, found = form(world, "node-2")
    pid = main_process(found["node-2"]["status"]["containerStatuses"][0]["containerID"])
    devices = {path.name for path in container_path(pid, "/dev").rglob("nvidia*") if path.is_char_device()}
    missing = {*(n for n in gpu_node.DEVICES if n.startswith("nvidia")), "nvidia-cap4323"} - devices
    check(not missing, f"devices missing in the daemon's container: {missing}; there are {sorted(devices)}")


@test
def a_slow_start_of_IMEX_only_delays_the_workload(world):
    world.gpu_node(NODE).faults(**imex(slowStart=8))
    create(world)
    world.apply(workload("work", "domain-channel", node=NODE))
    wait_daemon_running(world, world.get("computedomain", "domain"), NODE)
    began = time.monotonic()
    world.wait_pod_ready("work", 40)
    return f"Ready {time.monotonic() - began:.1f} s after its daemon's start; IMEX needed 8 s"
