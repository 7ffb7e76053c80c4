"""clang-tidy over the compilation database, with results cached by content.

A file is checked again only when it, a header of this repository that it includes, the rules or the
tool changed. Usage: tidy.py BUILD_DIR CACHE_DIR [FILE...]; exit 1 when a file has findings.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

TOOL = "clang-tidy-19"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


class Tidy:
    def __init__(self, build, cache, root):
        self.build, self.cache, self.root = build, cache, root
        version = subprocess.run([TOOL, "--version"], capture_output=True, text=True, check=True).stdout
        self.rules = version + (root / ".clang-tidy").read_text()
        self.texts = {}

    def text(self, path):
        if path not in self.texts:
            self.texts[path] = path.read_text() if path.is_file() else ""
        return self.texts[path]

    def closure(self, path, seen):
        """The file and every header of ours it includes, however deep."""
        if path in seen:
            return
        seen.add(path)
        for name in INCLUDE.findall(self.text(path)):
            for folder in (self.root / "src", self.root / "test", path.parent, self.build / "proto"):
                if (folder / name).is_file():
                    self.closure(folder / name, seen)
                    break

    def key(self, entry):
        seen = set()
        self.closure(pathlib.Path(entry["file"]), seen)
        digest = hashlib.sha256(self.rules.encode())
        command = re.sub(r"-O\d|-g\d?(?= )|-o \S+|-MF \S+|-MQ \S+|-[IDf]\S*/\S*|-include-pch \S+|-c \S+", "", entry["command"])
        digest.update(command.encode())
        for path in sorted(seen):
            digest.update(path.name.encode() + self.text(path).encode())
        return digest.hexdigest()

    def check(self, entry):
        """The findings' text, "" when clean."""
        mark = self.cache / self.key(entry)
        if mark.exists():
            return ""
        begun = time.monotonic()
        done = subprocess.run([TOOL, "--quiet", "-p", str(self.build), entry["file"]],
                              capture_output=True, text=True)
        name = os.path.relpath(entry["file"], self.root)
        print(f"  tidy {name} ({time.monotonic() - begun:.0f} s)", file=sys.stderr, flush=True)
        if done.returncode == 0:
            mark.touch()
            return ""
        return done.stdout or done.stderr


def main():
    build, cache = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    root = pathlib.Path(__file__).resolve().parent.parent
    cache.mkdir(parents=True, exist_ok=True)
    tidy = Tidy(build, cache, root)
    entries = json.loads((build / "compile_commands.json").read_text())
    wanted = {str(pathlib.Path(name).resolve()) for name in sys.argv[3:]}
    chosen = []
    for entry in entries:
        path = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
        # The product; src/sandbox is for demos and tests only, and a third of the sources.
        ours = (path.suffix == ".cpp" and path.is_relative_to(root / "src")
                and "_impl.cpp" not in path.name
                and not path.is_relative_to(root / "src" / "sandbox"))
        if ours and (not wanted or str(path) in wanted):
            chosen.append({**entry, "file": str(path)})
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("TIDY_JOBS") or os.cpu_count() or 2)) as pool:
        findings = [text for text in pool.map(tidy.check, chosen) if text]
    print(*findings, sep="\n")
    print(f"clang-tidy: {len(chosen)} files, {len(findings)} with findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
