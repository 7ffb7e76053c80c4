"""Container images made from Debian's static programs, since nothing can be pulled.

Contract: `write_all(folder)` writes archives that `ctr images import` reads: a pause image, and a
stand-in for ubuntu:22.04 with bash and the usual small tools, under its real name, so that manifests
run unchanged. `write()` makes one more from any files.
"""

import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path

BUSYBOX = Path("/bin/busybox")
BASH = Path("/bin/bash-static")
PAUSE = "localhost/nvdra-test/pause:1"
UBUNTU = "docker.io/library/ubuntu:22.04"
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ImageError(Exception):
    """A program for an image is not installed."""


def write_all(folder):
    """Writes pause.tar and ubuntu.tar; their paths."""
    folder = Path(folder)
    for program in (BUSYBOX, BASH):
        if not program.exists():
            raise ImageError(f"{program} is missing: install the packages in test/cluster/packages.txt")
    applets = subprocess.run([BUSYBOX, "--list"], check=True, capture_output=True, text=True).stdout.split()
    links = {f"bin/{name}": "busybox" for name in applets if name not in ("busybox", "bash")}
    return [
        write(folder / "pause.tar", PAUSE, ["/bin/busybox", "sleep", "infinity"],
              files={"bin/busybox": BUSYBOX.read_bytes()}),
        write(folder / "ubuntu.tar", UBUNTU, ["/bin/bash"], links=links, files={
            "bin/busybox": BUSYBOX.read_bytes(), "bin/bash": BASH.read_bytes(),
            "etc/passwd": b"root:x:0:0:root:/root:/bin/bash\n", "etc/group": b"root:x:0:\n",
            "root/.keep": b"", "tmp/.keep": b"", "usr/bin/.keep": b""}),
    ]


def write(path, name, command, files, links=None):
    """Writes a docker-archive with one layer: files (path: bytes) and links (path: target)."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for target, content in sorted(files.items()):
            _add(tar, target, content, 0o755 if target.startswith("bin/") else 0o644)
        for target, source in sorted((links or {}).items()):
            entry = tarfile.TarInfo(target)
            entry.type, entry.linkname = tarfile.SYMTYPE, source
            tar.addfile(entry)
    content = layer.getvalue()
    config = json.dumps({
        "architecture": _architecture(), "os": "linux", "config": {"Env": [PATH], "Cmd": command},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(content).hexdigest()]},
    }).encode()
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    with tarfile.open(path, "w") as tar:
        _add(tar, "layer.tar", content)
        _add(tar, "config.json", config)
        _add(tar, "manifest.json", json.dumps(manifest).encode())
    return Path(path)


def _add(tar, name, content, mode=0o644):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))


def _architecture():
    machine = subprocess.run(["uname", "-m"], check=True, capture_output=True, text=True).stdout.strip()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
