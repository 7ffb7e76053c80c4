#!/usr/bin/env python3
"""Writes modules/kubernetes-VERSION, from which build.py builds that Kubernetes.

    python3 test/cluster/add_kubernetes.py VERSION

Kubernetes' own module refers to its parts by folders of its repository; here each of them is replaced
by the module of the same release.
"""

import json
import re
import sys
from pathlib import Path

import build
import toolchain


def go_mod(theirs, version):
    """Our go.mod, without the indirect requirements, from the text of Kubernetes' own."""
    staged = re.findall(r"(\S+) => \./staging/", theirs)
    part = "v0." + version.split(".", 1)[1]
    head = re.findall(r"^(?:go|godebug) .*$", theirs, re.MULTILINE)
    lines = ["module nvdra.test/kubernetes", *head, f"require k8s.io/kubernetes v{version}"]
    replacements = "\n".join(f"\t{name} => {name} {part}" for name in staged)
    return "\n\n".join([*lines, f"replace (\n{replacements}\n)"]) + "\n"


def main():
    """The command line; see the module's head."""
    if len(sys.argv) != 2 or not re.fullmatch(r"\d+\.\d+\.\d+", sys.argv[1]):
        sys.exit("usage: add_kubernetes.py VERSION, for example 1.34.4")
    version = sys.argv[1]
    go = toolchain.find(build.cache_folder())
    folder = build.MODULES / f"kubernetes-{version}"
    folder.mkdir(exist_ok=True)
    answer = json.loads(go.run("mod", "download", "-json", f"k8s.io/kubernetes@v{version}", folder="/", capture=True))
    (folder / "go.mod").write_text(go_mod(Path(answer["GoMod"]).read_text(), version))
    template = build.MODULES / f"kubernetes-{build.DEFAULT_KUBERNETES}" / "tools.go"
    if not (folder / "tools.go").exists():
        (folder / "tools.go").write_text(template.read_text())
    # -e: some modules that only Kubernetes' own tests need are not published.
    go.run("mod", "tidy", "-e", folder=folder)


if __name__ == "__main__":
    main()
