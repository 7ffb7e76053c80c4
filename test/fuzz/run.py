"""Runs the fuzz targets of a build folder, each for a while, and says what they found.

    run.py BUILD [TARGET...] [SECONDS]

A corpus per target grows in BUILD/corpus; it begins with the specimens of test/data. An input that
breaks a promise, a sanitizer or a limit is kept in BUILD/corpus/TARGET-crashes and named.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SEEDS = {
    "cdi": ["test/data/cdi/*"],
    "checkpoint": ["test/dra/data/*"],
    "imex_tools": ["test/data/imex/*"],
    "json": ["test/dra/data/*"],
}
# Texts that a byte-wise search would need long to find.
WORDS = {
    "flags": ["1h2m3.5s", "true", "A=1,B=2,", "HostManagedIMEXDaemon=true,AllAlpha=false"],
    "kubeconfig": ["apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts:\n- name: a\n"
                   "  context: {cluster: c, user: u}\nclusters:\n- name: c\n"
                   "  cluster: {server: 'https://[::1]:6443/x', certificate-authority-data: AAAA}\n"
                   "users:\n- name: u\n  user: {token: t}\n"],
    "opaque_config": ['{"apiVersion":"resource.nvidia.com/v1beta1","kind":"ComputeDomainChannelConfig",'
                      '"domainID":"0f8fad5b-d9cb-469f-a165-70867728950e","allocationMode":"All"}'],
    "watch_event": ['{"type":"ADDED","object":{"metadata":{"name":"x","resourceVersion":"1"}}}',
                    '{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}'],
}


def main():
    build = Path(sys.argv[1])
    words = sys.argv[2:]
    seconds = 20
    if words and words[-1].isdigit():
        seconds = int(words.pop())
    programs = {path.name.removeprefix("fuzz_"): path.resolve()
                for path in sorted((build / "test/fuzz").glob("fuzz_*")) if path.is_file()}
    unknown = [word for word in words if word not in programs]
    if unknown or not programs:
        sys.exit(f"fuzz: there is no target {', '.join(unknown) or 'at all'}; there are: {', '.join(programs)}")
    failed = [name for name in words or programs if not fuzz(build, name, programs[name], seconds)]
    tried = len(words or programs)
    print(f"{tried - len(failed)} passed, {len(failed)} failed, 0 skipped")
    return 1 if failed else 0


def fuzz(build, name, program, seconds):
    corpus = build / "corpus" / name
    crashes = build / "corpus" / f"{name}-crashes"
    for folder in (corpus, crashes):
        folder.mkdir(parents=True, exist_ok=True)
    for pattern in SEEDS.get(name, []):
        for file in ROOT.glob(pattern):
            shutil.copy(file, corpus)
    for number, word in enumerate(WORDS.get(name, [])):
        (corpus / f"word-{number}").write_text(word)
    environment = os.environ | {"UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"}
    done = subprocess.run(
        [program, corpus, f"-max_total_time={seconds}", f"-artifact_prefix={crashes}/", "-timeout=5",
         "-rss_limit_mb=2048", "-max_len=8192", "-print_final_stats=1"],
        env=environment, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    runs = next((line.split()[-1] for line in done.stderr.splitlines()
                 if line.startswith("stat::number_of_executed_units")), "?")
    if done.returncode == 0:
        print(f"ok     {name}: {runs} inputs in {seconds} s", flush=True)
        return True
    print(f"FAILED {name}:", *done.stderr.splitlines()[-40:], sep="\n    ", flush=True)
    return False


if __name__ == "__main__":
    sys.exit(main())
