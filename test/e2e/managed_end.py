"""Taking everything away (B12). These tests remove definitions, so they are the last of their installation."""

import time

from commands import check, wait
from domains import create, form
from harness import CHART, test
from installations import DEFAULT
from objects import name_of, restarts, workload

INSTALLATION = DEFAULT


@test
def B12_everything_can_be_deleted_in_time_and_the_definition_too(world):
    form(world, "node-1", name="first")
    create(world, "second")
    world.delete("pods", "--all", "--grace-period=1")
    before = counts(world)
    taken = {}
    for kind in ("computedomains", "resourceclaimtemplates", "resourceclaims"):
        began = time.monotonic()
        world.delete(kind, "--all", "-n", "default", seconds=10)
        taken[kind] = time.monotonic() - began
    began = time.monotonic()
    world.delete("crd", "computedomains.resource.nvidia.com", seconds=10)
    taken["definition"] = time.monotonic() - began
    world.kubectl("apply", "-f", CHART / "crds")
    wait("the definition served", lambda: world.try_kubectl("get", "computedomains")[0] == 0, 20)
    # Everybody's watch of the old definition has ended.
    create(world, "third")
    world.apply(workload("work", "third-channel"))
    world.wait_pod_ready("work", 90)
    check(counts(world) == before, f"restarts before {before}, now {counts(world)}")
    return ", ".join(f"{what} {seconds:.1f} s" for what, seconds in taken.items())


def counts(world):
    """How often each container of nvdra was restarted, by pod."""
    return {name_of(p): restarts(p) for component in ("controller", "kubelet-plugin") for p in world.pods_of(component)}
