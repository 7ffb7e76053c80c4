#!/usr/bin/env python3
"""nvdra on a real Kubernetes: the guide's procedures in both modes, their neighbours, and faults.

    python3 test/e2e/run.py --build BUILD [--kubernetes VERSION] [-k PATTERN] [--dir DIR] [--list]

Runs as root. BUILD is a build folder with src/nvdra and src/sandbox/nvdra-sandbox. One line per test;
the last line is `N passed, N failed, N skipped`; exit status 1 when a test failed.
"""

import argparse
import importlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import harness
import runner

import build  # from test/cluster, which harness puts on the path
import cluster

# Their tests run in this order; neighbours share an installation of the chart.
MODULES = ("host_guide", "host_neighbours", "host_faults", "host_figures",
           "managed_install", "managed_guide", "managed_status", "managed_domains", "managed_deletions",
           "managed_imex", "managed_restarts", "managed_nodes", "managed_job", "managed_figures", "managed_latency", "managed_end",
           "managed_settings", "managed_cliques_off", "managed_gates_off")


def write_image(folder, program):
    """The image's archive, made by the repository's own script."""
    archive = Path(folder) / "nvdra.tar"
    done = subprocess.run([harness.ROOT / "image/build.sh", archive, program], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"run.py: the image cannot be built: {done.stderr.strip()}")
    return archive


def main():
    """The command line; see the module's head."""
    parser = argparse.ArgumentParser(description="nvdra on a real Kubernetes.")
    parser.add_argument("--build", default="build", help="the build folder (default: build)")
    parser.add_argument("--kubernetes", default=build.DEFAULT_KUBERNETES, metavar="VERSION")
    parser.add_argument("-k", dest="pattern", default="", help="only tests whose name matches this regular expression")
    parser.add_argument("--dir", help="keep logs and data there (default: a temporary folder)")
    parser.add_argument("--attempts", type=int, default=int(os.environ.get("NVDRA_E2E_ATTEMPTS", "1")), metavar="N",
                        help="run failed tests again, N times in all (default: NVDRA_E2E_ATTEMPTS, or 1)")
    parser.add_argument("--list", action="store_true", help="list the tests and run none")
    options = parser.parse_args()
    for module in MODULES:
        importlib.import_module(module)
    # A module may have been imported early, by one that uses its functions.
    tests = sorted((t for t in harness.TESTS if t.__module__ in MODULES), key=lambda t: MODULES.index(t.__module__))
    chosen = [t for t in tests if re.search(options.pattern, t.__name__.replace("_", " "))]
    if options.list:
        print("\n".join(t.__name__.replace("_", " ") for t in chosen))
        return
    if not chosen:
        sys.exit(f"run.py: no test matches {options.pattern!r}; --list shows them")
    folder = Path(options.build).resolve()
    for program in ("src/nvdra", "src/sandbox/nvdra-sandbox"):
        if not (folder / program).exists():
            sys.exit(f"run.py: {folder / program} is missing: build it first")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="nvdra-image-") as temporary:
            image = write_image(temporary, folder / "src/nvdra")
            with harness.World(folder, options.kubernetes, image, options.dir) as world:
                failures = runner.run_again(world, runner.run(world, chosen), options.attempts)
                passed, failed = len(chosen) - len(failures), len(failures)
    except KeyboardInterrupt:
        sys.exit(130)
    except (*harness.TROUBLE, *cluster.ERRORS) as error:
        print(f"FAILED setting up: {error}")
        passed, failed = 0, 1
    print(f"{(time.monotonic() - began) / 60:.1f} minutes")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
