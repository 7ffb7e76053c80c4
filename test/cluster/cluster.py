#!/usr/bin/env python3
"""A real Kubernetes on one machine: a control plane and some nodes in one network namespace.

Contract: `with Cluster(folder) as cluster:` gives a cluster whose nodes are Ready and whose images are
loaded; when the block ends, for whatever reason, no process, mount, namespace or control group is left.
Logs and data stay in the folder. Several clusters run side by side, each in its own folder. Nothing
inside reaches any network. A cluster that was not taken down (a killed caller) is ended by the next
`up()` or `down()` with its folder. Needs root and the packages in packages.txt.

    python3 test/cluster/cluster.py up --dir DIR [--nodes 2] [--kubernetes VERSION]
    DIR/kubectl get nodes
    python3 test/cluster/cluster.py down --dir DIR
"""

import argparse
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import build
import images
import toolchain
import work_folder
from control_plane import ControlPlane
from group import Group, GroupError
from network import API_ADDRESS, API_PORT, MOST_NODES, Network
from node import CNI_PROGRAMS, Node
from process import Process, ProcessError, wait_until

NEEDED = ("ip", "iptables", "nsenter", "unshare", "openssl", "runc",
          f"{CNI_PROGRAMS}/bridge", f"{CNI_PROGRAMS}/loopback")


class CannotRun(Exception):
    """This machine or user cannot run a cluster, and why."""


ERRORS = (build.BuildError, toolchain.ToolchainError, GroupError, ProcessError, images.ImageError, CannotRun,
          work_folder.WorkFolderError, OSError, subprocess.CalledProcessError)


class Cluster:
    """Nodes node-1, node-2, ...; `kubeconfig` is the administrator's.

    The kubeconfig's address is reachable in the cluster's network namespace only: use `kubectl()`,
    `helm()` and `run()`, or put `enter` in front of a command.
    api_server, kubelet: further arguments of kube-apiserver, further fields of KubeletConfiguration.
    """

    def __init__(self, folder, nodes=2, kubernetes=build.DEFAULT_KUBERNETES, api_server=(), kubelet=None):
        if not 1 <= nodes <= MOST_NODES:
            raise ValueError(f"a cluster has 1 to {MOST_NODES} nodes, not {nodes}")
        self.folder = Path(folder).resolve()
        self._count = nodes
        self._kubernetes = kubernetes
        self._group = _group(self.folder)
        self._api_server = list(api_server)
        self._kubelet = kubelet or {}
        self._programs = self._network = self._plane = None
        self.nodes = []

    def __enter__(self):
        self.up()
        return self

    def __exit__(self, *_):
        self.down()

    def up(self):
        """Starts everything; returns when all nodes are Ready. Takes everything down on failure."""
        check_machine()
        self._programs = build.ensure(self._kubernetes)
        self.down()
        work_folder.prepare(self.folder)
        try:
            self._group.create()
            self._network = Network(self.folder, self._group)
            self._network.up(self._count)
            self._plane = ControlPlane(self.folder, self._programs, API_ADDRESS, (API_PORT, 2379, 2380),
                                       self._network.enter, self._group, extra=self._api_server)
            self.nodes = [Node(number, self.folder / f"node-{number}", self._programs, self._plane,
                               self._network, self._group, self._kubelet)
                          for number in range(1, self._count + 1)]
            self._plane.start()
            for node in self.nodes:
                node.up()
            self.load_image(*images.write_all(self.folder))
            self._plane.wait_for_api()
            for node in self.nodes:
                node.kubelet.start()
            self._plane.wait_for_controllers()
            self.wait_for_nodes()
            self._write_shortcut()
        except BaseException:
            self.down()
            raise

    def down(self):
        """Ends everything; may be called at any time."""
        take_down(self.folder)
        for process in self._processes():
            process.stop(patience=0)

    @property
    def kubeconfig(self):
        """The path of the administrator's kubeconfig."""
        return self._plane.kubeconfig

    @property
    def enter(self):
        """What to put in front of a command that talks to the API server or to pods."""
        return self._network.enter

    def node(self, number):
        """Node 1, 2, ..., or the node of that name."""
        return next(n for n in self.nodes if number in (n.number, n.name))

    def process(self, name):
        """The Process of a control plane program, for example `kube-scheduler`."""
        return self._plane.processes[name]

    def run(self, *command, **options):
        """Runs a command as administrator; options and result are those of subprocess.run."""
        return subprocess.run([*self.enter, *map(str, command)], env=self.environment(), **options)

    def kubectl(self, *arguments, **options):
        """Runs kubectl as administrator."""
        return self.run(self._programs.path("kubectl"), *arguments, **options)

    def start_kubectl(self, *arguments, **options):
        """kubectl as administrator in the background; options and result are those of subprocess.Popen."""
        return subprocess.Popen([*self.enter, self._programs.path("kubectl"), *map(str, arguments)],
                                env=self.environment(), **options)

    def helm(self, *arguments, **options):
        """Runs helm as administrator; its caches stay in our folder."""
        return self.run(self._programs.path("helm"), *arguments, **options)

    def environment(self):
        """The environment for kubectl, helm and other clients."""
        helm = {f"HELM_{what}_HOME": str(self.folder / "helm-home" / what.lower())
                for what in ("CACHE", "CONFIG", "DATA")}
        return {**self._plane.environment(), **helm}

    def load_image(self, *archives):
        """Imports image archives on all nodes."""
        for node in self.nodes:
            for archive in archives:
                node.load_image(archive)

    def restart_kubelet(self, number):
        """Stops the kubelet of a node, starts it again and waits until it serves its running pods."""
        node = self.node(number)
        node.kubelet.stop()
        node.kubelet.start()
        wait_until(f"{node.name}: the kubelet serves its pods", lambda: self._serves_its_pods(node), 60,
                   [node.kubelet])
        self.wait_for_nodes()

    def _serves_its_pods(self, node):
        """A kubelet answers before it has heard of its pods; whoever then runs exec is refused."""
        running = self.kubectl("get", "pods", "-A", f"--field-selector=spec.nodeName={node.name},status.phase=Running",
                               "-o", "jsonpath={.items[*].metadata.uid}", capture_output=True, text=True)
        known = self.kubectl("get", "--raw", f"/api/v1/nodes/{node.name}/proxy/pods", capture_output=True, text=True)
        if running.returncode or known.returncode:
            return False
        uids = {pod["metadata"]["uid"] for pod in json.loads(known.stdout)["items"] or ()}
        return uids.issuperset(running.stdout.split())

    def wait_for_nodes(self, seconds=60):
        """Returns when all nodes are Ready."""
        wait_until("all nodes Ready", self._are_ready, seconds, self._processes())

    def _processes(self):
        plane = self._plane.processes.values() if self._plane else []
        return [*plane, *(p for node in self.nodes for p in (node.containerd, node.kubelet))]

    def _are_ready(self):
        query = "{range .items[*]}{.status.conditions[?(@.type=='Ready')].status}{'\\n'}{end}"
        answer = self.kubectl("get", "nodes", "-o", f"jsonpath={query}", capture_output=True, text=True)
        return answer.stdout.split() == ["True"] * len(self.nodes)

    def _write_shortcut(self):
        """DIR/kubectl, DIR/helm and DIR/on-node-N for play by hand."""
        for name in ("kubectl", "helm"):
            self._write_script(name, [*self.enter, self._programs.path(name)])
        for node in self.nodes:
            self._write_script(f"on-{node.name}", node.enter)

    def _write_script(self, name, command):
        exports = {**self.environment()}
        lines = [f"export {key}={shlex.quote(value)}" for key, value in exports.items()
                 if os.environ.get(key) != value]
        script = self.folder / name
        script.write_text("\n".join(["#!/bin/sh", *lines, f'exec {shlex.join(command)} "$@"', ""]))
        script.chmod(0o755)


def check_machine():
    """Raises CannotRun when something is missing that a cluster needs."""
    if os.geteuid() != 0:
        raise CannotRun("a cluster needs root: it makes namespaces, mounts and control groups; use sudo")
    missing = [program for program in NEEDED if not shutil.which(program)]
    if missing:
        raise CannotRun(f"{', '.join(missing)} not found: install the packages in test/cluster/packages.txt")


def take_down(folder):
    """Ends the cluster in this folder, if there is one, whoever started it."""
    folder = Path(folder).resolve()
    for record in folder.glob("node-*/kubelet.pid"):
        Process("kubelet", [], record.parent).stop(patience=0)
    group = _group(folder)
    # Looked up first: a containerd that sees its shims die forgets containers that it cannot end any more.
    containers = _containers(folder)
    group.kill_all()
    for container in (Group(f"k8s.io/{name}") for name in containers | _containers(folder)):
        container.kill_all()
        container.remove()
    Group("k8s.io").remove_if_empty()
    group.remove()


def _containers(folder):
    """Ids of the containers. Without groups per class of service the kubelet names no parent for them, and
    containerd puts them into groups of its own."""
    return {path.name for path in folder.glob("node-*/run/containerd/io.containerd.runtime.v2.task/k8s.io/*")}


def _group(folder):
    return Group("nvdra-test-" + hashlib.sha256(str(folder).encode()).hexdigest()[:12])


def main():
    """The command line; see the module's head."""
    parser = argparse.ArgumentParser(description="A real Kubernetes on one machine.")
    actions = parser.add_subparsers(required=True, dest="action")
    up = actions.add_parser("up", help="start a cluster and leave it running")
    up.add_argument("--nodes", type=int, default=2, help=f"1 to {MOST_NODES} (default 2)")
    up.add_argument("--kubernetes", default=build.DEFAULT_KUBERNETES, metavar="VERSION")
    down = actions.add_parser("down", help="end it; the folder with its logs stays")
    for action in (up, down):
        action.add_argument("--dir", required=True, help="the folder of the cluster")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if options.action == "down":
            take_down(options.dir)
            return
        started = time.monotonic()
        Cluster(options.dir, options.nodes, options.kubernetes).up()
        print(f"{options.nodes} nodes Ready after {time.monotonic() - started:.1f} s: {options.dir}/kubectl get nodes")
    except KeyboardInterrupt:
        sys.exit(130)
    except ERRORS as error:
        sys.exit(f"cluster.py: {error}")


if __name__ == "__main__":
    main()
