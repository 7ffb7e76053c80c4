"""The figures of nvdra, each printed with its limit and the command that shows it.

    run.py --build DIR [--idle SECONDS] [NAME...]

Without names all figures are taken but `clean-build` and `cluster`, which need the machine for themselves.
`cluster` are those of a real Kubernetes: some tests of ./dev e2e, without the slack that they have there.
Exit 1 if a figure misses its limit.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import idle

ROOT = Path(__file__).resolve().parent.parent.parent
MIB = 1024 * 1024
CLUSTER_MODULES = ("host_figures", "managed_latency", "managed_figures")  # of test/e2e


class Figures:
    def __init__(self):
        self.missed = 0

    def tell(self, what, value, limit, unit, command):
        verdict = ""
        if limit is not None:
            verdict = f"  (limit {limit:g} {unit})"
            if value > limit:
                verdict += "  MISSED"
                self.missed += 1
        print(f"{what:<58} {value:8.2f} {unit}{verdict}\n    {command}", flush=True)


def size(figures, build):
    """The executable, as it goes into the image."""
    with tempfile.TemporaryDirectory() as folder:
        stripped = f"{folder}/nvdra"
        subprocess.run(["llvm-strip-19", "-o", stripped, build / "src/nvdra"], check=True)
        figures.tell("executable, stripped", os.path.getsize(stripped) / MIB, 20, "MiB",
                     "llvm-strip-19 -o nvdra.stripped build/src/nvdra")
    linked = subprocess.run(["ldd", build / "src/nvdra"], capture_output=True, text=True, check=False)
    static = "statically linked" in linked.stdout + linked.stderr or linked.returncode != 0
    figures.tell("shared libraries (ldd build/src/nvdra)", 0 if static else 1, 0, "", "ldd build/src/nvdra")


def help_text(figures, build):
    """A start of the program to its end."""
    times = []
    for _ in range(50):
        start = time.perf_counter()
        subprocess.run([build / "src/nvdra", "--help"], stdout=subprocess.DEVNULL, check=True)
        times.append((time.perf_counter() - start) * 1000)
    figures.tell("nvdra --help, median of 50", statistics.median(times), 5, "ms", "nvdra --help")


def prepare(figures, build):
    """Claims of a ready node through gRPC, with real files and fsync."""
    command = [build / "test/bench/prepare_bench", build / "src/nvdra",
               build / "src/sandbox/nvdra-sandbox", "500"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    told = json.loads(done.stdout)
    line = "build/test/bench/prepare_bench build/src/nvdra build/src/sandbox/nvdra-sandbox 500"
    figures.tell("prepare of a ready claim, p50 of 500", told["prepare_p50"], 10, "ms", line)
    figures.tell("prepare of a ready claim, p99 of 500", told["prepare_p99"], 30, "ms", line)
    figures.tell("unprepare, p50 of 500", told["unprepare_p50"], None, "ms", line)


def no_op_build(figures, build):
    subprocess.run(["ninja", "-C", build], stdout=subprocess.DEVNULL, check=True)
    start = time.perf_counter()
    subprocess.run(["ninja", "-C", build], stdout=subprocess.DEVNULL, check=True)
    figures.tell("build when nothing has changed", time.perf_counter() - start, 1, "s", "ninja -C build")


def clean_build(figures, _build):
    """From nothing: product and tests, without a compiler cache."""
    with tempfile.TemporaryDirectory() as folder:
        quiet = {"cwd": ROOT, "stdout": subprocess.DEVNULL, "check": True}
        subprocess.run(["./dev", "configure", f"{folder}/build"], **quiet)
        start = time.perf_counter()
        subprocess.run(["ninja", "-C", f"{folder}/build"], env=os.environ | {"CCACHE_DISABLE": "1"}, **quiet)
        figures.tell("clean build of product and tests", (time.perf_counter() - start) / 60, 8, "min",
                     "CCACHE_DISABLE=1 ninja -C NEW-FOLDER")


def memory(figures, build, seconds=None):
    """Resident memory of the roles in an idle sandbox of one node."""
    command = f"./dev bench memory --idle {seconds or memory.idle}"
    for role, used in idle.resident(build, seconds or memory.idle).items():
        figures.tell(f"{role}, resident after {seconds or memory.idle} s idle", used.megabytes,
                     idle.LIMITS[role], "MB", command)
        figures.tell(f"{role}, processor while idle", used.percent, 0.1, "%", command)


def cluster(figures, build):
    """On a real Kubernetes: its tests print the figures themselves."""
    command = ["./dev", "e2e", "--modules", ",".join(CLUSTER_MODULES)]
    print("figures of a real Kubernetes:\n    ./dev bench cluster", flush=True)
    done = subprocess.run(command, cwd=ROOT, check=False, env=os.environ | {
        "NVDRA_BUILD": str(build), "NVDRA_FIGURES": "strict", "NVDRA_E2E_ATTEMPTS": "1"})
    figures.missed += done.returncode != 0


ALL = {"size": size, "help": help_text, "prepare": prepare, "no-op-build": no_op_build, "memory": memory,
       "clean-build": clean_build, "cluster": cluster}
ONLY_BY_NAME = ("clean-build", "cluster")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--idle", type=int, default=600, help="seconds before memory is looked at")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ALL))
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in ALL]
    if unknown:
        parser.error(f"there is no figure {', '.join(unknown)}; there are {', '.join(ALL)}")
    memory.idle = arguments.idle
    figures = Figures()
    for name in arguments.names or [name for name in ALL if name not in ONLY_BY_NAME]:
        ALL[name](figures, arguments.build.resolve())
    if not arguments.names:
        print(f"more, each by its name: {', '.join(f'./dev bench {name}' for name in ONLY_BY_NAME)}")
    return 1 if figures.missed else 0


if __name__ == "__main__":
    sys.exit(main())
