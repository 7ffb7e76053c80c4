"""The network namespace of a cluster: loopback and one bridge, no way out.

Contract: while the holder process lives, `enter` is the command line that puts a program into the
namespace. The bridge carries the API server's address, one address per node and the pods. The service
address of the API server is translated; other services are not (there is no kube-proxy).
All addresses are from the range set aside for benchmarks, so they collide with nobody's network.
"""

import os
import subprocess
from pathlib import Path

from control_plane import API_SERVICE, SERVICE_RANGE
from process import Process, ProcessError, wait_until

BRIDGE = "nvdra0"
API_ADDRESS = "198.18.0.1"
API_PORT = 6443
POD_RANGE = "198.18.0.0/24"
FIRST_POD, LAST_POD = "198.18.0.20", "198.18.0.254"
MOST_NODES = 18


class Network:
    """One network namespace, held by a sleeping process."""

    def __init__(self, folder, group):
        self._folder = Path(folder)
        self._holder = Process("network", ["unshare", "--net", "sleep", "infinity"], folder, group=group)

    @property
    def enter(self):
        """What to put in front of a command. Not `ip netns exec`: that hides the control groups."""
        return ["nsenter", f"--net=/proc/{self._holder.pid()}/ns/net"]

    def up(self, nodes):
        """Makes the namespace with addresses for so many nodes."""
        self._holder.start()
        wait_until("the network namespace", lambda: has_own_namespace(self._holder.pid(), "net"), 10,
                   [self._holder])
        self._run("ip", "link", "set", "lo", "up")
        self._run("ip", "link", "add", BRIDGE, "type", "bridge")
        self._run("ip", "link", "set", BRIDGE, "up")
        for address in (API_ADDRESS, *map(node_address, range(1, nodes + 1))):
            self._run("ip", "address", "add", f"{address}/24", "dev", BRIDGE)
        self._run("ip", "route", "add", SERVICE_RANGE, "dev", BRIDGE)
        self._run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
        for chain in ("PREROUTING", "OUTPUT"):
            self._run("iptables", "-t", "nat", "-A", chain, "-d", API_SERVICE, "-p", "tcp", "--dport", "443",
                      "-j", "DNAT", "--to-destination", f"{API_ADDRESS}:{API_PORT}")

    def plugin(self):
        """The CNI plugin's settings. All nodes share the bridge and the list of used addresses."""
        return {"type": "bridge", "bridge": BRIDGE, "isGateway": True, "hairpinMode": True,
                "ipam": {"type": "host-local", "dataDir": str(self._folder / "addresses"),
                         "ranges": [[{"subnet": POD_RANGE, "rangeStart": FIRST_POD, "rangeEnd": LAST_POD,
                                      "gateway": API_ADDRESS}]],
                         "routes": [{"dst": "0.0.0.0/0"}]}}

    def _run(self, *command):
        done = subprocess.run([*self.enter, *command], capture_output=True, text=True)
        if done.returncode:
            raise ProcessError(f"network namespace: `{' '.join(command)}` failed: {done.stderr.strip()}")


def node_address(number):
    """The address of node 1, 2, ..."""
    return f"198.18.0.{1 + number}"


def has_own_namespace(pid, kind):
    """Whether the process has left our namespace and become the program it was started for."""
    if not pid:
        return False
    try:
        differs = os.readlink(f"/proc/{pid}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}")
        with open(f"/proc/{pid}/comm", encoding="ascii") as file:
            return differs and file.read().strip() == "sleep"
    except OSError:
        return False
