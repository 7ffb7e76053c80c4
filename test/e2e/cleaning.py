"""After each test: what it made is deleted, the nodes are repaired, and nvdra may have left nothing.

Contract: `clean(world)` raises Failed with a list when something of a domain is still there half a
minute after its ComputeDomain and its pods went; it then takes that away by force, so that the next
test starts on a clean cluster.
"""

import json

import gpu_node
from commands import Failed, wait
from harness import CHECKPOINT, NAMESPACE
from objects import json_patch, name_of

DOMAIN_LABEL = "resource.nvidia.com/computeDomain"
SECONDS = 40
# What tests make. Templates and claims follow their owners, but some tests make their own.
FIRST = ("jobs", "pods", "computedomains")
SECOND = ("resourceclaimtemplates", "resourceclaims")
# What belongs to domains, wherever it is.
OWNED = ("daemonsets", "resourceclaimtemplates", "computedomaincliques", "nodes")


def clean(world):
    """See the module's head."""
    _repair(world)
    _delete_made(world)
    if world.installation.host_managed:
        for gpu in world.gpu:
            gpu.wait_for_service()
    try:
        wait("nothing left of a domain", lambda: _nothing_left(world), SECONDS, 0.5)
    except Failed:
        _force(world)
        raise


def _repair(world):
    for gpu in world.gpu:
        gpu.faults()
        for tool in gpu_node.TOOLS:
            if not (gpu.root / "usr/bin" / tool).exists():
                gpu.restore_tool(tool)
        for library in gpu.missing_libraries():
            gpu.restore_library(library)
        if world.installation.host_managed:
            gpu.service_resume()
            if not gpu.service_is_active() or gpu.service_state() != "READY":
                gpu.service_stop()
                gpu.service_start()


def _delete_made(world):
    for namespace in ("default", "other"):
        made = [kind for kind in FIRST if world.list(kind, namespace)]
        if made:
            world.try_kubectl("delete", ",".join(made), "--all", "-n", namespace, f"--timeout={SECONDS}s", "--grace-period=1")
        for kind in SECOND:
            if left := [name_of(o) for o in world.list(kind, namespace) if _is_users(o)]:
                world.try_kubectl("delete", kind, *left, "-n", namespace, "--timeout=20s")


def _is_users(obj):
    """Whether a test made the object itself: nobody else will delete it."""
    return not obj["metadata"].get("ownerReferences") and DOMAIN_LABEL not in obj["metadata"].get("labels", {})


def _nothing_left(world):
    left = leftovers(world)
    if left:
        raise Failed(", ".join(left))
    return True


def leftovers(world):
    """Everything of a domain that is in the cluster or on a node, in words."""
    found = [o for kind in OWNED for o in world.list(kind, None, DOMAIN_LABEL)] + world.list("computedomains", None)
    left = [f"{o['kind']} {o['metadata'].get('namespace', '')}/{name_of(o)}" for o in found]
    left += [f"Pod {name_of(p)}" for p in world.list("pods", NAMESPACE, DOMAIN_LABEL)]
    left += [f"ResourceClaim {c['metadata']['namespace']}/{name_of(c)}" for c in world.list("resourceclaims", None)]
    for node in world.cluster.nodes:
        left += [f"{node.name}:{file.name}" for file in node.path("/run/cdi").glob("*claim*")]
        left += [f"{node.name}: checkpoint entry {entry}" for entry in checkpoint_entries(node)]
    return left


def checkpoint_entries(node):
    """`namespace/name state` of what a node's plugin has prepared, without what was aborted."""
    try:
        claims = json.loads(node.path(CHECKPOINT).read_text())["v2"].get("preparedClaims") or {}
    except FileNotFoundError:
        return []
    return [f"{c.get('namespace')}/{c.get('name')} {c.get('checkpointState')}" for c in claims.values()
            if c.get("checkpointState") != "PrepareAborted"]


def _force(world):
    kinds = [kind for kind in OWNED if kind != "nodes"]
    found = [o for kind in kinds for o in world.list(kind, None, DOMAIN_LABEL)] + world.list("computedomains", None)
    for item in found:
        kind, place = item["kind"], ("-n", item["metadata"]["namespace"])
        world.try_kubectl("delete", kind, name_of(item), *place, "--wait=false")
        world.try_kubectl("patch", kind, name_of(item), *place, "--type=json", "-p",
                          json_patch(("remove", "/metadata/finalizers")))
    world.try_kubectl("delete", "pods", "-n", NAMESPACE, "-l", DOMAIN_LABEL, "--force", "--grace-period=0")
    world.try_kubectl("delete", "pods,jobs", "--all", "-n", "default", "--force", "--grace-period=0")
    world.try_kubectl("label", "nodes", "--all", f"{DOMAIN_LABEL}-")
