"""What the tests ask about a driver-managed domain: its daemons, members, node labels, IMEX's own view."""

import contextlib
import json
import subprocess

import gpu_node
from commands import Failed, check, stays, wait
from harness import NAMESPACE
from objects import compute_domain, conditions_text, is_ready, name_of, uid_of, workload
from processes import environment, main_process

LABEL = "resource.nvidia.com/computeDomain"
CLIQUE = f"{gpu_node.CLUSTER_UUID}.{gpu_node.CLIQUE}"
CONTAINER = "compute-domain-daemon"
PORT, COMMAND_PORT = 50000, 50005


def daemon_set_name(domain):
    """The name of the domain's DaemonSet and daemon template."""
    return f"computedomain-daemon-{uid_of(domain)}"


def daemon_set(world, domain):
    """The domain's DaemonSet, or None."""
    return world.get("daemonset", daemon_set_name(domain), NAMESPACE)


def daemons(world, domain):
    """The domain's daemon pods that are not being deleted, by node."""
    pods = world.list("pods", NAMESPACE, f"{LABEL}={uid_of(domain)}")
    return {p["spec"].get("nodeName"): p for p in pods if "deletionTimestamp" not in p["metadata"]}


def wait_daemons(world, domain, nodes, seconds=30, others_than=()):
    """Returns the daemons by node once they are Ready on exactly these nodes, none with one of these UIDs."""
    def ready():
        found = daemons(world, domain)
        return found if set(found) == set(nodes) and all(
            is_ready(p) and uid_of(p) not in others_than for p in found.values()) else None
    return wait(f"daemons Ready on {', '.join(nodes)}", ready, seconds)


def wait_daemon_running(world, domain, node, seconds=30):
    """Returns the daemon's pod once its container runs, ready or not."""
    def running():
        pod = daemons(world, domain)[node]
        return pod if pod["status"]["containerStatuses"][0]["state"].get("running") else None
    return wait(f"the daemon on {node} running", running, seconds)


def clique(world, domain, clique_id=CLIQUE):
    """The domain's clique object, or None."""
    return world.get("computedomainclique", f"{uid_of(domain)}.{clique_id}", NAMESPACE)


def members(world, domain):
    """The entries of the domain's clique, by node."""
    return {d["nodeName"]: d for d in (clique(world, domain) or {}).get("daemons", ())}


def nodes_of(domain):
    """The entries of status.nodes, by node."""
    return {n["name"]: n for n in domain.get("status", {}).get("nodes", ())}


def status_of(world, name, namespace="default"):
    """status.status of a ComputeDomain."""
    return (world.get("computedomain", name, namespace) or {}).get("status", {}).get("status")


def wait_status(world, name, status, seconds=10, namespace="default"):
    """Returns the ComputeDomain once its status is that."""
    def seen():
        domain = world.get("computedomain", name, namespace)
        if domain.get("status", {}).get("status") != status:
            raise Failed(f"{domain.get('status', {}).get('status')}: {conditions_text(domain)}")
        return domain
    return wait(f"ComputeDomain {name} {status}", seen, seconds)


def wait_reason(world, name, *parts, seconds=20, namespace="default"):
    """Returns the ComputeDomain once one of its conditions says all these parts."""
    def seen():
        domain = world.get("computedomain", name, namespace)
        text = conditions_text(domain)
        if not all(part.lower() in text.lower() for part in parts):
            raise Failed(text)
        return domain
    return wait(f"a condition of ComputeDomain {name} with {', '.join(parts)}", seen, seconds)


def wait_event(world, name, *parts, seconds=20, namespace="default"):
    """Returns the text of an Event on the object of that name that says all these parts."""
    def seen():
        texts = [f"{e['reason']}: {e['message']}" for e in world.list(
            "events", namespace, fields=f"involvedObject.name={name}")]
        found = [t for t in texts if all(part.lower() in t.lower() for part in parts)]
        if not found:
            raise Failed(str(texts))
        return found[-1]
    return wait(f"an Event of {name} with {', '.join(parts)}", seen, seconds)


def node_label(world, node):
    """The UID of the domain that holds a node, or None."""
    return world.get("node", node)["metadata"]["labels"].get(LABEL)


def in_container(pid, program, *arguments):
    """Runs one of the driver's programs as a daemon would, in its container: what subprocess.run() returns."""
    libraries = environment(pid).get("NVDRA_IMEX_LIBRARY_PATH", "")
    return subprocess.run(["nsenter", f"--target={pid}", "--mount", "--net", f"/usr/bin/{program}", *arguments],
                          env={"LD_LIBRARY_PATH": libraries}, capture_output=True, text=True, timeout=20)


def imex_view(daemon):
    """What the nvidia-imex of a daemon's pod says about its domain (`nvidia-imex-ctl -N -j`), as an object."""
    pid = main_process(daemon["status"]["containerStatuses"][0]["containerID"])
    done = in_container(pid, "nvidia-imex-ctl", "-c", "/imexd/imexd.cfg", "-N", "-j")
    check(done.returncode == 0, f"{name_of(daemon)}: nvidia-imex-ctl: {done.stderr.strip()}")
    return json.loads(done.stdout)


def wait_fabric(world, domain, nodes, seconds=20):
    """Returns when the nvidia-imex of each of these nodes is connected with those of all others."""
    def connected():
        found, pods = members(world, domain), daemons(world, domain)
        indices = {str(found[node]["index"]) for node in nodes}
        for node in nodes:
            own = imex_view(pods[node])["nodes"][str(found[node]["index"])]
            words = {i: c["status"] for i, c in own["connections"].items() if i in indices}
            if own["status"] != "READY" or set(words.values()) != {"CONNECTED"}:
                raise Failed(f"nvidia-imex on {node}: {own['status']}, connections {words}")
        return True
    wait(f"nvidia-imex of {', '.join(nodes)} connected", connected, seconds, 0.5)


def wait_unavailable(world, domain, index, of, seconds=10):
    """Returns when the nvidia-imex of the node `of` sees nobody in the slot any more."""
    def seen():
        own = str(members(world, domain)[of]["index"])
        view = imex_view(daemons(world, domain)[of])["nodes"]
        words = view[str(index)]["status"], view[own]["connections"][str(index)]["status"]
        if words[0] != "UNAVAILABLE" or words[1] == "CONNECTED":
            raise Failed(f"{of} sees slot {index} {words[0]}, {words[1]}")
        return True
    wait(f"slot {index} unavailable, as {of} sees it", seen, seconds, 0.5)


def create(world, name="domain", nodes=0, mode=None):
    """A ComputeDomain whose objects exist; the domain. With `nodes` it is not Ready yet."""
    world.apply(compute_domain(name, f"{name}-channel", mode=mode, nodes=nodes))
    if not nodes:
        return world.wait_domain_ready(name)
    wait("the workload template", lambda: world.get("resourceclaimtemplate", f"{name}-channel"), 10)
    wait("a status", lambda: status_of(world, name), 10)
    return world.get("computedomain", name)


def form(world, *nodes, name="domain"):
    """A ComputeDomain with one workload on each of these nodes, all Ready: the domain and the daemons by node."""
    domain = create(world, name)
    world.apply(*(workload(f"{name}-{node}", f"{name}-channel", node=node) for node in nodes))
    for node in nodes:
        world.wait_pod_ready(f"{name}-{node}")
    found = wait_daemons(world, domain, nodes)
    wait_members_ready(world, domain, nodes)
    return wait_status(world, name, "Ready"), found


def wait_members_ready(world, domain, nodes, seconds=30):
    """Returns the members once they are Ready and exactly these nodes."""
    def seen():
        found = members(world, domain)
        return found if set(found) == set(nodes) and all(m["status"] == "Ready" for m in found.values()) else None
    return wait(f"members Ready on {', '.join(nodes)}", seen, seconds)


def stays_pending(world, pod, seconds):
    """Fails if the pod is started in this time."""
    stays(f"{pod} Pending", lambda: world.get("pod", pod)["status"]["phase"] == "Pending", seconds)


def gone(world, name="domain", seconds=30, namespace="default"):
    """Deletes a ComputeDomain, which must be gone in time."""
    world.delete("computedomain", name, "-n", namespace, seconds=seconds)
    check(world.get("computedomain", name, namespace) is None, f"ComputeDomain {name} is still there")


def container_of(world, pod="work", namespace="default"):
    """What a restart of a pod's container would change."""
    status = world.get("pod", pod, namespace)["status"]["containerStatuses"][0]
    return status["containerID"], status["restartCount"]


@contextlib.contextmanager
def undisturbed(world, *pods):
    """The containers of these pods must be the same, and have their channel, when the block ends."""
    before = {pod: container_of(world, pod) for pod in pods}
    yield
    for pod in pods:
        check(container_of(world, pod) == before[pod], f"the container of {pod} was restarted")
        # Looking takes a kubelet that has found its container runtime again.
        wait(f"the channel in {pod}", lambda p=pod: world.has_channel(p), 20)
