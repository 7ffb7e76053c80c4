#!/usr/bin/env python3
"""Tests of the clusters themselves. Need root; about two minutes once build.py has built.

    python3 test/cluster/cluster_test.py [TEST...]

KUBERNETES_VERSION chooses another Kubernetes than the default. Each test of a start that goes wrong
compares what the machine has before and after: processes, mounts, network devices, control groups.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import build
import driver_files
import gpu_node
import reboot
import work_folder
from apiserver import ApiServer
from cluster import CannotRun, Cluster
from process import ProcessError, wait_until

KUBERNETES = os.environ.get("KUBERNETES_VERSION", build.DEFAULT_KUBERNETES)
HERE = Path(__file__).resolve().parent
POD = """
apiVersion: v1
kind: Pod
metadata: {name: my-workload}
spec:
  containers:
  - name: app
    image: ubuntu:22.04
    command: ["bash", "-c"]
    args: ["trap 'exit 0' TERM; test -c /dev/null; echo it runs on $(hostname); sleep 9999 & wait"]
"""


def traces():
    """What a cluster could leave on the machine."""
    devices = subprocess.run(["ip", "-brief", "link"], check=True, capture_output=True, text=True).stdout
    groups = [str(p) for name in ("nvdra-test-*", "k8s.io/*") for p in Path("/sys/fs/cgroup").glob(f"**/{name}") if p.is_dir()]
    folders = [path for path in ("/run/netns", "/var/lib/kubelet", "/etc/cdi", "/run/containerd")
               if Path(path).exists()]
    settings = Path("/proc/sys/vm/overcommit_memory").read_text() + Path("/proc/sys/kernel/panic").read_text()
    return {"mounts": Path("/proc/self/mounts").read_text(), "devices": devices, "groups": sorted(groups),
            "folders": folders, "settings": settings}


def processes_of(folder):
    """Processes that have the folder in their command line, without this one."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if str(folder) in line and int(path.parent.name) != os.getpid():
            found.append(line)
    return found


class RunningCluster(unittest.TestCase):
    """One cluster for all of these."""

    @classmethod
    def setUpClass(cls):
        cls.before = traces()
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory())) / "cluster"
        cls.cluster = Cluster(cls.folder, nodes=2, kubernetes=KUBERNETES)
        cls.cluster.up()
        cls.addClassCleanup(cls.cluster.down)

    def kubectl(self, *arguments, text=None):
        """kubectl's output; fails the test with its error."""
        done = self.cluster.kubectl(*arguments, input=text, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def start_pod(self):
        """The pod of the guide without its claim, Ready; it is deleted at the end."""
        self.kubectl("apply", "-f", "-", text=POD)
        self.addCleanup(self.kubectl, "delete", "pod", "my-workload")
        self.kubectl("wait", "--for=condition=Ready", "pod/my-workload", "--timeout=60s")

    def test_a_pod_runs_and_answers(self):
        self.start_pod()
        self.kubectl("exec", "my-workload", "--", "test", "-c", "/dev/null")
        self.assertEqual(self.kubectl("logs", "my-workload"), "it runs on my-workload\n")
        self.kubectl("exec", "my-workload", "--", "bash", "-c", "exec 3<>/dev/tcp/198.19.0.1/443")

    def test_a_pod_cannot_leave_the_cluster(self):
        self.start_pod()
        done = self.cluster.kubectl("exec", "my-workload", "--", "bash", "-c", "exec 3<>/dev/tcp/192.0.2.1/80",
                                    capture_output=True, text=True)
        self.assertIn("unreachable", done.stderr)

    def test_a_pod_survives_a_restart_of_its_kubelet(self):
        self.start_pod()
        query = "jsonpath={.spec.nodeName} {.status.containerStatuses[0].containerID}"
        node, container = self.kubectl("get", "pod", "my-workload", "-o", query).split()
        old = self.cluster.node(node).kubelet.pid()
        self.cluster.restart_kubelet(node)
        self.assertNotEqual(self.cluster.node(node).kubelet.pid(), old)
        self.kubectl("exec", "my-workload", "--", "true")
        self.assertEqual(self.kubectl("get", "pod", "my-workload", "-o", query).split(), [node, container])

    def test_a_pod_starts_again_after_its_node_lost_power(self):
        self.start_pod()
        node = self.cluster.node(self.kubectl("get", "pod", "my-workload", "-o", "jsonpath={.spec.nodeName}"))
        node.path("/run/lost").touch()
        node.path("/var/lib/kept").touch()
        reboot.reboot(node)
        self.assertFalse(node.path("/run/lost").exists())
        self.assertTrue(node.path("/var/lib/kept").exists())
        self.cluster.wait_for_nodes()
        wait_until("the container of another boot", lambda: self.kubectl(
            "get", "pod", "my-workload", "-o", "jsonpath={.status.containerStatuses[0].restartCount}") == "1", 60)
        self.kubectl("wait", "--for=condition=Ready", "pod/my-workload", "--timeout=60s")
        self.kubectl("exec", "my-workload", "--", "true")

    def test_a_component_can_be_stopped_and_started(self):
        scheduler = self.cluster.process("kube-scheduler")
        scheduler.stop()
        self.kubectl("apply", "-f", "-", text=POD)
        self.addCleanup(self.kubectl, "delete", "pod", "my-workload")
        done = self.cluster.kubectl("wait", "--for=condition=PodScheduled", "pod/my-workload", "--timeout=1s",
                                    capture_output=True)
        self.assertNotEqual(done.returncode, 0)
        scheduler.start()
        self.kubectl("wait", "--for=condition=Ready", "pod/my-workload", "--timeout=60s")

    def test_each_node_has_its_own_files_at_the_usual_places(self):
        first, second = self.cluster.nodes
        first.exec("sh", "-ec", "mkdir -p /run/nvidia; echo mine | tee /etc/nvdra-test >/run/nvidia/test", check=True)
        self.assertEqual(first.path("/run/nvidia/test").read_text(), "mine\n")
        self.assertFalse(second.path("/etc/nvdra-test").exists())
        self.assertFalse(Path("/etc/nvdra-test").exists() or Path("/run/nvidia/test").exists())

    def test_helm_reaches_the_cluster(self):
        done = self.cluster.helm("list", "-A", "-o", "json", check=True, capture_output=True)
        self.assertEqual(json.loads(done.stdout), [])

    def test_a_second_cluster_runs_beside_it_and_leaves_nothing(self):
        before = traces()
        folder = self.folder.with_name("second")
        with Cluster(folder, nodes=1, kubernetes=KUBERNETES) as second:
            answer = second.kubectl("get", "nodes", "-o", "name", check=True, capture_output=True, text=True)
            self.assertEqual(answer.stdout, "node/node-1\n")
        self.assertEqual(traces(), before)
        self.assertEqual(processes_of(folder), [])
        self.cluster.wait_for_nodes()

    def test_zz_down_leaves_nothing(self):
        self.kubectl("apply", "-f", "-", text=POD)
        self.kubectl("wait", "--for=condition=Ready", "pod/my-workload", "--timeout=60s")
        self.cluster.down()
        self.assertEqual(traces(), self.before)
        self.assertEqual(processes_of(self.folder), [])


class FailedStart(unittest.TestCase):
    """A start that does not come to its end."""

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory())) / "cluster"
        self.before = traces()

    def assert_nothing_left(self):
        """The machine is as it was."""
        self.assertEqual(traces(), self.before)
        self.assertEqual(processes_of(self.folder), [])

    def up_until(self, file):
        """A start that has got as far as writing this file."""
        starting = subprocess.Popen([sys.executable, HERE / "cluster.py", "up", "--dir", self.folder, "--nodes", "1",
                                     "--kubernetes", KUBERNETES],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(starting.stderr.close)
        wait_until(file, (self.folder / file).exists, 60)
        return starting

    def test_names_the_program_that_died_and_shows_its_log(self):
        with self.assertRaises(ProcessError) as raised:
            Cluster(self.folder, 1, KUBERNETES, api_server=["--no-such-flag"]).up()
        self.assertIn("kube-apiserver has ended", str(raised.exception))
        self.assertIn("unknown flag: --no-such-flag", str(raised.exception))
        self.assert_nothing_left()

    def test_interrupted_leaves_nothing(self):
        for file in ("network.pid", "kube-apiserver.pid", "node-1/kubelet.pid"):
            with self.subTest(file):
                starting = self.up_until(file)
                starting.send_signal(signal.SIGINT)
                self.assertEqual(starting.wait(60), 130, starting.stderr.read())
                self.assert_nothing_left()
                (self.folder / file).unlink(missing_ok=True)

    def test_killed_is_cleaned_up_by_down(self):
        starting = self.up_until("node-1/kubelet.pid")
        starting.kill()
        starting.wait()
        self.assertNotEqual(processes_of(self.folder), [])
        starting.stderr.close()
        subprocess.run([sys.executable, HERE / "cluster.py", "down", "--dir", self.folder], check=True)
        self.assert_nothing_left()

    def test_a_folder_of_somebody_else_is_refused(self):
        self.folder.mkdir()
        (self.folder / "precious").touch()
        with self.assertRaises(work_folder.WorkFolderError):
            Cluster(self.folder, 1, KUBERNETES).up()
        self.assertTrue((self.folder / "precious").exists())


    def test_without_root_says_so(self):
        with mock.patch("os.geteuid", return_value=1000), self.assertRaisesRegex(CannotRun, "needs root"):
            Cluster(self.folder, 1, KUBERNETES).up()


class Api(unittest.TestCase):
    """The API server alone."""

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory())) / "api"

    def command(self, *command):
        """A command run with an API server."""
        return [sys.executable, HERE / "apiserver.py", "run", "--dir", self.folder, "--kubernetes", KUBERNETES,
                "--", *command]

    def test_serves_dra_and_keeps_objects_over_a_restart_of_etcd(self):
        with ApiServer(self.folder, KUBERNETES) as server:
            server.kubectl("get", "--raw", "/apis/resource.k8s.io/v1", check=True, capture_output=True)
            server.kubectl("create", "configmap", "kept", check=True, capture_output=True)
            server.process("etcd").stop()
            server.process("etcd").start()
            wait_until("the object", lambda: server.kubectl(
                "get", "configmap", "kept", capture_output=True).returncode == 0, 30)
        self.assertEqual(processes_of(self.folder), [])

    def test_passes_the_exit_status_and_the_environment_on(self):
        script = '"$KUBEBUILDER_ASSETS/kubectl" get ns default -o name && exit 7'
        done = subprocess.run(self.command("sh", "-c", script), capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (7, "namespace/default\n"), done.stderr)
        self.assertEqual(processes_of(self.folder), [])

    def test_ends_when_its_python_is_killed(self):
        running = subprocess.Popen(self.command("sleep", "60"))
        wait_until("the kubeconfig", (self.folder / "kube-apiserver.pid").exists, 60)
        running.kill()
        running.wait()
        wait_until("the end of its programs", lambda: not processes_of(self.folder), 10)


class GpuNodeFiles(unittest.TestCase):
    """What needs no cluster."""

    def test_the_tools_start_where_their_libraries_are_and_nowhere_else(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        simulator = folder / "simulator"
        simulator.write_text("#!/bin/sh\necho simulated\n")
        files = driver_files.build(simulator, folder / "files")
        (folder / "etc/nvdra-sandbox").mkdir(parents=True)  # a driver root, also for the real path of a library
        (folder / "etc/nvdra-sandbox/node.json").touch()
        for program, lacking in {"nvidia-smi": "libnvidia-ml", "nvidia-imex": "libcuda", "nvidia-imex-ctl": "libcuda"}.items():
            with self.subTest(program):
                root = folder / program
                root.mkdir()
                for name, path in files.libraries.items():
                    (root / name).symlink_to(path)
                for name, target in files.links.items():
                    (root / name).symlink_to(target)
                command, environment = [files.programs[program]], {"LD_LIBRARY_PATH": str(root)}
                done = subprocess.run(command, env=environment, capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stdout), (0, "simulated\n"), done.stderr)
                (root / driver_files.soname_of(lacking)).unlink()
                done = subprocess.run(command, env=environment, capture_output=True, text=True)
                self.assertEqual(done.returncode, 127)
                self.assertIn(f"{lacking}.so.1: cannot open shared object file", done.stderr)

    def test_the_list_of_devices_has_exactly_our_classes(self):
        text = gpu_node.devices_with_driver(
            "Character devices:\n  1 mem\n498 nvidia-caps-imex-channels\n\nBlock devices:\n  8 sd\n")
        self.assertIn("236 nvidia-caps-imex-channels\n", text)
        self.assertNotIn("498", text)
        self.assertTrue(text.endswith("  1 mem\n\nBlock devices:\n  8 sd\n"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
