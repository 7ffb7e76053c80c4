"""Finds a Go toolchain that can build the modules in modules/.

Contract: `find(cache)` returns a Toolchain whose `run()` executes `go` with a settled environment.
It takes, in this order:
  1. the `go` in PATH, if it is recent enough;
  2. the toolchain of an earlier call, kept in the cache folder;
  3. the toolchain module, which Go's module proxy serves like any other module, fetched with whatever
     `go` there is: an older one in PATH, or Debian's compiler package unpacked for this purpose (no
     root, nothing installed).
The proxy is the one that `go env GOPROXY` names. Raises ToolchainError with a remedy.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

OLDEST = (1, 26)
VERSION = "v0.0.1-go1.26.8"
MODULE = "golang.org/toolchain"
# Checksums of the module as Go computes them, so that a changed toolchain is noticed.
SUMS = {"amd64": "h1:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM="}
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class ToolchainError(Exception):
    """No usable Go, and why."""


class Toolchain:
    """One `go` program and the environment it runs in."""

    def __init__(self, go, root=None):
        self.go = str(go)
        self.environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}
        if root:
            self.environment["GOROOT"] = str(root)

    def run(self, *arguments, folder, capture=False, **environment):
        """Runs `go ARGUMENTS` in a folder; raises CalledProcessError."""
        return subprocess.run([self.go, *arguments], cwd=folder, check=True, text=True,
                              env={**self.environment, **environment},
                              stdout=subprocess.PIPE if capture else None).stdout

    def version(self):
        """(1, 26) for go1.26.8; (0, 0) for a program that is not Go."""
        try:
            text = self.run("env", "GOVERSION", folder="/", capture=True)
        except (OSError, subprocess.CalledProcessError):
            return (0, 0)
        match = re.match(r"go(\d+)\.(\d+)", text)
        return (int(match[1]), int(match[2])) if match else (0, 0)


def find(cache):
    """The toolchain to use; `cache` is the folder that keeps a fetched one."""
    path = shutil.which("go")
    if path and Toolchain(path).version() >= OLDEST:
        return Toolchain(path)
    root = Path(cache) / "go" / VERSION
    if not (root / "bin/go").exists():
        root.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root.parent) as draft:
            fetcher = Toolchain(path) if path else _debian_go(Path(draft))
            _fetch(fetcher, Path(draft)).rename(root)
    return Toolchain(root / "bin/go", root)


def _fetch(fetcher, draft):
    """Downloads the toolchain module with `fetcher`; the folder it lies in, made executable."""
    architecture = ARCHITECTURES.get(platform.machine(), platform.machine())
    print(f"toolchain: fetching {VERSION} from the Go module proxy", file=sys.stderr)
    try:
        answer = json.loads(fetcher.run(
            "mod", "download", "-json", f"{MODULE}@{VERSION}.linux-{architecture}", folder=draft,
            capture=True, GOMODCACHE=str(draft / "modules"), GOFLAGS="-modcacherw"))
    except subprocess.CalledProcessError as error:
        raise ToolchainError("the Go toolchain could not be fetched: look at the message above and at "
                             "`go env GOPROXY`, or install Go 1.26 or newer") from error
    expected = SUMS.get(architecture, answer["Sum"])
    if answer["Sum"] != expected:
        raise ToolchainError(f"the Go toolchain has checksum {answer['Sum']}, expected {expected}: "
                             "the module proxy serves something else than Go's own toolchain")
    folder = Path(answer["Dir"])
    # A module's files come without the executable bit.
    for program in [*folder.glob("bin/*"), *folder.glob("pkg/tool/*/*")]:
        program.chmod(0o755)
    return folder


def _debian_go(draft):
    """Debian's Go compiler, unpacked below `draft`. Too old to build with, good enough to fetch."""
    print("toolchain: no Go in PATH, unpacking Debian's", file=sys.stderr)
    try:
        depends = subprocess.run(["apt-cache", "depends", "golang-go"], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout
        package = re.search(r"golang-[0-9.]+-go\b", depends)[0]
        subprocess.run(["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", package], cwd=draft, check=True)
        subprocess.run(["dpkg", "-x", next(draft.glob("*.deb")), draft / "debian"], check=True)
        root = next((draft / "debian/usr/lib").glob("go-*"))
    except (OSError, TypeError, StopIteration, subprocess.CalledProcessError) as error:
        raise ToolchainError("no Go was found and Debian's golang-go could not be unpacked: "
                             "run `apt-get update`, or install Go 1.26 or newer") from error
    return Toolchain(root / "bin/go", root)
