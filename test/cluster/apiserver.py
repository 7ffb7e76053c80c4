#!/usr/bin/env python3
"""A real kube-apiserver on loopback, for integration tests. Needs no root.

Contract: `with ApiServer(folder) as server:` starts etcd and kube-apiserver on free ports and gives
`server.kubeconfig` (an administrator's) and `server.environment()`. They end with the block, and also
when this Python process is killed. Everything is kept below the folder, which is emptied at the start.

    python3 test/cluster/apiserver.py run --dir DIR [--kubernetes V] [--controllers] -- COMMAND...

runs COMMAND with KUBECONFIG and KUBEBUILDER_ASSETS set and exits with COMMAND's status. The programs
come from KUBEBUILDER_ASSETS if that is set, else from build.py. Without --controllers nothing collects
garbage, makes claims from templates or empties namespaces, and pods need no service account.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import build
import toolchain
import work_folder
from control_plane import ControlPlane
from process import ProcessError

ATTEMPTS = 3


class ApiServer:
    """etcd and kube-apiserver; with `controllers` also kube-controller-manager and kube-scheduler.

    extra: further arguments of kube-apiserver.
    """

    def __init__(self, folder, kubernetes=build.DEFAULT_KUBERNETES, controllers=False, extra=()):
        self.folder = Path(folder).resolve()
        self._programs = _programs(kubernetes)
        self._controllers = controllers
        self._extra = ["--endpoint-reconciler-type=none", *extra]
        if not controllers:
            self._extra.append("--disable-admission-plugins=ServiceAccount")
        self._plane = None

    def __enter__(self):
        self.up()
        return self

    def __exit__(self, *_):
        self.down()

    def up(self):
        """Starts it. A port that was free a moment ago may be taken: then it tries others."""
        for attempt in range(ATTEMPTS):
            work_folder.prepare(self.folder)
            self._plane = ControlPlane(self.folder, self._programs, "127.0.0.1", _free_ports(3),
                                       controllers=self._controllers, extra=self._extra)
            try:
                self._plane.start()
                self._plane.wait_for_api()
                self._plane.wait_for_controllers()
                return
            except BaseException as error:
                self.down()
                if "address already in use" not in str(error) or attempt + 1 == ATTEMPTS:
                    raise

    def down(self):
        """Ends it at once: its data are of no use to anybody."""
        for process in reversed(list(self._plane.processes.values()) if self._plane else []):
            process.stop(patience=0)

    @property
    def kubeconfig(self):
        """The path of the administrator's kubeconfig."""
        return self._plane.kubeconfig

    def environment(self):
        """The environment for a test program."""
        return self._plane.environment()

    def kubectl(self, *arguments, **options):
        """Runs kubectl as administrator; options are those of subprocess.run."""
        return self._plane.kubectl(*arguments, **options)

    def process(self, name):
        """The Process of a component, for example to stop and start `etcd`."""
        return self._plane.processes[name]


def _programs(kubernetes):
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        return build.Programs(Path(assets), Path(assets), Path(assets))
    return build.ensure(kubernetes)


def _free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for opened in sockets:
        opened.close()
    return ports


def _run(server, command):
    """Runs the command; a Ctrl-C reaches it as well, so its end is awaited first."""
    with server:
        child = subprocess.Popen(command, env=server.environment())
        try:
            while True:
                try:
                    return child.wait()
                except KeyboardInterrupt:
                    pass
        except SystemExit:
            child.terminate()
            raise


def main():
    """The command line; see the module's head."""
    parser = argparse.ArgumentParser(description="A real kube-apiserver on loopback.")
    actions = parser.add_subparsers(required=True)
    run = actions.add_parser("run", help="run a command against a fresh API server")
    run.add_argument("--dir", required=True, help="a folder for logs and data; emptied first")
    run.add_argument("--kubernetes", default=build.DEFAULT_KUBERNETES, metavar="VERSION")
    run.add_argument("--controllers", action="store_true", help="also run controllers and scheduler")
    run.add_argument("command", nargs="+", help="the command, after --")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        sys.exit(_run(ApiServer(options.dir, options.kubernetes, options.controllers), options.command))
    except (build.BuildError, toolchain.ToolchainError, ProcessError,
            work_folder.WorkFolderError, OSError) as error:
        sys.exit(f"apiserver.py: {error}")


if __name__ == "__main__":
    main()
