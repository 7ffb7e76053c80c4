#!/usr/bin/env python3
"""Packs folders into a docker-archive, one layer each, the same bytes on every run.

pack.py arch PROGRAM              checks a static executable and prints its Debian architecture
pack.py archive FILE --name ...   see build.sh, which calls it
"""

import argparse
import hashlib
import io
import json
import os
import re
import stat
import struct
import sys
import tarfile
import time

MACHINES = {62: "amd64", 183: "arm64"}  # e_machine of ELF
PT_INTERP = 3


def die(text):
    sys.exit(f"image: {text}")


def arch_of(path):
    with open(path, "rb") as program:
        head = program.read(4096)
    if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
        die(f"{path} is not a 64-bit little-endian ELF program")
    machine, = struct.unpack_from("<H", head, 18)
    if machine not in MACHINES:
        die(f"{path} is for ELF machine {machine}; images are made for amd64 and arm64")
    offset, = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    types = [struct.unpack_from("<I", head, offset + i * size)[0] for i in range(count)]
    if PT_INTERP in types:
        die(f"{path} is linked dynamically: build nvdra with -Dlink=static-pie")
    return MACHINES[machine]


def entries(root):
    """Paths below root, folders before their contents, in an order that depends on names only."""
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(folders + files):
            yield os.path.relpath(os.path.join(folder, name), root)


def layer(root, epoch):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(entries(root)):
            full = os.path.join(root, path)
            info = tarfile.TarInfo(path)
            info.mtime = epoch
            mode = os.lstat(full).st_mode
            if stat.S_ISLNK(mode):
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, os.readlink(full), 0o777
                tar.addfile(info)
            elif stat.S_ISDIR(mode):
                info.type = tarfile.DIRTYPE
                info.mode = 0o1777 if mode & stat.S_ISVTX else 0o755
                tar.addfile(info)
            else:
                with open(full, "rb") as content:
                    data = content.read()
                info.size, info.mode = len(data), 0o755 if mode & 0o100 else 0o644
                tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def config(args, layers, epoch):
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
    labels = {
        "name": "nvdra",
        "version": args.version,
        "org.opencontainers.image.title": "nvdra",
        "org.opencontainers.image.description": "ComputeDomain driver for Kubernetes",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.version": args.version,
        "nvdra.base-packages": args.packages,
    }
    return {
        "created": created,
        "architecture": args.arch,
        "os": "linux",
        "config": {
            "Entrypoint": ["/usr/bin/nvdra"],
            # Nothing of the GPU is to be injected into our containers by a container runtime.
            "Env": ["PATH=/usr/bin:/usr/sbin", "NVIDIA_DISABLE_REQUIRE=true", "NVIDIA_VISIBLE_DEVICES=void"],
            "WorkingDir": "/",
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest(one)}" for one in layers]},
        "history": [{"created": created, "created_by": text} for text in ("image/rootfs.sh", "image/install.sh")],
    }


def digest(data):
    return hashlib.sha256(data).hexdigest()


def archive(args):
    if not re.fullmatch(r"[a-z0-9][a-z0-9._/:-]*:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", args.name):
        die(f"--name {args.name!r} is not REPOSITORY:TAG in lower case, for example registry.example/nvdra:0.1.0")
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    layers = [layer(root, epoch) for root in args.roots]
    described = json.dumps(config(args, layers, epoch), sort_keys=True).encode()
    files = {f"{digest(one)}/layer.tar": one for one in layers}
    names = list(files)
    files[f"{digest(described)}.json"] = described
    manifest = [{"Config": f"{digest(described)}.json", "RepoTags": [args.name], "Layers": names}]
    files["manifest.json"] = json.dumps(manifest, sort_keys=True).encode()
    partial = f"{args.file}.{os.getpid()}.partial"
    with tarfile.open(partial, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name in sorted(files):
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.mode = len(files[name]), epoch, 0o644
            tar.addfile(info, io.BytesIO(files[name]))
    os.replace(partial, args.file)
    print(f"{args.file}: {args.name} ({args.arch}), {os.path.getsize(args.file) / 1e6:.1f} MB, sha256:{digest(described)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, dest="command")
    one = commands.add_parser("arch")
    one.add_argument("program")
    two = commands.add_parser("archive")
    two.add_argument("file")
    for option in ("name", "arch", "version", "packages"):
        two.add_argument(f"--{option}", required=True)
    two.add_argument("roots", nargs="+")
    args = parser.parse_args()
    if args.command == "arch":
        print(arch_of(args.program))
    else:
        archive(args)


if __name__ == "__main__":
    main()
