"""Makes a node look like one with NVIDIA's driver: a driver root, /proc/devices, and the IMEX service.

Contract: GpuNode(node, files, peers) lays out the driver root at DRIVER_ROOT inside the node, with the
simulated tools and the libraries that they need (driver_files.py), and a copy of /proc/devices at
PROC_DEVICES that also lists NVIDIA's classes; both are what the chart's values `nvidiaDriverRoot` and
`altProcDevices` take. No driver is behind the device numbers: the nodes exist, opening them fails.
`service_*()` are what an administrator does with nvidia-imex.service: the service is the program
nvidia-imex, run inside the driver root with its own configuration. `faults()` makes the tools
misbehave, also those that already run in a daemon's container; its keys are described in
src/sandbox/tool_facts.hpp.
"""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
from pathlib import Path

from driver_files import FAULTS, PROGRAMS, VERSION
from network import node_address
from process import ProcessError, wait_until

DRIVER_ROOT = "/run/nvidia/driver"
PROC_DEVICES = "/run/nvidia/devices"
SOCKET = "/etc/nvidia-imex/imex_ctrl.sock"
CONFIG = "/etc/nvidia-imex/config.cfg"
PEERS = "/etc/nvidia-imex/nodes_config.cfg"
DRIVER_VERSION = VERSION
CLUSTER_UUID = "7c4d1f0e-52a3-4b7e-9a51-0d3f6e2b8c14"
CLIQUE = 7
TOOLS = tuple(PROGRAMS)
CLASSES = {"nvidia": 195, "nvidiactl": 195, "nvidia-caps": 235, "nvidia-caps-imex-channels": 236,
           "nvidia-uvm": 510}
DEVICES = {"nvidia0": (195, 0), "nvidia1": (195, 1), "nvidiactl": (195, 255), "nvidia-uvm": (510, 0),
           "null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9)}
LIBRARIES = ("usr/lib/x86_64-linux-gnu", "usr/lib64")  # of Debian and its like, of others
MOST_FAULTS = 4096  # bytes


class GpuNode:
    """A node with a driver root. Odd and even nodes have their libraries at different places.

    files: DriverFiles.
    peers: how many nodes of the cluster, from node 1 on, stand in the service's list of nodes.
    facts: keys of the tools' node.json that replace ours, for example another `fabric`.
    """

    def __init__(self, node, files, peers, socket=SOCKET, facts=None):
        self.node = node
        self.root = node.path(DRIVER_ROOT)
        self.socket = socket
        self.libraries = self.root / LIBRARIES[(node.number - 1) % len(LIBRARIES)]
        self._files = files
        self._peers = peers
        self._facts = facts or {}
        self._service = node.process("nvidia-imex", [
            "chroot", DRIVER_ROOT, "nvidia-imex", "-c", CONFIG], {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})

    def lay_out(self):
        """Writes the driver root and the list of devices."""
        for folder in ("dev", "tmp", "usr/bin", *LIBRARIES, "var/log", "run/nvidia-imex", "etc/nvdra-sandbox"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        for link, target in (("var/run", "../run"), ("lib", "usr/lib"), ("lib64", "usr/lib64")):
            (self.root / link).symlink_to(target)
        for tool in TOOLS:
            self.restore_tool(tool)
        for file in self._files.libraries:
            self._put_library(file)
        (self.libraries / FAULTS).write_bytes(_padded({}))
        for file in (self._files.loader, self._files.c_library):
            shutil.copy(file, self.root / file.relative_to("/"))
        self._write("/etc/ld.so.conf", "".join(f"/{folder}\n" for folder in LIBRARIES))
        self._link_libraries()
        for name, (major, minor) in DEVICES.items():
            os.mknod(self.root / "dev" / name, stat.S_IFCHR | 0o666, os.makedev(major, minor))
            (self.root / "dev" / name).chmod(0o666)
        self._write("/proc/driver/nvidia/capabilities/fabric-imex-mgmt",
                    "DeviceFileMinor: 4323\nDeviceFileMode: 256\n")
        self._write("/proc/driver/nvidia/params", "ImexChannelCount: 2048\nCreateImexChannel0: 0\n")
        self.write_facts({**self._usual_facts(), **self._facts})
        (self.root / "etc/nvdra-sandbox/faults.json").symlink_to(Path(
            "../..", (self.libraries / FAULTS).relative_to(self.root)))
        self._write(PEERS, "".join(f"{node_address(n)}\n" for n in range(1, self._peers + 1)))
        self.configure()
        self.node.path(PROC_DEVICES).write_text(devices_with_driver(Path("/proc/devices").read_text()))

    def configure(self, **settings):
        """Writes the service's configuration anew, with further or other keys; read at its next start."""
        keys = {"LOG_LEVEL": 4, "LOG_FILE_NAME": "", "DAEMONIZE": 0, "BIND_INTERFACE_IP": self.node.address,
                "SERVER_PORT": 50000, "IMEX_NODE_CONFIG_FILE": PEERS, "IMEX_WAIT_FOR_QUORUM": "RECOVERY",
                "IMEX_CMD_ENABLED": 1, "IMEX_CMD_UNIX_DOMAIN_PATH": self.socket, **settings}
        self._write(CONFIG, "".join(f"{key}={value}\n" for key, value in keys.items()))

    def faults(self, **faults):
        """Replaces what is wrong with the node; without arguments it is healthy again.

        Keys with a hyphen go in by `**{"nvidia-imex": {"state": "INIT_GPU"}}`. What concerns the
        start of the service takes effect at its next start.
        """
        # In place and in one piece: containers have this very file.
        with open(self.libraries / FAULTS, "r+b", buffering=0) as file:
            file.write(_padded(faults))

    def read_facts(self):
        """What the tools say about the node; keys as in src/sandbox/tool_facts.hpp."""
        return json.loads((self.root / "etc/nvdra-sandbox/node.json").read_text())

    def write_facts(self, facts):
        """Replaces it, as a reconfigured fabric would; programs that have asked already do not notice."""
        self._write("/etc/nvdra-sandbox/node.json", json.dumps(facts))

    def remove_tool(self, name):
        """Takes a program out of the driver root, as an incomplete installation would."""
        (self.root / "usr/bin" / name).unlink()

    def restore_tool(self, name):
        """Puts it (back) in; a path of its own, so that a running one is not disturbed."""
        target = self.root / "usr/bin" / name
        draft = target.with_name(f".{name}")
        shutil.copy(self._files.programs[name], draft)
        draft.chmod(0o755)
        draft.rename(target)

    def remove_library(self, file):
        """Takes a library out of the driver root; `file` is its name with the version."""
        (self.libraries / file).unlink()
        self._link_libraries()

    def missing_libraries(self):
        """What remove_library() has taken out."""
        return [file for file in self._files.libraries if not (self.libraries / file).exists()]

    def restore_library(self, file):
        """Puts it back in, with the links that an installation makes."""
        self._put_library(file)
        self._link_libraries()

    def _put_library(self, file):
        target = self.libraries / file
        target.unlink(missing_ok=True)
        try:
            os.link(self._files.libraries[file], target)
        except OSError:  # another file system
            shutil.copy(self._files.libraries[file], target)

    def _link_libraries(self):
        done = subprocess.run(["/sbin/ldconfig", "-r", self.root], capture_output=True, text=True)
        if done.returncode:
            raise ProcessError(f"{self.node.name}: ldconfig failed: {done.stderr.strip()}")

    def service_start(self):
        """systemctl start: returns at once, like the service, before it is ready."""
        self._service.start()

    def service_stop(self):
        """systemctl stop."""
        self._service.signal(signal.SIGCONT)
        self._service.stop()

    def service_is_active(self):
        """systemctl is-active."""
        return self._service.alive()

    def service_hang(self):
        """Makes it stop answering while its socket stays."""
        self._service.signal(signal.SIGSTOP)

    def service_resume(self):
        """Ends service_hang()."""
        self._service.signal(signal.SIGCONT)

    def service_crash(self):
        """Kills it, which leaves its socket behind."""
        self._service.stop(patience=0)

    def service_state(self, seconds=5):
        """What nvidia-imex-ctl -q says, with its errors; empty when it does not answer in time."""
        done = self.node.exec("timeout", "-k", "1", str(seconds), "chroot", DRIVER_ROOT, "nvidia-imex-ctl", "-q",
                              f"--u={self.socket}", capture_output=True, text=True)
        return (done.stdout + done.stderr).strip()

    def wait_for_service(self, state="READY", seconds=30):
        """Returns when the service is in the state."""
        wait_until(f"{self.node.name}: nvidia-imex {state}", lambda: self.service_state() == state, seconds,
                   [self._service])

    def _usual_facts(self):
        uuids = [f"GPU-{self.node.number:08x}-0000-4000-8000-{gpu:012x}" for gpu in (1, 2)]
        return {"driverVersion": DRIVER_VERSION, "gpus": len(uuids), "gpuUuids": uuids,
                "fabric": {"state": "Completed", "status": "Success", "cliqueId": CLIQUE,
                           "clusterUuid": CLUSTER_UUID}}

    def _write(self, inside, text):
        path = self.root / inside.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def devices_with_driver(text):
    """The content of /proc/devices with NVIDIA's classes in place of whatever there is of them."""
    lines = [line for line in text.splitlines() if not re.fullmatch(r" *\d+ nvidia\S*", line)]
    start = lines.index("Character devices:") + 1
    return "\n".join(lines[:start] + [f"{major:3} {name}" for name, major in CLASSES.items()] + lines[start:]) + "\n"


def _padded(faults):
    text = json.dumps(faults).encode()
    if len(text) > MOST_FAULTS:
        raise ValueError(f"faults of {len(text)} bytes; there is room for {MOST_FAULTS}")
    return text.ljust(MOST_FAULTS)
