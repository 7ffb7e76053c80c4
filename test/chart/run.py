#!/usr/bin/env python3
"""Tests of the chart and of the image. One line for each test; the last line is the sum.

run.py [--helm PATH] [--only TEXT] [--cluster]

helm       default: $HELM, the one that ./dev keeps in its cache, or that of PATH
--cluster  the tests that need a real API server instead of the others:
           python3 test/cluster/apiserver.py run --dir DIR --controllers -- python3 test/chart/run.py --cluster
"""

import argparse
import os
import pathlib
import shutil
import sys
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import support  # noqa: E402


class Lines(unittest.TestResult):
    """Tells each result in one line, and why a test failed right below it."""

    def __init__(self):
        super().__init__()
        self.passed = 0

    @staticmethod
    def name(test):
        return f"{type(test).__name__}: {test.id().rsplit('.', 1)[1].removeprefix('test_').replace('_', ' ')}"

    def tell(self, word, test, text=""):
        print(f"{word} {self.name(test)}", flush=True)
        for line in text.rstrip().splitlines():
            print(f"     {line}", flush=True)

    def addSuccess(self, test):
        self.passed += 1
        self.tell("ok  ", test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.tell("FAIL", test, self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.tell("FAIL", test, self.errors[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            print(f"FAIL {self.name(test)} {subtest._subDescription()}\n     {err[1]}", flush=True)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.tell("skip", test, reason)


def find_helm(given):
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "nvdra" / "helm"
    candidates = [given] if given else [os.environ.get("HELM"), *sorted(cache.glob("*/helm"), reverse=True), shutil.which("helm")]
    for one in candidates:
        if one and os.access(one, os.X_OK):
            return str(one)
    sys.exit(f"run.py: no helm at {given}" if given else "run.py: no helm found: name one with --helm PATH")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--helm")
    parser.add_argument("--only", help="only tests whose name contains this text")
    parser.add_argument("--cluster", action="store_true", help="the tests against the API server of $KUBECONFIG")
    args = parser.parse_args()
    support.HELM = find_helm(args.helm)
    loader = unittest.TestLoader()
    if args.only:
        loader.testNamePatterns = [f"*{args.only.replace(' ', '_')}*"]
    result = Lines()
    loader.discover(str(HERE), "*_on_cluster.py" if args.cluster else "*_test.py").run(result)
    failed = len({test.id().split(" ")[0] for test, _ in result.failures + result.errors})
    print(f"{result.passed} passed, {failed} failed, {len(result.skipped)} skipped")
    sys.exit(0 if failed == 0 and result.passed else 1)


if __name__ == "__main__":
    main()
