"""Makes a node look like one with NVIDIA's driver: a driver root, /proc/devices, and the IMEX service.

Contract: GpuNode(node, tools, peers) lays out the driver root at DRIVER_ROOT inside the node, with the
simulated tools, and a copy of /proc/devices at PROC_DEVICES that also lists NVIDIA's classes; both are
what the chart's values `nvidiaDriverRoot` and `altProcDevices` take. No driver is behind the device
numbers: the nodes exist, opening them fails.
`service_*()` are what an administrator does with nvidia-imex.service: the service is the program
nvidia-imex, run inside the driver root with its own configuration. `faults()` makes the tools
misbehave; its keys are described in src/sandbox/tool_facts.hpp.
"""

import json
import os
import re
import shutil
import signal
import stat
from pathlib import Path

from network import node_address
from process import wait_until

DRIVER_ROOT = "/run/nvidia/driver"
PROC_DEVICES = "/run/nvidia/devices"
SOCKET = "/etc/nvidia-imex/imex_ctrl.sock"
CONFIG = "/etc/nvidia-imex/config.cfg"
PEERS = "/etc/nvidia-imex/nodes_config.cfg"
DRIVER_VERSION = "580.95.05"
CLUSTER_UUID = "7c4d1f0e-52a3-4b7e-9a51-0d3f6e2b8c14"
CLIQUE = 7
TOOLS = ("nvidia-smi", "nvidia-imex", "nvidia-imex-ctl")
CLASSES = {"nvidia": 195, "nvidiactl": 195, "nvidia-caps": 235, "nvidia-caps-imex-channels": 236,
           "nvidia-uvm": 510}
DEVICES = {"nvidia0": (195, 0), "nvidia1": (195, 1), "nvidiactl": (195, 255), "nvidia-uvm": (510, 0),
           "null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9)}
LIBRARIES = "usr/lib/x86_64-linux-gnu"


class GpuNode:
    """A node with a driver root.

    tools: the program nvdra-sandbox, or a folder with nvidia-smi, nvidia-imex and nvidia-imex-ctl.
    peers: how many nodes of the cluster, from node 1 on, stand in the service's list of nodes.
    facts: keys of the tools' node.json that replace ours, for example another `fabric`.
    """

    def __init__(self, node, tools, peers, socket=SOCKET, facts=None):
        self.node = node
        self.root = node.path(DRIVER_ROOT)
        self.socket = socket
        self._tools = Path(tools)
        self._peers = peers
        self._facts = facts or {}
        self._service = node.process("nvidia-imex", [
            "chroot", DRIVER_ROOT, "nvidia-imex", "-c", CONFIG], {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})

    def lay_out(self):
        """Writes the driver root and the list of devices."""
        for folder in ("dev", "tmp", "usr/bin", LIBRARIES, "var/log", "run/nvidia-imex", "etc/nvdra-sandbox"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        (self.root / "var/run").symlink_to("../run")
        for tool in TOOLS:
            self.restore_tool(tool)
        library = self.root / LIBRARIES / f"libnvidia-ml.so.{DRIVER_VERSION}"
        library.touch()
        (library.parent / "libnvidia-ml.so.1").symlink_to(library.name)
        for name, (major, minor) in DEVICES.items():
            os.mknod(self.root / "dev" / name, stat.S_IFCHR | 0o666, os.makedev(major, minor))
            (self.root / "dev" / name).chmod(0o666)
        self._write("/proc/driver/nvidia/capabilities/fabric-imex-mgmt",
                    "DeviceFileMinor: 4323\nDeviceFileMode: 256\n")
        self._write("/proc/driver/nvidia/params", "ImexChannelCount: 2048\nCreateImexChannel0: 0\n")
        self._write("/etc/nvdra-sandbox/node.json", json.dumps({**self._usual_facts(), **self._facts}))
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
        path = self.root / "etc/nvdra-sandbox/faults.json"
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(faults))
        draft.rename(path)

    def remove_tool(self, name):
        """Takes a program out of the driver root, as an incomplete installation would."""
        (self.root / "usr/bin" / name).unlink()

    def restore_tool(self, name):
        """Puts it (back) in; a path of its own, so that a running one is not disturbed."""
        target = self.root / "usr/bin" / name
        draft = target.with_name(f".{name}")
        shutil.copy(self._tools / name if self._tools.is_dir() else self._tools, draft)
        draft.chmod(0o755)
        draft.rename(target)

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
