"""The chart on a real API server: what it accepts of our objects and what our accounts may do there.

KUBECONFIG and KUBEBUILDER_ASSETS name the server and the folder with kubectl; kube-controller-manager
must run. No kubelet is needed: no pod ever starts here.
"""

import functools
import json
import os
import subprocess
import tempfile
import time
import unittest

from support import CHART, HOST_MANAGED, helm

KUBECTL = os.path.join(os.environ.get("KUBEBUILDER_ASSETS", ""), "kubectl")
PLUGIN = "nvdra-service-account-kubeletplugin"
OWN_LABEL = "kubeletPlugin.containers.computeDomains.gpuCliqueLabelEnabled=true"

DOMAIN = {
    "apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain",
    "metadata": {"name": "my-compute-domain", "namespace": "default"},
    "spec": {"channel": {"resourceClaimTemplate": {"name": "imex-channel-0"}}},
}


def kubectl(*arguments, text=None, kubeconfig=None):
    command = [KUBECTL, *(["--kubeconfig", kubeconfig] if kubeconfig else []), *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)


def must(result):
    if result.returncode != 0:
        raise AssertionError(f"{result.args}: {result.stdout}{result.stderr}")
    return result.stdout


def apply(one, **how):
    return kubectl("apply", "-f", "-", text=json.dumps(one), **how)


def upgrade(*values):
    settings = [part for value in values for part in ("--set", value)]
    return must(helm("upgrade", "--install", "nvdra", CHART, "-n", "nvdra", "--create-namespace", "--reset-values", *settings))


def eventually(look, expected, limit=15):
    """What look() gives once it is the expected, or after limit seconds: the API server learns of new
    roles and policies a moment after they were written."""
    end = time.monotonic() + limit
    while (seen := look()) != expected and time.monotonic() < end:
        time.sleep(0.1)
    return seen


def may(account, verb, resource, namespace):
    user = f"system:serviceaccount:nvdra:{account}"
    return kubectl("auth", "can-i", verb, resource, "-n", namespace, "--as", user).stdout.strip() == "yes"


class OnCluster(unittest.TestCase):
    def tearDown(self):
        for kind in ("computedomains", "resourceslices", "pods"):
            kubectl("delete", kind, "--all", "--all-namespaces" if kind != "resourceslices" else "--wait=true",
                    "--force", "--grace-period=0")

    def refused(self, result, sentence):
        self.assertNotEqual(0, result.returncode, result.stdout)
        self.assertIn(sentence, result.stderr)


class Install(OnCluster):
    def test_install_upgrade_to_the_other_mode_and_uninstall(self):
        upgrade(*HOST_MANAGED)
        classes = must(kubectl("get", "deviceclass", "-o", "name"))
        self.assertEqual(["deviceclass.resource.k8s.io/compute-domain-default-channel.nvidia.com"], classes.split())
        upgrade("controller.leaderElection.enabled=true")
        self.assertIn("compute-domain-daemon.nvidia.com", must(kubectl("get", "deviceclass", "-o", "name")))
        must(kubectl("get", "clusterrole", "compute-domain-daemon-role"))
        self.assertIn("installed in the namespace nvdra, IMEX mode hostManaged", upgrade(*HOST_MANAGED))
        self.assertNotIn("compute-domain-daemon.nvidia.com", must(kubectl("get", "deviceclass", "-o", "name")))
        self.refused(kubectl("get", "clusterrole", "compute-domain-daemon-role"), "not found")
        self.assertEqual("Recreate", must(kubectl("get", "deployment", "-n", "nvdra", "nvdra-controller", "-o",
                                                  "jsonpath={.spec.strategy.type}")))
        must(helm("uninstall", "nvdra", "-n", "nvdra", "--wait"))
        must(kubectl("get", "crd", "computedomains.resource.nvidia.com", "computedomaincliques.resource.nvidia.com"))

    def test_the_accounts_may_do_what_their_mode_needs(self):
        controller, daemon = "nvdra-service-account-controller", "compute-domain-daemon-service-account"
        for mode, managed in ((HOST_MANAGED, False), ([], True)):
            upgrade(*mode)
            for account, verb, resource, namespace, expected in (
                    (controller, "patch", "computedomains.resource.nvidia.com/status", "default", True),
                    (controller, "create", "resourceclaimtemplates.resource.k8s.io", "default", True),
                    (controller, "create", "events", "default", True),
                    (controller, "create", "daemonsets.apps", "nvdra", managed),
                    (controller, "create", "daemonsets.apps", "default", False),
                    (controller, "patch", "nodes", "default", managed),
                    (controller, "list", "pods", "nvdra", managed),
                    (controller, "get", "secrets", "nvdra", False),
                    (controller, "update", "leases.coordination.k8s.io", "nvdra", False),
                    (PLUGIN, "create", "resourceslices.resource.k8s.io", "default", True),
                    (PLUGIN, "get", "nodes", "default", True),
                    (PLUGIN, "patch", "nodes", "default", managed),
                    (PLUGIN, "watch", "computedomaincliques.resource.nvidia.com", "nvdra", managed),
                    (PLUGIN, "create", "pods", "nvdra", False),
                    (daemon, "delete", "computedomaincliques.resource.nvidia.com", "nvdra", managed)):
                with self.subTest(mode=mode, account=account, verb=verb, resource=resource, namespace=namespace):
                    self.assertEqual(expected, eventually(lambda: may(account, verb, resource, namespace), expected))
        upgrade(*HOST_MANAGED, "controller.leaderElection.enabled=true")
        lease = "leases.coordination.k8s.io/nvdra-controller"
        self.assertTrue(eventually(lambda: may(controller, "update", lease, "nvdra"), True))
        self.assertFalse(may(controller, "update", "leases.coordination.k8s.io/other", "nvdra"))


class Domains(OnCluster):
    @classmethod
    def setUpClass(cls):
        upgrade(*HOST_MANAGED)
        must(kubectl("wait", "--for=condition=Established", "crd", "--all"))

    def test_a_minimal_domain_gets_its_defaults(self):
        must(apply(DOMAIN))
        spec = json.loads(must(kubectl("get", "cd", "my-compute-domain", "-o", "json")))["spec"]
        self.assertEqual({"numNodes": 0, "channel": {"allocationMode": "Single",
                                                     "resourceClaimTemplate": {"name": "imex-channel-0"}}}, spec)

    def test_a_domain_without_spec_or_with_a_bad_template_name_is_refused(self):
        self.refused(apply({**DOMAIN, "spec": None}), "spec: Required value")
        self.refused(apply({**DOMAIN, "spec": {}}), "spec.channel: Required value")
        for name in ("", "Upper", "a\nb", "a/b", "a" * 254):
            channel = {"resourceClaimTemplate": {"name": name}}
            self.refused(apply({**DOMAIN, "spec": {"channel": channel}}), "spec.channel.resourceClaimTemplate.name")

    def test_the_spec_can_be_neither_changed_nor_removed(self):
        must(apply(DOMAIN))
        patch = ("patch", "computedomain", "my-compute-domain", "--type=merge", "-p")
        self.refused(kubectl(*patch, '{"spec":{"numNodes":2}}'), "spec is immutable")
        self.refused(kubectl(*patch, '{"spec":null}'), "spec: Required value")

    def test_the_status_is_shown_and_checked(self):
        must(apply(DOMAIN))
        patch = ("patch", "computedomain", "my-compute-domain", "--subresource=status", "--type=merge", "-p")
        status = {"status": "Ready", "nodeSummary": "1/2", "observedGeneration": 1,
                  "nodes": [{"name": "n", "ipAddress": "198.18.0.2", "cliqueID": ""}],
                  "conditions": [{"type": "Ready", "status": "True", "reason": "Admitted", "message": "",
                                  "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
        must(kubectl(*patch, json.dumps({"status": status})))
        shown = must(kubectl("get", "cd")).splitlines()
        self.assertEqual(["NAME", "STATUS", "NODES", "AGE"], shown[0].split())
        self.assertEqual(["my-compute-domain", "Ready", "1/2"], shown[1].split()[:3])
        stored = json.loads(must(kubectl("get", "cd", "my-compute-domain", "-o", "json")))["status"]
        self.assertEqual("NotReady", stored["nodes"][0]["status"])
        self.refused(kubectl(*patch, '{"status":{"status":"Maybe"}}'), "Unsupported value")
        double = {"status": {"nodes": status["nodes"] * 2}}
        self.refused(kubectl(*patch, json.dumps(double)), "Duplicate value")

    def test_cliques_keep_their_entries_at_the_top(self):
        clique = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomainClique",
                  "metadata": {"name": "c", "namespace": "nvdra"},
                  "daemons": [{"nodeName": "n", "ipAddress": "198.18.0.2", "cliqueID": "x.1", "index": 0}]}
        must(apply(clique))
        self.assertEqual("NotReady", must(kubectl("get", "cdc", "c", "-n", "nvdra", "-o", "jsonpath={.daemons[0].status}")))
        must(kubectl("delete", "cdc", "c", "-n", "nvdra"))


class PluginToken(OnCluster):
    """A token as the plugin has it: bound to a pod that runs on node n1."""

    @classmethod
    def setUpClass(cls):
        upgrade(*HOST_MANAGED, OWN_LABEL)
        for name in ("n1", "n2"):
            must(apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}))

    @classmethod
    def tearDownClass(cls):
        kubectl("delete", "node", "n1", "n2")

    def setUp(self):
        must(apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plugin", "namespace": "nvdra"}, "spec": {
            "nodeName": "n1", "serviceAccountName": PLUGIN, "containers": [{"name": "c", "image": "none"}],
            "tolerations": [{"operator": "Exists"}]}}))
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.bound = self.kubeconfig("--bound-object-kind=Pod", "--bound-object-name=plugin")
        self.free = self.kubeconfig()
        for attempt in (("create", "-f", "-"), ("label", "node", "n2", "a=b")):
            self.assertEqual(1, eventually(functools.partial(self.dry_run, *attempt), 1), "the policies are not in force")

    def dry_run(self, *command):
        return kubectl(*command, "--dry-run=server", text=json.dumps(self.slice("n2")), kubeconfig=self.bound).returncode

    def kubeconfig(self, *binding):
        if binding:
            uid = must(kubectl("get", "pod", "plugin", "-n", "nvdra", "-o", "jsonpath={.metadata.uid}"))
            binding = (*binding, f"--bound-object-uid={uid}")
        token = must(kubectl("create", "token", PLUGIN, "-n", "nvdra", *binding)).strip()
        config = json.loads(must(kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json")))
        config["users"][0]["user"] = {"token": token}
        path = os.path.join(self.folder.name, f"{len(binding)}.kubeconfig")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        return path

    def slice(self, node="n1", driver="compute-domain.nvidia.com", **place):
        return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"slice-{node}"}, "spec": {
            "driver": driver, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}, "devices": [],
            **(place or {"nodeName": node})}}

    def test_its_own_nodes_slice_can_be_written_and_deleted(self):
        must(apply(self.slice(), kubeconfig=self.bound))
        must(kubectl("delete", "resourceslice", "slice-n1", kubeconfig=self.bound))

    def test_a_foreign_nodes_slice_cannot(self):
        sentence = "the kubelet plugin of node n1 may write ResourceSlices of that node only"
        self.refused(apply(self.slice("n2"), kubeconfig=self.bound), sentence)
        self.refused(apply(self.slice(allNodes=True), kubeconfig=self.bound), sentence)
        must(apply(self.slice("n2")))
        self.refused(kubectl("delete", "resourceslice", "slice-n2", kubeconfig=self.bound), sentence)

    def test_a_foreign_drivers_slice_cannot(self):
        self.refused(apply(self.slice(driver="gpu.nvidia.com"), kubeconfig=self.bound),
                     "ResourceSlices of the driver compute-domain.nvidia.com only")

    def test_a_token_without_node_cannot(self):
        self.refused(apply(self.slice(), kubeconfig=self.free), "names no node")

    def test_its_own_node_can_be_labelled_and_no_more(self):
        label = ("nvidia.com/gpu.clique=x.1", "--overwrite")
        must(kubectl("label", "node", "n1", *label, kubeconfig=self.bound))
        self.refused(kubectl("label", "node", "n2", *label, kubeconfig=self.bound),
                     "the kubelet plugin of node n1 may change that node only")
        self.refused(kubectl("patch", "node", "n1", "--type=merge", "-p", '{"spec":{"unschedulable":true}}', kubeconfig=self.bound),
                     "may change labels and annotations of its node only")
