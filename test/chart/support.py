"""Renders the chart and looks things up in what came out."""

import pathlib
import subprocess
import unittest

import yaml_subset

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "nvdra"
HELM = "helm"  # set by run.py

HOST_MANAGED = ["featureGates.HostManagedIMEXDaemon=true", "resources.computeDomains.imex.mode=hostManaged"]


def helm(*arguments):
    return subprocess.run([HELM, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)


def template(values=(), *, release="nvdra", namespace="nvdra", options=()):
    settings = [part for value in values for part in ("--set", value)]
    return helm("template", release, CHART, "-n", namespace, "--kube-version", "1.34.4", *settings, *options)


class Rendered:
    """The objects of one rendering, by kind and name."""

    def __init__(self, values=(), **where):
        result = template(values, **where)
        if result.returncode != 0:
            raise AssertionError(f"helm template failed for {list(values)}: {result.stderr}")
        self.objects = yaml_subset.documents(result.stdout)

    def names(self):
        return sorted(f"{one['kind']} {self.where(one)}{one['metadata']['name']}" for one in self.objects)

    @staticmethod
    def where(one):
        namespace = one["metadata"].get("namespace")
        return f"{namespace}/" if namespace else ""

    def all(self, kind):
        return [one for one in self.objects if one["kind"] == kind]

    def get(self, kind, name, namespace=None):
        for one in self.all(kind):
            if one["metadata"]["name"] == name and namespace in (None, one["metadata"].get("namespace")):
                return one
        raise AssertionError(f"no {kind} {name}; there are {', '.join(self.names())}")

    def controller(self, name="nvdra-controller"):
        return self.get("Deployment", name)["spec"]["template"]["spec"]["containers"][0]

    def plugin(self, name="nvdra-kubelet-plugin"):
        return self.get("DaemonSet", name)["spec"]["template"]["spec"]["containers"][0]

    def rules(self, kind, name, namespace=None):
        """{"group/resource": [verbs]}; a rule limited by name is written group/resource:name."""
        found = {}
        for rule in self.get(kind, name, namespace)["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for only in rule.get("resourceNames", [None]):
                        key = f"{group}/{resource}" + (f":{only}" if only else "")
                        found[key] = sorted(found.get(key, []) + rule["verbs"])
        return found


def env(container):
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container["env"]}


class ChartTest(unittest.TestCase):
    maxDiff = None

    def refused(self, sentence, *values, **where):
        """The rendering fails and says the sentence."""
        result = template(values, **where)
        self.assertNotEqual(0, result.returncode, f"helm accepted {values}")
        self.assertIn(sentence, result.stderr)
