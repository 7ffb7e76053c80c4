"""The processes behind containers, seen from the machine that plays all nodes."""

from pathlib import Path

from commands import Failed


def processes_of(container):
    """Process ids of a container, by its id as the API gives it; the first one is its main process."""
    identity = container.rpartition("/")[2]
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if identity in (path / "cgroup").read_text():
                found.append(int(path.name))
        except OSError:
            continue
    return sorted(found)


def main_process(container):
    """The process id of a container's main process."""
    found = processes_of(container)
    if not found:
        raise Failed(f"container {container} has no process")
    # Ids may have wrapped around: the main process is the one that is number 1 inside.
    for pid in found:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:") and line.split()[-1] == "1":
                return pid
    return found[0]


def environment(pid):
    """The variables that a process was started with."""
    text = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    return dict(line.split("=", 1) for line in text.split("\0") if "=" in line)


def container_path(pid, path):
    """A path inside the container of a process, as seen from here."""
    return Path(f"/proc/{pid}/root") / path.lstrip("/")


def resident_of(pid):
    """MB of resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1000


def resident(container):
    """MB of resident memory of a container's processes."""
    total = 0
    for pid in processes_of(container):
        try:
            total += resident_of(pid)
        except OSError:
            continue
    return total


def named(container, name):
    """Process ids of a container whose command line begins with that program's name."""
    found = []
    for pid in processes_of(container):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words and words[0].decode().rpartition("/")[2] == name:
            found.append(pid)
    return found


def cpu_seconds(pids):
    """Processor time that the threads of these processes have used, to the nanosecond."""
    return sum(int(file.read_text().split()[0]) for pid in pids for file in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9
