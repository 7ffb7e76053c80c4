"""A control group that holds every process of one cluster, so that none can be left behind.

Contract: a process that joins before it executes its program belongs to the group with all its
descendants, also those that detach themselves (containers move into groups below this one).
`kill_all()` returns when none is left; `remove()` takes away the group in every hierarchy. Both may be
called at any time, by any later process, for a group that never existed. Works with cgroup v1 and v2.
Needs root.
"""

import os
import time
from pathlib import Path

from process import kill_until_none, start_time

ROOT = Path("/sys/fs/cgroup")


class GroupError(Exception):
    """Processes cannot be grouped, or cannot be ended."""


def hierarchies():
    """The folders below which groups can be made: one with cgroup v2, one per controller with v1."""
    if (ROOT / "cgroup.controllers").exists():
        return [ROOT]
    return sorted(p for p in ROOT.iterdir() if (p / "cgroup.procs").exists() and not p.is_symlink())


class Group:
    """The control group /NAME. Programs live in /NAME/programs, containers in /NAME/pods."""

    def __init__(self, name):
        self.name = name
        self.pods = f"/{name}/pods"

    def create(self):
        """Makes the group; it may exist."""
        try:
            for path in (self._programs(), *(h / self.name / "pods" for h in hierarchies())):
                path.mkdir(parents=True, exist_ok=True)
            self._inherit_cpus()
        except OSError as error:
            raise GroupError(f"control group {self.name}: {error.strerror} at {error.filename}: "
                             "a cluster needs root and a writable /sys/fs/cgroup") from error

    def join(self):
        """Puts the calling process into the group. For use between fork and exec."""
        with open(self._programs() / "cgroup.procs", "w", encoding="ascii") as file:
            file.write("0")

    def has(self, pid):
        """Whether the process is one of the group's own programs."""
        return pid in _pids(self._programs())

    def kill_all(self, patience=20):
        """Kills every member until none is left. Raises GroupError when some survive."""
        kill_until_none(self._members, patience,
                        lambda pids: GroupError(f"processes {pids} in control group {self.name} do not end"))

    def remove(self, patience=5):
        """Removes the empty group in all hierarchies."""
        deadline = time.monotonic() + patience
        while left := [p for p in self._folders() if not _removed(p)]:
            if time.monotonic() > deadline:
                raise GroupError(f"control group {left[0]} is still in use")
            time.sleep(0.02)

    def remove_if_empty(self):
        """Removes the group where nobody uses it."""
        for root in hierarchies():
            _removed(root / self.name)

    def _programs(self):
        roots = hierarchies()
        chosen = next((r for name in ("pids", "freezer") for r in roots if r.name == name), roots[0])
        return chosen / self.name / "programs"

    def _inherit_cpus(self):
        """With v1, a new group may use no processor and no memory node until it is told which."""
        root = next((r for r in hierarchies() if (r / "cpuset.cpus").exists() and r != ROOT), None)
        for folder in (root / self.name, root / self.pods.lstrip("/")) if root else ():
            for file in ("cpuset.cpus", "cpuset.mems"):
                (folder / file).write_text((folder.parent / file).read_text())

    def _folders(self):
        """All groups from here on, innermost first."""
        for root in hierarchies():
            for folder, _, _ in os.walk(root / self.name, topdown=False):
                yield Path(folder)

    def _members(self):
        return {pid for folder in self._folders() for pid in _pids(folder) if start_time(pid)}


def _pids(folder):
    try:
        return {int(line) for line in (folder / "cgroup.procs").read_text().split()}
    except OSError:
        return set()


def _removed(folder):
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
