"""nvdra-sandbox up with sixteen nodes: a domain over all of them forms, with few requests, and goes.

usage: up_test.py NVDRA_SANDBOX NVDRA

How many requests are wanted is printed. Sixteen daemons that join at the same moment collide more often on a busy
machine; so the test fails from twice as many on, and with NVDRA_FIGURES=strict at once.
"""

import collections
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

PROGRAM, NVDRA = sys.argv[1], sys.argv[2]
NODES = 16
WANTED_REQUESTS = 12 + 12 * NODES
MOST_REQUESTS = WANTED_REQUESTS * (1 if os.environ.get("NVDRA_FIGURES") == "strict" else 2)
DOMAINS = "/apis/resource.nvidia.com/v1beta1/namespaces/default/computedomains"
PODS = "/api/v1/namespaces/default/pods"
DOMAIN = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain", "metadata": {"name": "domain"},
          "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "channel"}}}}


def workload(node):
    """A pod on a node, with the domain's channel."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"work-{node}"}, "spec": {
        "nodeSelector": {"kubernetes.io/hostname": node}, "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "app", "image": "ubuntu:22.04", "command": ["sleep", "infinity"],
                        "resources": {"claims": [{"name": "channel"}]}}],
        "resourceClaims": [{"name": "channel", "resourceClaimTemplateName": "channel"}]}}


def is_ready(pod):
    """Whether a pod has the condition Ready."""
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ()))


class Sandbox:
    """`up`, until the block ends."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory()
        self._up = None
        self._url = ""

    def __enter__(self):
        command = [PROGRAM, "up", "--nodes", str(NODES), "--folder", f"{self._folder.name}/up", "--nvdra", NVDRA]
        self._up = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        said = ""
        for line in self._up.stdout:
            said += line
            if found := re.search(r"KUBECONFIG=(\S+)", line):
                with open(found[1], encoding="utf-8") as file:
                    self._url = re.search(r"server: (\S+)", file.read())[1]
                return self
        self.__exit__()
        raise RuntimeError(f"the sandbox ended: {said}")

    def __exit__(self, *_):
        self._up.send_signal(signal.SIGINT)
        status = self._up.wait(timeout=40)
        self._up.stdout.close()
        self._folder.cleanup()
        if status:
            raise RuntimeError(f"the sandbox ended with status {status}")

    def call(self, method, path, body=None):
        """The answer's object."""
        request = urllib.request.Request(self._url + path, json.dumps(body).encode() if body else None,
                                         {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def requests(self):
        """How many of each kind nvdra has sent since they were counted from zero."""
        counts = collections.Counter()
        for kind in self.call("GET", "/sandbox/requests"):
            if kind["userAgent"] == "nvdra":
                refused = f"({kind['status']})" if kind["status"] >= 300 else ""
                counts[kind["verb"], f"{kind['resource']}/{kind['subresource']}".rstrip("/") + refused] += kind["count"]
        return counts


def wait(what, condition, seconds):
    """Returns once the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.1)


class SixteenNodes(unittest.TestCase):
    def test_a_domain_over_all_nodes_forms_with_few_requests_and_goes(self):
        with Sandbox() as sandbox:
            nodes = [n["metadata"]["name"] for n in sandbox.call("GET", "/api/v1/nodes")["items"]]
            self.assertEqual(len(nodes), NODES)
            self.settle(sandbox)  # what belongs to the start does not count
            sandbox.call("DELETE", "/sandbox/requests")
            began = time.monotonic()
            sandbox.call("POST", DOMAINS, DOMAIN)
            for node in nodes:
                sandbox.call("POST", PODS, workload(node))

            wait("all workloads Ready", lambda: sum(map(is_ready, sandbox.call("GET", PODS)["items"])) == NODES, 40)
            wait("all nodes Ready in the status", lambda: self.members(sandbox) == dict.fromkeys(nodes, "Ready"), 10)
            taken = time.monotonic() - began
            # What still follows counts too.
            self.settle(sandbox)
            counts = sandbox.requests()
            told = ", ".join(f"{n} {' '.join(kind)}" for kind, n in counts.most_common())
            missed = ", MISSED" if counts.total() > WANTED_REQUESTS else ""
            print(f"{NODES} nodes: all workloads Ready after {taken:.1f} s; {counts.total()} requests "
                  f"(wanted {WANTED_REQUESTS}{missed}): {told}", file=sys.stderr)
            self.assertGreater(counts.total(), 8 * NODES, "nvdra's requests are not counted")
            self.assertLessEqual(counts.total(), MOST_REQUESTS, told)

            for node in nodes:
                sandbox.call("DELETE", f"{PODS}/work-{node}")
            sandbox.call("DELETE", f"{DOMAINS}/domain")
            wait("the domain gone", lambda: not sandbox.call("GET", DOMAINS)["items"], 40)

    @staticmethod
    def members(sandbox):
        """The members of the status, with their words."""
        status = sandbox.call("GET", f"{DOMAINS}/domain").get("status", {})
        return {n["name"]: n["status"] for n in status.get("nodes", ())}

    @staticmethod
    def settle(sandbox):
        """Returns when nvdra has sent nothing for a second."""
        before, since = sandbox.requests(), time.monotonic()

        def quiet():
            nonlocal before, since
            now = sandbox.requests()
            if now != before:
                before, since = now, time.monotonic()
            return time.monotonic() - since > 1
        wait("no further request", quiet, 20)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
