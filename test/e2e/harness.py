"""What the end-to-end tests stand on: the cluster with nvdra installed, and ways to ask and to wait.

Contract: `with World(...) as world:` gives a cluster of two GPU nodes; `world.install(INSTALLATION)`
puts nvdra on it, in place of an earlier installation. Everything ends with the block.
`@test` registers a function; `runner.run` runs those that match. A test fails by an exception. It
waits for conditions and cleans nothing up: `cleaning.clean` does, and fails the test when nvdra has
left something behind.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "cluster"))

import driver_files  # noqa: E402
import gpu_node  # noqa: E402
from cluster import Cluster  # noqa: E402
from api import ReadError  # noqa: E402
from commands import Commands, Failed, check, wait  # noqa: E402
from objects import (CLIQUE_LABEL, compute_domain, is_ready, name_of, uid_of, workload)  # noqa: E402
from process import ProcessError  # noqa: E402

NAMESPACE = "dra-driver-nvidia-gpu"
RELEASE = "nvdra"
CHART = ROOT / "charts/nvdra"
CHANNEL = "/dev/nvidia-caps-imex-channels/channel0"
CHECKPOINT = "/var/lib/kubelet/plugins/compute-domain.nvidia.com/checkpoint.json"
TESTS = []
# After a failed prepare a kubelet asks again with the pod's next regular sync. Usually that is a minute; it is longer
# than any test gives a call that is held.
SYNC_SECONDS = 20
# Which requests nvdra sends; one line each.
AUDIT_POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [
    {"level": "Metadata", "userGroups": [f"system:serviceaccounts:{NAMESPACE}"]}, {"level": "None"}]}


TROUBLE = (Failed, ReadError, ProcessError, KeyError, IndexError, ValueError, OSError, subprocess.SubprocessError)


def test(function):
    """Registers a test; its name is the sentence that its function's name spells."""
    TESTS.append(function)
    return function


def installation_of(function):
    """The Installation that the test needs: INSTALLATION of its module."""
    return function.__globals__["INSTALLATION"]


class World(Commands):
    """The cluster and what runs in it. `folder`: logs and data; a temporary one when None."""

    def __init__(self, build, kubernetes, image, folder=None):
        self._own = None if folder else tempfile.mkdtemp(prefix="nvdra-e2e-")
        folder = Path(folder or self._own).resolve()
        self.audit = folder / "audit.log"
        policy = folder / "audit-policy.json"
        super().__init__(Cluster(folder / "cluster", nodes=2, kubernetes=kubernetes, kubelet={
            "syncFrequency": f"{SYNC_SECONDS}s"}, api_server=[
                f"--audit-log-path={self.audit}", f"--audit-policy-file={policy}"]), folder)
        self._policy = policy
        self._simulator = Path(build) / "src/sandbox/nvdra-sandbox"
        self._image = image
        self.gpu = []
        self.installation = None

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
        """Cluster and GPU nodes."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.audit.unlink(missing_ok=True)
        self._policy.write_text(json.dumps(AUDIT_POLICY))
        self.cluster.up()
        files = driver_files.build(self._simulator, self.folder / "driver")
        self.gpu = [gpu_node.GpuNode(node, files, peers=2) for node in self.cluster.nodes]
        for gpu in self.gpu:
            gpu.lay_out()
        self.cluster.load_image(self._image)
        # What Node Feature Discovery finds out.
        self.kubectl("label", "nodes", "--all", "nvidia.com/gpu.present=true")

    def down(self):
        """Ends everything."""
        self.reader.close()
        self.cluster.down()
        if self._own:
            shutil.rmtree(self._own, ignore_errors=True)

    # --- The chart

    def install(self, installation, again=False):
        """nvdra with these values, and the nodes as they go with it."""
        if self.installation is installation and not again:
            return
        self.uninstall()
        for gpu in self.gpu:
            if installation.host_managed:
                gpu.service_start()
            else:
                gpu.service_stop()
        self.installation = installation
        self.helm("install", RELEASE, CHART, "--create-namespace")
        for gpu in self.gpu:
            if installation.host_managed:
                gpu.wait_for_service()
        self.wait_for_slices()

    def uninstall(self):
        """No nvdra. The definitions of its objects stay."""
        if not self.installation:
            return
        done = self.cluster.helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--wait", "--timeout=60s",
                                 capture_output=True, text=True)
        check(done.returncode == 0, f"helm uninstall: {done.stderr.strip()}")
        self.installation = None
        self.kubectl("label", "nodes", "--all", f"{CLIQUE_LABEL}-")
        wait("the end of nvdra's pods", lambda: not self.list("pods", NAMESPACE, "nvdra-component"), 60)

    def try_helm(self, action, *arguments, values=None):
        """helm's status and everything it printed."""
        settings = [part for value in (self.installation.values if values is None else values)
                    for part in ("--set", value)]
        done = self.cluster.helm(action, *arguments, "--namespace", NAMESPACE, *settings, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def render(self, *values, namespace=NAMESPACE):
        """What `helm template` makes of the chart with these values, or says against them; with its status."""
        settings = [part for value in values for part in ("--set", value)]
        done = self.cluster.helm("template", RELEASE, CHART, "--namespace", namespace, "--kube-version=1.34.0",
                                 "--api-versions=resource.k8s.io/v1", *settings, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def helm(self, action, *arguments, values=()):
        """helm with the installation's values and these, waiting until what it installs is ready; its output."""
        status, text = self.try_helm(action, *arguments, "--wait", "--timeout=90s",
                                     values=(*self.installation.values, *values))
        check(status == 0, f"helm {action}: {text.strip()}")
        return text

    # --- nvdra's own pods

    def pods_of(self, component):
        """nvdra's pods of a component that are not being deleted."""
        found = self.list("pods", NAMESPACE, f"nvdra-component={component}")
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def plugin(self, node):
        """The plugin's pod on a node."""
        return next((p for p in self.pods_of("kubelet-plugin") if p["spec"].get("nodeName") == node), None)

    def wait_for_component(self, component, count, seconds=60, others_than=()):
        """Returns the pods when so many are Ready, none of them with a UID of `others_than`."""
        def ready():
            pods = self.pods_of(component)
            return pods if len(pods) == count and all(
                is_ready(p) and uid_of(p) not in others_than for p in pods) else None
        return wait(f"{count} {component} Ready", ready, seconds)

    def restart_plugin(self, node):
        """Kills the plugin's pod on a node and waits for its successor."""
        old = self.plugin(node)
        self.kill_pod(old)
        self.wait_for_component("kubelet-plugin", 2, others_than=[uid_of(old)])

    def wait_for_slices(self):
        """Returns when both nodes have published their devices and are labelled with their clique."""
        wait("ResourceSlices of both nodes", lambda: {"node-1", "node-2"} <= {
            s["spec"].get("nodeName") for s in self.list("resourceslices")
            if s["spec"]["driver"] == "compute-domain.nvidia.com"}, 30)
        wait("both nodes labelled with their clique", self._is_labelled, 30)

    def _is_labelled(self):
        """GPU Feature Discovery labels a node again and again; here, whenever the tests look."""
        if len(self.list("nodes", "default", CLIQUE_LABEL)) == 2:
            return True
        if not self.installation.own_clique_label:
            self.kubectl("label", "nodes", "--all", "--overwrite",
                         f"{CLIQUE_LABEL}={gpu_node.CLUSTER_UUID}.{gpu_node.CLIQUE}")
        return False

    def http(self, pod, port, path):
        """What an endpoint of one of nvdra's pods answers, through the API server."""
        return self.kubectl("get", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods/{name_of(pod)}:{port}/proxy{path}")

    def held_claims(self, node):
        """How many prepares the plugin of a node has in work."""
        for line in self.http(self.plugin(node), 8081, "/metrics").splitlines():
            if line.startswith("nvidia_dra_requests_inflight") and 'operation="prepare"' in line:
                return int(float(line.split()[-1]))
        raise Failed("no series nvidia_dra_requests_inflight")

    def plugin_log(self, node, since=""):
        """The log of a node's plugin."""
        more = [f"--since-time={since}"] if since else []
        return self.kubectl("logs", "-n", NAMESPACE, name_of(self.plugin(node)), "-c", "compute-domains", *more)

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
                "events", namespace, fields=f"reason=FailedPrepareDynamicResources,involvedObject.name={pod}")]
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
