"""One node: a mount namespace with its own /etc, /run, /var/lib and /var/log, containerd and a kubelet.

Contract: `up()` makes the namespace and starts containerd, `kubelet.start()` makes it join the cluster,
`exec()` runs a command as on that machine. Inside, everything lies at its usual path, so charts work
with their default values; outside, the same files are below `folder` (`path("/run/nvidia")` translates).
Nothing of the machine itself is changed: /etc is a copy, and the kernel settings that a kubelet writes
go to files of the node.
The namespace and all mounts in it vanish with its last process.
"""

import json
import shutil
import subprocess
from pathlib import Path

from images import PAUSE
from network import has_own_namespace, node_address
from process import Process, ProcessError, wait_until

OWN_FOLDERS = {"/etc": "etc", "/run": "run", "/var/lib": "var-lib", "/var/log": "var-log"}
KERNEL_SETTINGS = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10,
                   "kernel/panic_on_oops": 1, "kernel/keys/root_maxkeys": 1000000,
                   "kernel/keys/root_maxbytes": 25000000}
CNI_PROGRAMS = "/usr/lib/cni"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"


class Node:
    """Node 1, 2, ... of a cluster, named node-1, node-2, ...

    settings: fields of KubeletConfiguration that replace ours.
    """

    def __init__(self, number, folder, programs, plane, network, group, settings=None):
        self.number = number
        self.name = f"node-{number}"
        self.address = node_address(number)
        self.folder = Path(folder)
        self._programs = programs
        self._plane = plane
        self._network = network
        self._group = group
        self._settings = settings or {}
        self._holder = Process("namespace", ["true"], self.folder, group=group)
        self.containerd = self.process("containerd", [
            programs.path("containerd"), "--config=/etc/nvdra-containerd.toml"],
            {"PATH": f"{programs.containerd}:/usr/sbin:/usr/bin:/sbin:/bin"})
        self.kubelet = self.process("kubelet", [
            programs.path("kubelet"), "--config=/etc/nvdra-kubelet.yaml", "--kubeconfig=/etc/nvdra-kubelet.kubeconfig",
            f"--hostname-override={self.name}", f"--node-ip={self.address}", "-v=2"])

    @property
    def enter(self):
        """What to put in front of a command to run it on this node."""
        return [*self._network.enter, f"--mount=/proc/{self._holder.pid()}/ns/mnt", "--wdns=/"]

    @property
    def holder(self):
        """The id of the process that holds the namespace; it does nothing else."""
        return self._holder.pid()

    def path(self, inside):
        """Where a path below /etc, /run, /var/lib or /var/log of the node lies outside."""
        for prefix, own in OWN_FOLDERS.items():
            if inside == prefix or inside.startswith(prefix + "/"):
                return self.folder / own / inside[len(prefix):].lstrip("/")
        raise ValueError(f"{inside} is the same on all nodes and outside")

    def process(self, name, command, environment=None):
        """A program that can be started on this node, once the namespace is there."""
        return _NodeProcess(self, name, command, self.folder, environment=environment, group=self._group)

    def up(self):
        """Makes the namespace and starts containerd, without waiting for it."""
        for own in OWN_FOLDERS.values():
            (self.folder / own).mkdir(parents=True, exist_ok=True)
        self._copy_etc()
        self._configure()
        self._make_namespace()
        self.containerd.start()

    def load_image(self, archive):
        """Imports a docker-archive or OCI archive."""
        ctr = [self._programs.path("ctr"), f"--address={CONTAINERD_SOCKET}", "--namespace=k8s.io"]
        self.wait_for_containerd()
        done = self.exec(*ctr, "images", "import", "--local", str(archive), capture_output=True, text=True)
        if done.returncode:
            raise ProcessError(f"{self.name}: image {archive} cannot be imported: {done.stderr.strip()}")

    def wait_for_containerd(self):
        """Returns once containerd accepts connections."""
        wait_until(f"{self.name}: containerd's socket", self.path(CONTAINERD_SOCKET).is_socket, 30,
                   [self.containerd])

    def exec(self, *command, **options):
        """Runs a command on the node; options and result are those of subprocess.run."""
        return subprocess.run([*self.enter, *map(str, command)], **options)

    def _copy_etc(self):
        etc = self.folder / "etc"
        subprocess.run(["cp", "-a", "/etc/.", etc], check=True)
        for stale in ("cni/net.d", "cdi"):
            shutil.rmtree(etc / stale, ignore_errors=True)
            (etc / stale).mkdir(parents=True)
        (etc / "resolv.conf").unlink(missing_ok=True)
        (etc / "resolv.conf").write_text("")

    def _configure(self):
        etc = self.folder / "etc"
        (etc / "nvdra-containerd.toml").write_text(_containerd_settings(_snapshotter(self.folder)))
        network = {"cniVersion": "1.0.0", "name": "nvdra", "plugins": [self._network.plugin()]}
        (etc / "cni/net.d/10-nvdra.conflist").write_text(json.dumps(network))
        (etc / "nvdra-ca.crt").write_bytes(self._plane.authority.certificate.read_bytes())
        self._plane.authority.kubeconfig(
            etc / "nvdra-kubelet.kubeconfig", self._plane.server, self.name, f"system:node:{self.name}",
            ["system:nodes"])
        # JSON is YAML too.
        (etc / "nvdra-kubelet.yaml").write_text(json.dumps({
            **_kubelet_settings(self.address, self._group.pods), **self._settings}, indent=2))

    def _make_namespace(self):
        self._holder.command = [*self._network.enter, "unshare", "--mount", "--propagation=private",
                                "sleep", "infinity"]
        self._holder.start()
        wait_until(f"{self.name}: the mount namespace", lambda: has_own_namespace(self._holder.pid(), "mnt"),
                   10, [self._holder])
        lines = ["set -eu"]
        for setting, value in KERNEL_SETTINGS.items():
            own = self.folder / "kernel" / setting.replace("/", ".")
            own.parent.mkdir(exist_ok=True)
            own.write_text(f"{value}\n")
            lines.append(f"mount --bind '{own}' /proc/sys/{setting}")
        lines += [f"mount --bind '{self.folder / own}' {path}" for path, own in OWN_FOLDERS.items()]
        lines.append("mount --make-rshared /")
        done = self.exec("sh", "-c", "\n".join(lines), capture_output=True, text=True)
        if done.returncode:
            raise ProcessError(f"{self.name}: its mounts failed: {done.stderr.strip()}")


class _NodeProcess(Process):
    """A process whose way into the node is known only when it starts."""

    def __init__(self, node, name, command, folder, **options):
        super().__init__(name, command, folder, **options)
        self._node = node
        self._inner = self.command

    def start(self):
        self.command = [*self._node.enter, *self._inner]
        super().start()


def _snapshotter(folder):
    """overlayfs cannot lie on overlayfs, which is what a container's own file system often is."""
    kind = subprocess.run(["stat", "--file-system", "--format=%T", folder], check=True, capture_output=True,
                          text=True).stdout.strip()
    return "native" if kind in ("overlayfs", "UNKNOWN (0x794c7630)") else "overlayfs"


def _containerd_settings(snapshotter):
    # restrict_oom_score_adj: without CAP_SYS_RESOURCE runc cannot lower the score and dies.
    return f"""\
version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
  address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "{snapshotter}"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{PAUSE}"

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{CNI_PROGRAMS}"]
    conf_dir = "/etc/cni/net.d"
"""


def _kubelet_settings(address, pods_group):
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "address": address, "healthzBindAddress": address, "readOnlyPort": 0,
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                           "x509": {"clientCAFile": "/etc/nvdra-ca.crt"}},
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        # Containers go into groups below the cluster's own; no hierarchy of service classes.
        "cgroupDriver": "cgroupfs", "cgroupRoot": pods_group, "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [], "failCgroupV1": False, "failSwapOn": False,
        # Any address will do: there is no name service, and pods are not told that one is missing.
        "clusterDNS": [address], "clusterDomain": "cluster.local", "resolvConf": "/etc/resolv.conf",
        # A full disk of the machine is no reason to evict.
        "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%",
                         "imagefs.available": "0%", "imagefs.inodesFree": "0%"},
        "imageGCHighThresholdPercent": 100,
    }
