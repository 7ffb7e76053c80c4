"""What the end-to-end tests stand on: the cluster with nvdra installed, and ways to ask and to wait.

Contract: `with World(options) as world:` gives a cluster of two GPU nodes whose nvidia-imex services
are READY, with nvdra installed from the chart in hostManaged mode. Everything ends with the block.
`@test` registers a function; `run(world, pattern)` runs those that match, each followed by `clean()`,
which brings the cluster back to where it was. A test fails by an exception; what then explains it
(events, conditions, descriptions, logs) is printed.
"""

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "cluster"))

import gpu_node  # noqa: E402
from cluster import Cluster  # noqa: E402
from process import ProcessError  # noqa: E402

NAMESPACE = "dra-driver-nvidia-gpu"
RELEASE = "nvdra"
CHANNEL = "/dev/nvidia-caps-imex-channels/channel0"
CHECKPOINT = "/var/lib/kubelet/plugins/compute-domain.nvidia.com/checkpoint.json"
VALUES = ("featureGates.HostManagedIMEXDaemon=true", "resources.computeDomains.imex.mode=hostManaged",
          f"nvidiaDriverRoot={gpu_node.DRIVER_ROOT}", f"altProcDevices={gpu_node.PROC_DEVICES}",
          "kubeletPlugin.containers.computeDomains.gpuCliqueLabelEnabled=true", "kubeletPlugin.affinity=null",
          "controller.affinity=null")
# What tests make; templates and claims follow their owners, but some tests make their own.
MADE = "pods,computedomains,resourceclaimtemplates.resource.k8s.io,resourceclaims.resource.k8s.io"
TESTS = []


class Failed(Exception):
    """What was expected and what was seen."""


def test(function):
    """Registers a test; its name is the sentence that its function's name spells."""
    TESTS.append(function)
    return function


def check(holds, text):
    """Fails the test unless it holds."""
    if not holds:
        raise Failed(text)


def check_in(part, text):
    """Fails the test unless the text has the part."""
    check(part in text, f"expected {part!r} in: {text}")


def wait(what, condition, seconds, pause=0.1):
    """Waits until `condition()` is true and returns its value; failures of kubectl count as not yet."""
    deadline = time.monotonic() + seconds
    seen = ""
    while True:
        try:
            if value := condition():
                return value
        except (Failed, KeyError, IndexError) as error:
            seen = f"; the last answer was: {error!r}"
        if time.monotonic() > deadline:
            raise Failed(f"{what}: not within {seconds} s{seen}")
        time.sleep(pause)


class World:
    """The cluster and what runs in it. `folder`: logs and data; a temporary one when None."""

    def __init__(self, build, kubernetes, image, folder=None):
        self._own = None if folder else tempfile.mkdtemp(prefix="nvdra-e2e-")
        self.folder = Path(folder or self._own)
        self.cluster = Cluster(self.folder / "cluster", nodes=2, kubernetes=kubernetes)
        self._tools = Path(build) / "src/sandbox/nvdra-sandbox"
        self._image = image
        self.gpu = []
        self.skipped_cleaning = False

    def __enter__(self):
        try:
            self.up()
        except BaseException:
            self.down()
            raise
        return self

    def __exit__(self, kind, *_):
        self.down()

    def up(self):
        """Cluster, nodes, services, chart."""
        self.cluster.up()
        self.gpu = [gpu_node.GpuNode(node, self._tools, peers=2) for node in self.cluster.nodes]
        for gpu in self.gpu:
            gpu.lay_out()
            gpu.service_start()
        self.cluster.load_image(self._image)
        try:
            self.helm("install", RELEASE, ROOT / "charts/nvdra", "--create-namespace")
        except Failed:
            self.explain(time.time() - 120)
            raise
        for gpu in self.gpu:
            gpu.wait_for_service()
        self.wait_for_slices()

    def down(self):
        """Ends everything."""
        self.cluster.down()
        if self._own:
            shutil.rmtree(self._own, ignore_errors=True)

    # --- Commands

    def try_kubectl(self, *arguments, text=None):
        """kubectl's status and everything it printed."""
        done = self.cluster.kubectl(*arguments, input=text, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def kubectl(self, *arguments, text=None):
        """kubectl's output; fails with its error."""
        done = self.cluster.kubectl(*arguments, input=text, capture_output=True, text=True)
        check(done.returncode == 0, f"kubectl {' '.join(map(str, arguments))}: {done.stderr.strip()}")
        return done.stdout

    def helm(self, action, *arguments, values=()):
        """helm with our values, waiting until what it installs is ready."""
        settings = [part for value in (*VALUES, *values) for part in ("--set", value)]
        done = self.cluster.helm(action, *arguments, "--namespace", NAMESPACE, "--wait", "--timeout=90s", *settings,
                                 capture_output=True, text=True)
        check(done.returncode == 0, f"helm {action}: {done.stderr.strip()}")

    def apply(self, *objects):
        """Applies objects given as dictionaries, or as text."""
        text = "\n---\n".join(o if isinstance(o, str) else json.dumps(o) for o in objects)
        return self.kubectl("apply", "-f", "-", text=text)

    def get(self, kind, name, namespace="default"):
        """The object, or None when there is none."""
        status, text = self.try_kubectl("get", kind, name, "-n", namespace, "-o", "json")
        if status and "NotFound" in text:
            return None
        check(status == 0, text)
        return json.loads(text)

    def list(self, kind, namespace="default", *more):
        """The objects of a kind."""
        return json.loads(self.kubectl("get", kind, "-n", namespace, "-o", "json", *more))["items"]

    def delete(self, *arguments, seconds=30):
        """kubectl delete, which must end in time."""
        self.kubectl("delete", *arguments, f"--timeout={seconds}s")

    # --- nvdra's own pods

    def pods_of(self, component):
        """nvdra's pods of a component that are not being deleted."""
        found = self.list("pods", NAMESPACE, "-l", f"nvdra-component={component}")
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def plugin(self, node):
        """The plugin's pod on a node."""
        return next((p for p in self.pods_of("kubelet-plugin") if p["spec"].get("nodeName") == node), None)

    def wait_for_component(self, component, count, seconds=60, others_than=()):
        """Returns the pods when so many are Ready, none of them with a UID of `others_than`."""
        def ready():
            pods = self.pods_of(component)
            return pods if len(pods) == count and all(
                is_ready(p) and p["metadata"]["uid"] not in others_than for p in pods) else None
        return wait(f"{count} {component} Ready", ready, seconds)

    def wait_for_slices(self):
        """Returns when both nodes have published their channel."""
        wait("ResourceSlices of both nodes", lambda: {"node-1", "node-2"} <= {
            s["spec"].get("nodeName") for s in self.list("resourceslices")
            if s["spec"]["driver"] == "compute-domain.nvidia.com"}, 30)
        wait("both nodes labelled with their clique", lambda: len(
            self.list("nodes", "default", "-l", "nvidia.com/gpu.clique")) == 2, 30)

    def http(self, pod, port, path):
        """What an endpoint of one of nvdra's pods answers, through the API server."""
        return self.kubectl("get", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}:{port}"
                                            f"/proxy{path}")

    def held_claims(self, node):
        """How many prepares the plugin of a node has in work."""
        for line in self.http(self.plugin(node), 8081, "/metrics").splitlines():
            if line.startswith("nvidia_dra_requests_inflight") and 'operation="prepare"' in line:
                return int(float(line.split()[-1]))
        raise Failed("no series nvidia_dra_requests_inflight")

    def plugin_log(self, node, since=""):
        """The log of a node's plugin."""
        more = [f"--since-time={since}"] if since else []
        return self.kubectl("logs", "-n", NAMESPACE, self.plugin(node)["metadata"]["name"], "-c", "compute-domains", *more)

    # --- Workloads

    def gpu_node(self, name):
        """The GpuNode of that name."""
        return next(g for g in self.gpu if g.node.name == name)

    def wait_pod_ready(self, name, seconds=60, namespace="default"):
        """Returns the pod once it is Ready."""
        self.kubectl("wait", "--for=condition=Ready", f"pod/{name}", f"--timeout={seconds}s", "-n", namespace)
        return self.get("pod", name, namespace)

    def wait_domain_ready(self, name, seconds=20, namespace="default"):
        """Returns the ComputeDomain once it is Ready."""
        def ready():
            domain = self.get("computedomain", name, namespace)
            return domain if domain.get("status", {}).get("status") == "Ready" else None
        return wait(f"ComputeDomain {name} Ready", ready, seconds)

    def wait_prepare_event(self, pod, part="", seconds=30, namespace="default"):
        """The message of the pod's FailedPrepareDynamicResources event that has the part."""
        def found():
            texts = [e["message"] for e in self.list(
                "events", namespace, f"--field-selector=reason=FailedPrepareDynamicResources,involvedObject.name={pod}")]
            if not any(part in text for text in texts):
                raise Failed(str(texts))
            return next(text for text in texts if part in text)
        return wait(f"event FailedPrepareDynamicResources of {pod} with {part!r}", found, seconds)

    def has_channel(self, pod, namespace="default"):
        """Whether channel0 is a device in the pod's container."""
        return self.try_kubectl("exec", pod, "-n", namespace, "--", "test", "-c", CHANNEL)[0] == 0

    def start_workload(self, name="work", node=None, domain="domain"):
        """A ComputeDomain and a pod that uses it, Ready; the pod."""
        self.apply(compute_domain(domain, f"{domain}-channel"))
        self.wait_domain_ready(domain)
        self.apply(workload(name, f"{domain}-channel", node=node))
        return self.wait_pod_ready(name)

    # --- Before and after a test

    def clean(self):
        """Removes what a test has made and repairs the nodes."""
        for gpu in self.gpu:
            gpu.faults()
            for tool in gpu_node.TOOLS:
                if not (gpu.root / "usr/bin" / tool).exists():
                    gpu.restore_tool(tool)
            gpu.service_resume()
            if not gpu.service_is_active() or gpu.service_state() != "READY":
                gpu.service_stop()
                gpu.service_start()
        for namespace in ("default", "other"):
            found = self.kubectl("get", MADE, "-n", namespace, "-o", "name", "--ignore-not-found").split()
            if found:
                self.try_kubectl("delete", "pods,computedomains", "--all", "-n", namespace, "--timeout=40s",
                                 "--grace-period=1")
                self.try_kubectl("delete", MADE, "--all", "-n", namespace, "--timeout=20s")
        for gpu in self.gpu:
            gpu.wait_for_service()

    def explain(self, since):
        """Prints what a human would look at first."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(since))
        self._show("get", "pods,computedomains,resourceclaims", "-A", "-o", "wide")
        self._show("get", "events", "-A", "--sort-by=.lastTimestamp", lines=40)
        self._show("get", "computedomains", "-n", "default", "-o", "yaml")
        self._show("describe", "pods", "-n", "default")
        self._show("describe", "pods", "-n", NAMESPACE, lines=60)
        for component in ("controller", "kubelet-plugin"):
            self._show("logs", "-n", NAMESPACE, "-l", f"nvdra-component={component}", "--all-containers", "--prefix",
                       "--tail=60", f"--since-time={stamp}")

    def _show(self, *arguments, lines=80):
        text = self.try_kubectl(*arguments)[1].rstrip().splitlines()
        print(f"    --- kubectl {' '.join(arguments)}")
        print("\n".join(f"    {line}" for line in text[-lines:]), flush=True)


def run(world, chosen):
    """Runs tests; returns how many passed and failed."""
    passed = failed = 0
    for function in chosen:
        name = function.__name__.replace("_", " ")
        started, clock = time.time(), time.monotonic()
        trouble = None
        note = ""
        try:
            note = function(world)
        except (Failed, ProcessError) as error:
            trouble = error
            print(f"    {error}", flush=True)
            world.explain(started)
        seconds = time.monotonic() - clock
        try:
            world.clean()
        except (Failed, ProcessError) as error:
            if not trouble:
                world.explain(started)
            trouble = trouble or error
            print(f"    cleaning up: {error}", flush=True)
        passed, failed = (passed, failed + 1) if trouble else (passed + 1, failed)
        print(f"{'FAILED' if trouble else 'ok    '} {name} ({seconds:.1f} s){': ' + note if note else ''}", flush=True)
    return passed, failed


# --- Objects

def is_ready(pod):
    """Whether a pod has the condition Ready."""
    return condition(pod, "Ready").get("status") == "True"


def condition(obj, kind):
    """The condition of a type, or {}."""
    found = obj.get("status", {}).get("conditions", ())
    return next((c for c in found if c["type"] == kind), {})


def compute_domain(name, template, namespace="default", mode=None):
    """A ComputeDomain."""
    channel = {"resourceClaimTemplate": {"name": template}, **({"allocationMode": mode} if mode else {})}
    return {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain",
            "metadata": {"name": name, "namespace": namespace}, "spec": {"numNodes": 0, "channel": channel}}


def workload(name, template=None, claim=None, node=None, namespace="default"):
    """A pod that uses a claim (from a template, or by name) and ends at once when asked to."""
    source = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim}
    placed = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": {
        "terminationGracePeriodSeconds": 1, **placed,
        "containers": [{"name": "app", "image": "ubuntu:22.04", "command": ["bash", "-c"],
                        "args": ["trap 'exit 0' TERM; sleep 9999 & wait"],
                        "resources": {"claims": [{"name": "channel"}]}}],
        "resourceClaims": [{"name": "channel", **source}]}}


def claim(name, parameters, namespace="default"):
    """A ResourceClaim for one channel with these opaque parameters."""
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": namespace}, "spec": {"devices": {
                "requests": [{"name": "channel", "exactly": {
                    "deviceClassName": "compute-domain-default-channel.nvidia.com"}}],
                "config": [{"requests": ["channel"], "opaque": {
                    "driver": "compute-domain.nvidia.com", "parameters": {
                        "apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomainChannelConfig",
                        **parameters}}}]}}}
