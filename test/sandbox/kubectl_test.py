"""An ordinary kubectl works with nvdra-sandbox api.

usage: kubectl_test.py NVDRA_SANDBOX CRD_FOLDER
kubectl is taken from $KUBEBUILDER_ASSETS, the tool cache of ./dev (`./dev test` builds one), or PATH;
without one the test is skipped.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

PROGRAM, CRDS = sys.argv[1], sys.argv[2]
DOMAIN = """
apiVersion: resource.nvidia.com/v1beta1
kind: ComputeDomain
metadata:
  name: my-compute-domain
spec:
  numNodes: 0
  channel:
    resourceClaimTemplate:
      name: imex-channel-0
"""
POD = """
apiVersion: v1
kind: Pod
metadata:
  name: p
  labels: {a: b}
spec:
  containers:
  - name: c
    image: i
"""
NODE = """
apiVersion: v1
kind: Node
metadata:
  name: n1
"""


def find_kubectl():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    folders = [os.environ.get("KUBEBUILDER_ASSETS", "")]
    for what in ("kubernetes", "kubectl"):
        folders += sorted(map(str, (cache / "nvdra" / what).glob("[0-9]*")))
    for folder in folders:
        if folder and os.access(os.path.join(folder, "kubectl"), os.X_OK):
            return os.path.join(folder, "kubectl")
    return shutil.which("kubectl")


KUBECTL = find_kubectl()


class Kubectl(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.config = os.path.join(self.folder.name, "kubeconfig")
        self.sandbox = subprocess.Popen(
            [PROGRAM, "api", "--crds", CRDS, "--kubeconfig", self.config],
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.stop)
        self.assertEqual(self.sandbox.stdout.readline().strip(), self.config)
        with open(self.config) as file:
            self.url = next(line.split()[1] for line in file if "server:" in line)

    def stop(self):
        self.sandbox.send_signal(signal.SIGTERM)
        self.assertEqual(self.sandbox.wait(timeout=20), 0)
        self.sandbox.stdout.close()

    def command(self, *words):
        environment = {"HOME": self.folder.name, "PATH": os.environ["PATH"]}
        return [KUBECTL, "--kubeconfig", self.config, *words], environment

    def run_kubectl(self, *words, text=None):
        command, environment = self.command(*words)
        return subprocess.run(command, env=environment, input=text, text=True,
                              capture_output=True, timeout=60)

    def kubectl(self, *words, text=None):
        done = self.run_kubectl(*words, text=text)
        self.assertEqual(done.returncode, 0, f"kubectl {words}: {done.stdout}{done.stderr}")
        return done.stdout

    def apply(self, text):
        return self.kubectl("apply", "-f", "-", text=text)

    def request(self, method, path, body=None, content_type="application/json"):
        request = urllib.request.Request(self.url + path, method=method,
                                         data=json.dumps(body).encode() if body else None,
                                         headers={"Content-Type": content_type})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def test_apply_get_and_delete_a_compute_domain(self):
        self.assertIn("computedomain.resource.nvidia.com/my-compute-domain created",
                      self.apply(DOMAIN))
        self.assertIn("unchanged", self.apply(DOMAIN))
        header, row = self.kubectl("get", "computedomain").splitlines()
        self.assertEqual(header.split(), ["NAME", "STATUS", "NODES", "AGE"])
        self.assertIn("my-compute-domain", row)
        self.assertIn("my-compute-domain", self.kubectl("get", "cd", "-A"))
        uid = self.kubectl("get", "computedomain", "my-compute-domain",
                           "-o", "jsonpath={.metadata.uid}")
        self.assertEqual(len(uid), 36)
        self.assertEqual(
            self.kubectl("get", "daemonset", "--all-namespaces",
                         "-l", f"resource.nvidia.com/computeDomain={uid}"), "")
        self.assertIn("deleted", self.kubectl("delete", "computedomain", "my-compute-domain"))
        gone = self.run_kubectl("get", "computedomain", "my-compute-domain")
        self.assertIn("NotFound", gone.stderr)

    def test_invalid_and_unknown_fields_are_refused_in_kubectl_s_words(self):
        unknown = self.run_kubectl("apply", "-f", "-", text=DOMAIN + "  colour: red\n")
        self.assertIn('unknown field "spec.colour"', unknown.stderr)
        self.apply(DOMAIN)
        changed = self.run_kubectl("apply", "-f", "-",
                                   text=DOMAIN.replace("numNodes: 0", "numNodes: 3"))
        self.assertIn("spec is immutable", changed.stderr)

    def test_label_patch_wait_and_server_side_apply(self):
        self.apply(DOMAIN)
        name = "computedomain/my-compute-domain"
        self.kubectl("label", name, "x=y")
        self.assertIn("x=y", self.kubectl("get", name, "--show-labels"))
        self.kubectl("annotate", name, "note=1")
        self.kubectl("apply", "--server-side", "-f", "-", text=DOMAIN)
        command, environment = self.command(
            "wait", "--for=jsonpath={.status.status}=Ready", name, "--timeout=30s")
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as wait:
            self.request("PATCH", "/apis/resource.nvidia.com/v1beta1/namespaces/default/"
                         "computedomains/my-compute-domain/status",
                         {"status": {"status": "Ready"}}, "application/merge-patch+json")
            out, _ = wait.communicate(timeout=40)
        self.assertEqual(wait.returncode, 0, out)
        self.assertIn("condition met", out)

    def test_pods_nodes_events_and_describe(self):
        self.apply(NODE)
        self.apply(POD)
        self.kubectl("wait", "--for=condition=PodScheduled", "pod/p", "--timeout=30s")
        wide = self.kubectl("get", "pods", "-o", "wide")
        self.assertIn("n1", wide)
        self.assertIn("Pending", wide)
        described = self.kubectl("describe", "pod", "p")
        self.assertIn("Successfully assigned default/p to n1", described)
        events = self.kubectl("get", "events", "--field-selector", "reason=Scheduled",
                              "--sort-by=.lastTimestamp")
        self.assertIn("pod/p", events)
        self.assertIn("n1", self.kubectl("describe", "node", "n1"))
        self.kubectl("cordon", "n1")
        self.assertIn("SchedulingDisabled", self.kubectl("get", "nodes"))
        self.kubectl("delete", "pod", "p", "--grace-period=0", "--force")
        self.assertIn("NotFound", self.run_kubectl("get", "pod", "p").stderr)

    def test_daemonset_rollout_and_workloads(self):
        self.apply(NODE)
        self.apply("""
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: d}
spec:
  selector: {matchLabels: {a: d}}
  template:
    metadata: {labels: {a: d}}
    spec: {containers: [{name: c, image: i}]}
""")
        self.kubectl("wait", "--for=jsonpath={.status.desiredNumberScheduled}=1", "daemonset/d",
                     "--timeout=30s")
        header = self.kubectl("get", "daemonset").splitlines()[0].split()
        self.assertEqual(header[:4], ["NAME", "DESIRED", "CURRENT", "READY"])
        self.kubectl("describe", "daemonset", "d")
        pod = self.kubectl("get", "pod", "-l", "a=d", "-o", "name").strip()
        self.request("PATCH", "/api/v1/namespaces/default/pods/" + pod.split("/")[1] + "/status",
                     {"status": {"phase": "Running",
                                 "conditions": [{"type": "Ready", "status": "True"}]}},
                     "application/merge-patch+json")
        self.kubectl("rollout", "status", "daemonset/d", "--timeout=30s")
        self.kubectl("create", "namespace", "other")
        self.kubectl("create", "configmap", "m", "-n", "other", "--from-literal=k=v")
        self.kubectl("delete", "namespace", "other", "--timeout=30s")

    def test_watch_shows_changes(self):
        command, environment = self.command("get", "computedomain", "-w", "--output-watch-events")
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as watch:
            try:
                deadline = time.monotonic() + 20
                while not any(count["verb"] == "watch" and count["resource"] == "computedomains"
                              for count in self.request("GET", "/sandbox/requests")):
                    self.assertLess(time.monotonic(), deadline, "kubectl opened no watch")
                self.apply(DOMAIN)
                self.assertIn("EVENT", watch.stdout.readline())
                self.assertIn("ADDED", watch.stdout.readline())
            finally:
                watch.kill()

    def test_version_discovery_and_permissions(self):
        self.assertIn("v1.34.4", self.kubectl("version"))
        resources = self.kubectl("api-resources")
        self.assertIn("computedomaincliques", resources)
        self.assertIn("deviceclasses", resources)
        self.assertEqual(self.kubectl("auth", "can-i", "create", "pods").strip(), "yes")
        for path in ["/healthz", "/readyz", "/openapi/v2"]:
            self.kubectl("get", "--raw", path)
        self.kubectl("apply", "-f", CRDS)

    def test_logs_and_exec_say_that_no_kubelet_is_there(self):
        self.apply(NODE)
        self.apply(POD)
        self.kubectl("wait", "--for=condition=PodScheduled", "pod/p", "--timeout=30s")
        self.assertIn("has no kubelet", self.run_kubectl("logs", "p").stderr)
        self.assertNotEqual(self.run_kubectl("exec", "p", "--", "true").returncode, 0)


if __name__ == "__main__":
    if not KUBECTL:
        print("skipped: no kubectl in $KUBEBUILDER_ASSETS, the cache of ./dev, or PATH")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
