"""Figures on a real API server. They are printed; a test fails only when a figure is far off."""

import json
import time
from pathlib import Path

from harness import check, compute_domain, test, wait

COUNT = 100


@test
def one_hundred_ComputeDomains_form_and_go(world):
    file = world.folder / "domains.json"
    domains = [compute_domain(f"many-{i}", f"many-{i}-channel") for i in range(COUNT)]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": domains}))
    status = "jsonpath={.items[*].status.status}"
    began = time.monotonic()
    world.kubectl("create", "-f", file)
    created = time.monotonic() - began
    wait(f"{COUNT} ComputeDomains Ready", lambda: world.kubectl(
        "get", "computedomains", "-o", status).split().count("Ready") == COUNT, 60)
    formed = time.monotonic() - began
    check(len(world.list("resourceclaimtemplates")) == COUNT, "there are not as many templates")
    began = time.monotonic()
    world.delete("-f", file, "--wait=false", seconds=60)
    wait("all ComputeDomains gone", lambda: not world.kubectl("get", "computedomains", "-o", "name"), 60)
    gone = time.monotonic() - began
    wait("all templates gone", lambda: not world.list("resourceclaimtemplates"), 10)
    check(formed <= 20 and gone <= 20, f"formed after {formed:.1f} s, gone after {gone:.1f} s")
    return (f"created by kubectl in {created:.1f} s, all Ready after {formed:.1f} s (wanted: 4 s), "
            f"all gone {gone:.1f} s after the deletion began (wanted: 6 s)")


@test
def controller_and_plugin_are_small(world):
    sizes = {}
    for component, program, wanted in (("controller", "compute-domain-controller", 12),
                                       ("kubelet-plugin", "compute-domain-kubelet-plugin", 16)):
        for pod in world.pods_of(component):
            sizes[f"{component} ({wanted} MB wanted)"] = max(
                sizes.get(f"{component} ({wanted} MB wanted)", 0), resident(pod["metadata"]["uid"], program))
    check(all(0 < size < 100 for size in sizes.values()), f"resident memory in MB: {sizes}")
    return ", ".join(f"{name}: {size:.1f} MB resident" for name, size in sizes.items())


def resident(uid, program):
    """MB of resident memory of a pod's process."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if uid in (path / "cgroup").read_text() and program.encode() in (path / "cmdline").read_bytes():
                line = next(l for l in (path / "status").read_text().splitlines() if l.startswith("VmRSS"))
                return int(line.split()[1]) / 1000
        except OSError:
            continue
    return 0
