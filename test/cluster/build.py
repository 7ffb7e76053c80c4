#!/usr/bin/env python3
"""Builds the Kubernetes that the tests run, from the Go modules in modules/.

Contract: `ensure(version)` returns the Programs of that Kubernetes; what is missing is built first
(about eight minutes on two cores), what is there costs nothing. Programs lie outside the tree, in
${XDG_CACHE_HOME:-~/.cache}/nvdra/<what>/<version>/, one folder per version. The folder of Kubernetes
also holds etcd, so it can be used as KUBEBUILDER_ASSETS. A folder appears complete or not at all, and
is built anew when the module's files have changed. Several builds at once wait for one another.

    python3 test/cluster/build.py [--kubernetes VERSION] [--only kubernetes|containerd|helm|kubectl]

prints the folders, one per line, on standard output and what it does on standard error.
"""

import argparse
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
HELM = "helm.sh/helm/v3/"
VERSION_PACKAGE = "k8s.io/component-base/version."
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
    return Programs(ensure_kubernetes(kubernetes), ensure_containerd(), ensure_helm())


def ensure_kubernetes(version):
    """The folder of Kubernetes' programs and etcd."""
    if version not in kubernetes_versions():
        raise BuildError(f"Kubernetes {version} has no folder in test/cluster/modules; "
                         f"there are {', '.join(kubernetes_versions())}")
    server = _kubernetes_part(version, "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl")
    return _folder("kubernetes", version, [server, Part("etcd", ["."])])


def ensure_kubectl(version):
    """A folder with kubectl: that of the whole Kubernetes if it is there, else one of its own."""
    whole = cache_folder() / "kubernetes" / version
    if (whole / "kubectl").exists():
        return whole
    return _folder("kubectl", version, [_kubernetes_part(version, "kubectl")])


def _kubernetes_part(version, *names):
    major, minor, _ = version.split(".")
    return Part(f"kubernetes-{version}", [KUBERNETES + name for name in names],
                [(VERSION_PACKAGE + "gitVersion", "v" + version), (VERSION_PACKAGE + "gitMajor", major),
                 (VERSION_PACKAGE + "gitMinor", minor)])


def ensure_containerd():
    """The folder of containerd, its shim and ctr."""
    names = ("containerd", "containerd-shim-runc-v2", "ctr")
    version = module_version("containerd")
    return _folder("containerd", version, [Part("containerd", [CONTAINERD + name for name in names])])


def ensure_helm():
    """The folder of helm."""
    version = module_version("helm")
    return _folder("helm", version, [Part("helm", [HELM + "cmd/helm"],
                                          [(HELM + "internal/version.version", "v" + version)])])


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
            print(f"{part.module}: building {', '.join(part.names())}", file=sys.stderr)
            try:
                go.run("build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", part.linker,
                       "-o", f"{draft}/", *part.packages, folder=MODULES / part.module, CGO_ENABLED="0")
            except subprocess.CalledProcessError as error:
                raise BuildError(f"building {part.module} failed: the Go compiler's message is above") from error
            print(f"{part.module}: built in {time.monotonic() - started:.0f} s", file=sys.stderr)
        (draft / STAMP).write_text(stamp)
        shutil.rmtree(folder, ignore_errors=True)
        draft.rename(folder)


def main():
    """The command line; see the module's head."""
    parser = argparse.ArgumentParser(description="Builds the Kubernetes that the tests run.")
    parser.add_argument("--kubernetes", default=DEFAULT_KUBERNETES, metavar="VERSION",
                        help=f"one of {', '.join(kubernetes_versions())} (default {DEFAULT_KUBERNETES})")
    parser.add_argument("--only", choices=["kubernetes", "containerd", "helm", "kubectl"], help="only this part")
    options = parser.parse_args()
    builders = {"kubernetes": lambda: ensure_kubernetes(options.kubernetes),
                "containerd": ensure_containerd, "helm": ensure_helm, "kubectl": lambda: ensure_kubectl(options.kubernetes)}
    try:
        for name, builder in builders.items():
            if options.only == name or (options.only is None and name != "kubectl"):
                print(builder())
    except (BuildError, toolchain.ToolchainError) as error:
        sys.exit(f"build.py: {error}")


if __name__ == "__main__":
    main()
