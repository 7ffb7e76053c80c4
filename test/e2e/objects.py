"""Objects that the tests make, and what is asked of objects everywhere. Nothing here talks to a cluster."""

import json

CLIQUE_LABEL = "nvidia.com/gpu.clique"
UNTIL_TERM = "trap 'exit 0' TERM; sleep 9999 & wait"


def uid_of(obj):
    """The UID of an object."""
    return obj["metadata"]["uid"]


def name_of(obj):
    """The name of an object."""
    return obj["metadata"]["name"]


def is_ready(pod):
    """Whether a pod has the condition Ready."""
    return condition(pod, "Ready").get("status") == "True"


def condition(obj, kind):
    """The condition of a type, or {}."""
    found = obj.get("status", {}).get("conditions", ())
    return next((c for c in found if c["type"] == kind), {})


def conditions_text(obj):
    """All conditions in one text, to look for words in."""
    return "; ".join(f"{c['type']}={c['status']} {c['reason']}: {c['message']}"
                     for c in obj.get("status", {}).get("conditions", ()))


def restarts(pod):
    """How often the pod's containers were restarted."""
    return sum(s["restartCount"] for s in pod["status"].get("containerStatuses", ()))


def compute_domain(name, template, namespace="default", mode=None, nodes=0):
    """A ComputeDomain."""
    channel = {"resourceClaimTemplate": {"name": template}, **({"allocationMode": mode} if mode else {})}
    return {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain",
            "metadata": {"name": name, "namespace": namespace}, "spec": {"numNodes": nodes, "channel": channel}}


def workload(name, template=None, claim=None, node=None, namespace="default", script=UNTIL_TERM):
    """A pod that uses a claim (from a template, or by name) and ends at once when asked to."""
    source = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim}
    placed = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": {
        "terminationGracePeriodSeconds": 1, **placed,
        "containers": [{"name": "app", "image": "ubuntu:22.04", "command": ["bash", "-c"], "args": [script],
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


def claim_template(name):
    """A ResourceClaimTemplate that a user made."""
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name},
            "spec": {"spec": {"devices": {"requests": [{"name": "channel", "exactly": {
                "deviceClassName": "compute-domain-default-channel.nvidia.com"}}]}}}}


def json_patch(*operations):
    """The text of a JSON patch of (op, path[, value]) tuples."""
    return json.dumps([dict(zip(("op", "path", "value"), o)) for o in operations])
