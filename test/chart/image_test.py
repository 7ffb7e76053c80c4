"""The image: what is in it, and that the same input gives the same bytes."""

import hashlib
import io
import json
import os
import pathlib
import platform
import struct
import subprocess
import tarfile
import tempfile
import unittest

from support import ROOT

NAMES = ["compute-domain-controller", "compute-domain-daemon", "compute-domain-kubelet-plugin", "webhook"]
# machine: (ELF number, code that ends the process with status 0, Debian architecture, multi-arch folder, loader)
MACHINES = {
    "x86_64": (62, bytes.fromhex("31ffb83c0000000f05"), "amd64", "x86_64-linux-gnu", "lib64/ld-linux-x86-64.so.2"),
    "aarch64": (183, bytes.fromhex("000080d2a80b80d2010000d4"), "arm64", "aarch64-linux-gnu", "lib/ld-linux-aarch64.so.1"),
}


def static_program(path):
    """Writes the smallest static program of this machine."""
    number, code = MACHINES[platform.machine()][:2]
    base = 0x400000
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, number, 1, base + 120, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, 120 + len(code), 120 + len(code), 0x1000)
    path.write_bytes(header + segment + code)
    path.chmod(0o755)


def build(*arguments, **environment):
    return subprocess.run([ROOT / "image" / "build.sh", *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          check=False, env={**os.environ, **environment})


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.program = cls.path / "nvdra"
        static_program(cls.program)
        cls.built = build(cls.path / "one.tar", cls.program)
        if cls.built.returncode != 0:
            raise AssertionError(cls.built.stderr)
        with tarfile.open(cls.path / "one.tar") as archive:
            cls.parts = {one.name: archive.extractfile(one).read() for one in archive}
        cls.manifest, = json.loads(cls.parts["manifest.json"])
        cls.config = json.loads(cls.parts[cls.manifest["Config"]])
        cls.entries = {}
        for layer in cls.manifest["Layers"]:
            with tarfile.open(fileobj=io.BytesIO(cls.parts[layer])) as tar:
                cls.entries.update({one.name: one for one in tar})

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def unpack(self, into):
        for layer in self.manifest["Layers"]:
            with tarfile.open(fileobj=io.BytesIO(self.parts[layer])) as tar:
                # Debian 12's Python does not know the argument yet; newer ones warn without it.
                known = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}
                tar.extractall(into, **known)

    def test_the_program_lies_under_every_name(self):
        self.assertEqual(self.program.stat().st_size, self.entries["usr/bin/nvdra"].size)
        self.assertEqual(0o755, self.entries["usr/bin/nvdra"].mode)
        links = {one.name: one.linkname for one in self.entries.values() if one.name.startswith("usr/bin/") and one.issym()}
        self.assertEqual({f"usr/bin/{name}": "nvdra" for name in NAMES}, links)

    def test_there_is_no_other_program_than_nvdra_and_the_loader(self):
        programs = {one.name for one in self.entries.values() if one.isreg() and one.mode & 0o111}
        triplet, loader = MACHINES[platform.machine()][3:]
        self.assertEqual({"usr/bin/nvdra", f"usr/lib/{triplet}/{os.path.basename(loader)}"}, programs)

    def test_every_link_leads_somewhere(self):
        with tempfile.TemporaryDirectory() as root:
            self.unpack(root)
            for one in self.entries.values():
                if one.issym():
                    self.assertFalse(one.linkname.startswith("/"), one.name)
                    self.assertTrue(os.path.exists(os.path.join(root, one.name)), f"{one.name} -> {one.linkname}")

    def test_its_glibc_runs_dynamic_programs(self):
        triplet, loader = MACHINES[platform.machine()][3:]
        with tempfile.TemporaryDirectory() as root:
            self.unpack(root)
            command = [f"{root}/{loader}", "--library-path", f"{root}/usr/lib/{triplet}", "/usr/bin/env"]
            result = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, env={"A": "B"})
            self.assertEqual((0, "A=B\n"), (result.returncode, result.stdout), result.stderr)

    def test_owners_times_and_order_are_fixed(self):
        for one in self.entries.values():
            self.assertEqual((0, 0, 0, "", ""), (one.uid, one.gid, one.mtime, one.uname, one.gname), one.name)
        for layer in self.manifest["Layers"]:
            with tarfile.open(fileobj=io.BytesIO(self.parts[layer])) as tar:
                self.assertEqual(sorted(tar.getnames()), tar.getnames())
        self.assertEqual(0o1777, self.entries["tmp"].mode)

    def test_two_runs_give_the_same_bytes_whatever_the_umask(self):
        old = os.umask(0o077)
        try:
            again = build(self.path / "two.tar", self.program)
        finally:
            os.umask(old)
        self.assertEqual(0, again.returncode, again.stderr)
        self.assertEqual(*(hashlib.sha256((self.path / name).read_bytes()).hexdigest() for name in ("one.tar", "two.tar")))

    def test_the_configuration_names_contents_and_entry_point(self):
        digests = [f"sha256:{hashlib.sha256(self.parts[layer]).hexdigest()}" for layer in self.manifest["Layers"]]
        self.assertEqual(digests, self.config["rootfs"]["diff_ids"])
        self.assertEqual(f"{hashlib.sha256(self.parts[self.manifest['Config']]).hexdigest()}.json", self.manifest["Config"])
        self.assertEqual((MACHINES[platform.machine()][2], "linux"), (self.config["architecture"], self.config["os"]))
        self.assertEqual(["/usr/bin/nvdra"], self.config["config"]["Entrypoint"])
        self.assertIn("libc6=", self.config["config"]["Labels"]["nvdra.base-packages"])

    def test_the_default_name_is_the_one_that_the_chart_expects(self):
        chart = (ROOT / "charts" / "nvdra" / "Chart.yaml").read_text()
        version = chart.split('appVersion: "')[1].split('"')[0]
        self.assertEqual([f"nvdra:{version}"], self.manifest["RepoTags"])

    def test_licences_are_inside(self):
        self.assertIn("LICENSE", self.entries)
        for package in ("libc6", "gcc-12-base"):
            self.assertIn(f"usr/share/doc/{package}/copyright", self.entries)

    def test_another_name_can_be_given(self):
        result = build(self.path / "named.tar", self.program, "--name", "localhost:5000/a/nvdra:x-1")
        self.assertEqual(0, result.returncode, result.stderr)
        with tarfile.open(self.path / "named.tar") as archive:
            manifest, = json.load(archive.extractfile("manifest.json"))
        self.assertEqual(["localhost:5000/a/nvdra:x-1"], manifest["RepoTags"])

    def test_bad_input_is_named_and_leaves_no_file(self):
        text = self.path / "text"
        text.write_text("#!/bin/sh\n")
        for arguments, sentence in (
                ([], "usage: build.sh FILE.tar NVDRA"),
                (["bad.tar", self.path / "none"], "build nvdra first"),
                (["bad.tar", text], "is not a 64-bit little-endian ELF program"),
                (["bad.tar", "/usr/bin/env"], "is linked dynamically: build nvdra with -Dlink=static-pie"),
                (["bad.tar", self.program, "--name", "Nvdra"], "is not REPOSITORY:TAG"),
                (["bad.tar", self.program, "--nmae", "x"], "unknown option --nmae")):
            if arguments:
                arguments[0] = self.path / arguments[0]
            result = build(*arguments)
            self.assertEqual(1, result.returncode, arguments)
            self.assertIn(sentence, result.stderr)
        self.assertEqual([], [one for one in self.path.iterdir() if "bad" in one.name])
