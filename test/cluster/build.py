#!/usr/bin/env python3
"""Builds the Kubernetes that the tests run, from the Go modules in modules/.

Contract: `ensure(version)` returns the Programs of that Kubernetes; what is missing is built first
(about eight minutes on two cores), what is there costs nothing. Programs lie outside the tree, in
${XDG_CACHE_HOME:-~/.cache}/nvdra/<what>/<version>/, one folder per version. The folder of Kubernetes
also holds etcd, so it can be used as KUBEBUILDER_ASSETS. A folder appears complete or not at all, and
is built anew when the module's files have changed. Several builds at once wait for one another.

    python3 test/cluster/build.py [--kubernetes VERSION] [--print-folder]
"""

import argparse
import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import toolchain

DEFAULT_KUBERNETES = "1.34.4"
MODULES = Path(__file__).resolve().parent / "modules"
KUBERNETES = "k8s.io/kubernetes/cmd/"
CONTAINERD = "github.com/containerd/containerd/v2/cmd/"
STAMP = ".built-from"


class BuildError(Exception):
    """A program could not be built, and why."""


class Part:
    """What is built from one module into one folder: package paths, and linker settings."""

    def __init__(self, module, packages, settings=()):
        self.module = module
        self.packages = packages
        self.linker = " ".join(["-s", "-w", *(f"-X {key}={value}" for key, value in settings)])

    def names(self):
        """The programs' file names. A module's own main package is called like the module."""
        return [self.module if p == "." else p.rsplit("/", 1)[1] for p in self.packages]

    def stamp(self):
        """Changes whenever the outcome of the build may change."""
        digest = hashlib.sha256(f"{self.packages} {self.linker} {toolchain.VERSION}".encode())
        for path in sorted((MODULES / self.module).iterdir()):
            digest.update(path.name.encode() + path.read_bytes())
        return digest.hexdigest()


class Programs:
    """Where the built programs are."""

    def __init__(self, kubernetes, containerd, helm):
        self.kubernetes = kubernetes
        self.containerd = containerd
        self.helm = helm

    def path(self, name):
        """The full path of a program."""
        for folder in (self.kubernetes, self.containerd, self.helm):
            if (folder / name).exists():
                return str(folder / name)
        raise BuildError(f"program {name} is in none of the folders that build.py fills")


def cache_folder():
    """The folder that holds everything built here."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "nvdra"


def kubernetes_versions():
    """The versions that can be built, oldest first."""
    found = [p.name.removeprefix("kubernetes-") for p in MODULES.glob("kubernetes-*")]
    return sorted(found, key=lambda version: [int(n) for n in version.split(".")])


def ensure(kubernetes=DEFAULT_KUBERNETES):
    """Builds what is missing and returns the Programs."""
    if kubernetes not in kubernetes_versions():
        raise BuildError(f"Kubernetes {kubernetes} has no folder in test/cluster/modules; "
                         f"there are {', '.join(kubernetes_versions())}")
    major, minor, _ = kubernetes.split(".")
    version = "k8s.io/component-base/version."
    server = Part(f"kubernetes-{kubernetes}",
                  [KUBERNETES + name for name in ("kube-apiserver", "kube-controller-manager",
                                                  "kube-scheduler", "kubelet", "kubectl")],
                  [(version + "gitVersion", "v" + kubernetes), (version + "gitMajor", major),
                   (version + "gitMinor", minor)])
    runtime = Part("containerd", [CONTAINERD + name for name in
                                  ("containerd", "containerd-shim-runc-v2", "ctr")])
    helm_version = module_version("helm")
    installer = Part("helm", ["helm.sh/helm/v3/cmd/helm"],
                     [("helm.sh/helm/v3/internal/version.version", "v" + helm_version)])
    return Programs(_folder("kubernetes", kubernetes, [server, Part("etcd", ["."])]),
                    _folder("containerd", module_version("containerd"), [runtime]),
                    _folder("helm", helm_version, [installer]))


def module_version(module):
    """The version that a module's first `require` line names, without its v."""
    for line in (MODULES / module / "go.mod").read_text().splitlines():
        if line.startswith("require ") and " v" in line:
            return line.rsplit(" v", 1)[1]
    raise BuildError(f"test/cluster/modules/{module}/go.mod requires nothing")


def _folder(what, version, parts):
    """The folder <what>/<version>, built if it is not there or out of date."""
    folder = cache_folder() / what / version
    stamp = "\n".join(part.stamp() for part in parts)
    if _is_current(folder, stamp, parts):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_current(folder, stamp, parts):
            _build(folder, stamp, parts)
    return folder


def _is_current(folder, stamp, parts):
    if not all((folder / name).exists() for part in parts for name in part.names()):
        return False
    try:
        return (folder / STAMP).read_text() == stamp
    except OSError:
        return False


def _build(folder, stamp, parts):
    go = toolchain.find(cache_folder())
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".draft-") as draft:
        draft = Path(draft) / "programs"
        draft.mkdir()
        for part in parts:
            started = time.monotonic()
            print(f"{part.module}: building {', '.join(part.names())}", flush=True)
            try:
                go.run("build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", part.linker,
                       "-o", f"{draft}/", *part.packages, folder=MODULES / part.module, CGO_ENABLED="0")
            except subprocess.CalledProcessError as error:
                raise BuildError(f"building {part.module} failed: the Go compiler's message is above") from error
            print(f"{part.module}: built in {time.monotonic() - started:.0f} s", flush=True)
        (draft / STAMP).write_text(stamp)
        shutil.rmtree(folder, ignore_errors=True)
        draft.rename(folder)


def main():
    """The command line; see the module's head."""
    parser = argparse.ArgumentParser(description="Builds the Kubernetes that the tests run.")
    parser.add_argument("--kubernetes", default=DEFAULT_KUBERNETES, metavar="VERSION",
                        help=f"one of {', '.join(kubernetes_versions())} (default {DEFAULT_KUBERNETES})")
    parser.add_argument("--print-folder", action="store_true",
                        help="print only the folder that serves as KUBEBUILDER_ASSETS")
    options = parser.parse_args()
    try:
        if options.print_folder:
            with contextlib.redirect_stdout(sys.stderr):
                programs = ensure(options.kubernetes)
            print(programs.kubernetes)
        else:
            programs = ensure(options.kubernetes)
            print("\n".join(map(str, (programs.kubernetes, programs.containerd, programs.helm))))
    except (BuildError, toolchain.ToolchainError) as error:
        sys.exit(f"build.py: {error}")


if __name__ == "__main__":
    main()
