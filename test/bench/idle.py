"""What nvdra's roles use while nothing happens, in a sandbox of one node."""

import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

LIMITS = {"controller": 12, "kubelet-plugin": 16}


@dataclass
class Used:
    megabytes: float
    percent: float  # of one processor


def resident(build, seconds):
    """role -> Used, after `seconds` of idling."""
    with tempfile.TemporaryDirectory() as folder:
        command = [build / "src/sandbox/nvdra-sandbox", "up", "--nodes", "1", "--folder", f"{folder}/up",
                   "--nvdra", build / "src/nvdra"]
        sandbox = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            roles = wait_for_roles(sandbox.pid)
            before = {role: cpu_seconds(pid) for role, pid in roles.items()}
            time.sleep(seconds)
            return {role: Used(status(pid, "VmRSS") / 1000,
                               100 * (cpu_seconds(pid) - before[role]) / seconds)
                    for role, pid in roles.items()}
        finally:
            sandbox.send_signal(signal.SIGINT)
            sandbox.wait(timeout=30)


def wait_for_roles(parent):
    """PIDs of the roles once they have been up for five seconds."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        roles = {}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if status(int(path.name), "PPid") != parent:
                    continue
                words = (path / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            for role in LIMITS:
                if len(words) > 1 and role.encode() in words[1:2]:
                    roles[role] = int(path.name)
        if len(roles) == len(LIMITS):
            time.sleep(5)
            return roles
        time.sleep(0.2)
    raise RuntimeError("the sandbox did not start its roles within 60 s")


def status(pid, key):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1])
    raise OSError(f"process {pid} has no {key}")


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
