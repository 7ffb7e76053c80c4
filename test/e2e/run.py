#!/usr/bin/env python3
"""nvdra on a real Kubernetes: the guide's procedures in both modes, their neighbours, and faults.

    python3 test/e2e/run.py --build BUILD [--kubernetes VERSION] [-k PATTERN] [--dir DIR] [--list]

Runs as root. BUILD is a build folder with src/nvdra and src/sandbox/nvdra-sandbox. All tests run in two parts side
by side, each on a cluster of its own, and then those that measure; some of them run one after another on one cluster.
One line per test; the last line is `N passed, N failed, N skipped`; exit status 1 when a test failed.
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
import parts
import runner

import build  # from test/cluster, which harness puts on the path
import cluster

# Tests of a part run in this order on one cluster; neighbours share an installation of the chart.
PARTS = (("host_guide", "host_neighbours", "host_faults", "managed_nodes", "managed_job", "managed_moved",
          "managed_settings", "managed_cliques_off", "managed_gates_off"),
         ("managed_install", "managed_guide", "managed_status", "managed_domains", "managed_deletions", "managed_imex",
          "managed_restarts", "managed_switch", "managed_end"))
# Not beside others: they measure.
FIGURES = ("host_figures", "managed_latency", "managed_figures")
MODULES = tuple(module for part in (*PARTS, FIGURES) for module in part)


def write_image(folder, program):
    """The image's archive, made by the repository's own script."""
    archive = Path(folder) / "nvdra.tar"
    done = subprocess.run([harness.ROOT / "image/build.sh", archive, program], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"run.py: the image cannot be built: {done.stderr.strip()}")
    return archive


def arguments():
    """The command line; see the module's head."""
    parser = argparse.ArgumentParser(description="nvdra on a real Kubernetes.")
    parser.add_argument("--build", default="build", help="the build folder (default: build)")
    parser.add_argument("--kubernetes", default=build.DEFAULT_KUBERNETES, metavar="VERSION")
    parser.add_argument("-k", dest="pattern", default="", help="only tests whose name matches this regular expression")
    parser.add_argument("--modules", help="only tests of these modules, separated by commas")
    parser.add_argument("--one", action="store_true",
                        help="all tests one after another on one cluster (so it is with -k and --modules)")
    parser.add_argument("--dir", help="keep logs and data there (default: a temporary folder)")
    parser.add_argument("--image", help="the image's archive (default: made from the build folder)")
    parser.add_argument("--attempts", type=int, default=int(os.environ.get("NVDRA_E2E_ATTEMPTS", "1")), metavar="N",
                        help="run failed tests again, N times in all (default: NVDRA_E2E_ATTEMPTS, or 1)")
    parser.add_argument("--list", action="store_true", help="list the tests and run none")
    return parser.parse_args()


def choose(options):
    """The tests to run."""
    modules = options.modules.split(",") if options.modules else MODULES
    for module in modules:
        importlib.import_module(module)
    # A module may have been imported early, by one that uses its functions.
    tests = sorted((t for t in harness.TESTS if t.__module__ in modules), key=lambda t: modules.index(t.__module__))
    chosen = [t for t in tests if re.search(options.pattern, t.__name__.replace("_", " "))]
    if not chosen:
        sys.exit(f"run.py: no test matches {options.pattern!r}; --list shows them")
    return chosen


def run_here(options, image):
    """The chosen tests on one cluster; how many passed and failed."""
    chosen = choose(options)
    with harness.World(options.build, options.kubernetes, image, options.dir) as world:
        failures = runner.run_again(world, runner.run(world, chosen), options.attempts)
        return len(chosen) - len(failures), len(failures)


def run_parts(options, image):
    """All tests, in parts; how many passed and failed."""
    def command(number):
        folder = ["--dir", Path(options.dir) / f"part-{number}"] if options.dir else []
        return [sys.executable, __file__, "--build", options.build, "--kubernetes", options.kubernetes, "--image", image,
                "--attempts", str(options.attempts), *folder]
    return tuple(map(sum, zip(parts.run(PARTS, command), parts.run((FIGURES,), lambda _: command("figures")))))


def main():
    """See the module's head."""
    options = arguments()
    if options.list:
        print("\n".join(t.__name__.replace("_", " ") for t in choose(options)))
        return
    options.build = Path(options.build).resolve()
    for program in ("src/nvdra", "src/sandbox/nvdra-sandbox"):
        if not (options.build / program).exists():
            sys.exit(f"run.py: {options.build / program} is missing: build it first")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    began = time.monotonic()
    run = run_here if options.one or options.pattern or options.modules else run_parts
    try:
        with tempfile.TemporaryDirectory(prefix="nvdra-image-") as temporary:
            passed, failed = run(options, options.image or write_image(temporary, options.build / "src/nvdra"))
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
