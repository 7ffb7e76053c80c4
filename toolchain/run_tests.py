"""Runs the test programs of a build folder and counts their cases.

run_tests.py BUILD_DIR [--suite NAME]... [--out FILE]: every program that meson knows, Catch2 ones with
their JUnit report, so that the count is of cases, not programs. A case that cannot run prints a line
"SKIPPED: why". The last line is "N passed, N failed, N skipped"; exit 1 if anything failed.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml


class Count:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def line(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def run(command, environment, limit, cwd):
    """(exit status or None after a time-out, output). Ends the whole process group."""
    if not os.path.exists(command[0]):
        return -1, f"{command[0]} is not built"
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors="replace", env=environment, cwd=cwd, start_new_session=True)
    try:
        output, _ = child.communicate(timeout=limit)
        return child.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        output, _ = child.communicate()
        return None, output


def is_catch(command):
    return os.path.basename(command[0]).endswith("_test")


def report_failures(report):
    for case in report.iter("testcase"):
        for failure in case.findall("failure") + case.findall("error"):
            print(f"  FAILED: {case.get('name')}\n{(failure.text or failure.get('message') or '').strip()}\n")


def one(test, build, count):
    environment = {**os.environ, **(test.get("env") or {})}
    limit = (test["timeout"] or 60) * float(os.environ.get("NVDRA_TEST_TIMEOUT_FACTOR", "2"))
    command, cases, bad, extra = list(test["cmd"]), 1, 0, ""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report_file = os.path.join(folder, "report.xml")
        if is_catch(command):
            command += ["-r", "junit", "-o", report_file]
        status, output = run(command, environment, limit, test.get("workdir") or build)
        try:
            report = xml.parse(report_file).getroot() if is_catch(command) else None
        except (OSError, xml.ParseError):
            report, status = None, status or -1
    if status == 77:  # Meson's exit status of a test that cannot run
        status = 0
        output = "\n".join(line.replace("skipped:", "SKIPPED:", 1) if line.startswith("skipped:") else line
                           for line in output.splitlines()) or "SKIPPED: no reason was given"
    skips = [line for line in output.splitlines() if line.startswith("SKIPPED:")]
    if report is not None:
        skips += [line for text in report.iter("system-out") for line in (text.text or "").splitlines()
                  if line.startswith("SKIPPED:")]
        all_cases = list(report.iter("testcase"))
        # Catch2 2 writes one testcase per section; count what a reader calls a case.
        names = {case.get("name").split("/")[0] for case in all_cases}
        failing = {case.get("name").split("/")[0] for case in all_cases
                   if case.find("failure") is not None or case.find("error") is not None}
        cases, bad = max(len(names), 1), len(failing)
        report_failures(report)
    skipped = min(len(set(skips)), cases)
    if status != 0 and bad == 0:
        bad = 1
        extra = "timed out" if status is None else f"exit status {status}"
        print(output[-6000:])
    count.failed += bad
    count.skipped += skipped
    count.passed += max(cases - bad - skipped, 0)
    verdict = "ok" if not bad else "FAILED"
    print(f"{verdict:7}{test['name']}: {cases} cases, {time.monotonic() - begun:.1f} s {extra}", flush=True)
    for line in sorted(set(skips)):
        print("       " + line)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--suite", action="append", default=[])
    parser.add_argument("--out")
    options = parser.parse_args()
    listing = subprocess.run(["meson", "introspect", "--tests", options.build], check=True,
                             capture_output=True, text=True).stdout
    count = Count()
    tests = sorted(json.loads(listing), key=lambda t: t["name"])
    suites_of = {test["name"]: {suite.split(":")[-1] for suite in test["suite"]} for test in tests}
    known = set().union(*suites_of.values())
    if unknown := set(options.suite) - known:
        parser.error(f"no suite {', '.join(sorted(unknown))}: there are {', '.join(sorted(known))}")
    for test in tests:
        # Tests that need an API server run where one is given: ./dev e2e starts one.
        wanted = set(options.suite) or {"unit", "loopback", "sandbox", "privileged"}
        if suites_of[test["name"]] & wanted:
            one(test, options.build, count)
    if options.out:
        pathlib.Path(options.out).write_text(count.line() + "\n")
    print(count.line())
    return 1 if count.failed else 0


if __name__ == "__main__":
    sys.exit(main())
