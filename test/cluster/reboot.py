"""A node loses power and comes back.

Contract: `reboot(node)` ends every process of the node at once, containers included, empties /run as a
reboot does (the driver root stays: its installer would have put it there again), and starts containerd
and the kubelet. What is below /var/lib and /etc stays. Returns without waiting for the node to be Ready.
The boot id is the machine's, so it does not change.
"""

import os
import shutil
from pathlib import Path

from group import Group
from process import ProcessError, kill_until_none, start_time

LOST = "/run/"
KEPT = "nvidia"


def reboot(node):
    """See the module's head."""
    containers = {path.name for path in node.path("/run/containerd/io.containerd.runtime.v2.task/k8s.io").glob("*")}
    node.kubelet.stop(patience=0)
    node.containerd.stop(patience=0)
    _kill(node)
    for group in (Group(f"k8s.io/{name}") for name in containers):
        group.kill_all()
        group.remove()
    _unmount(node)
    for entry in node.path("/run").iterdir():
        if entry.name == KEPT:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    node.containerd.start()
    node.wait_for_containerd()
    node.kubelet.start()


def _kill(node, patience=10):
    """Every process in the node's mount namespace but the one that holds it: shims, services."""
    kill_until_none(lambda: [pid for pid in _processes(node) if pid != node.holder and start_time(pid)], patience,
                    lambda pids: ProcessError(f"{node.name}: processes {pids} do not end"))


def _processes(node):
    mine = os.readlink(f"/proc/{node.holder}/ns/mnt")
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(path / "ns/mnt") == mine:
                yield int(path.name)
        except OSError:
            continue


def _unmount(node):
    """Root file systems of containers, their volumes, network namespaces: what a reboot would not leave."""
    places = [line.split()[1] for line in Path(f"/proc/{node.holder}/mounts").read_text().splitlines()]
    lost = [p for p in places if p.startswith((LOST, "/var/lib/kubelet/")) and not p.startswith(f"{LOST}{KEPT}/")]
    for place in reversed(lost):
        done = node.exec("umount", "--lazy", place, capture_output=True, text=True)
        if done.returncode and "not mounted" not in done.stderr and "no mount point" not in done.stderr:
            raise ProcessError(f"{node.name}: {done.stderr.strip()}")
