"""Runs the tests in parts that do not know of each other: each in a process and on a cluster of its own.

Contract: `run(parts, command)` runs several parts at a time and returns how many tests passed and failed. What a test
prints stays together and ends with its line. A part that ends without its count has failed.
"""

import re
import subprocess
import threading

COUNT = re.compile(r"(\d+) passed, (\d+) failed, \d+ skipped")
LAST_OF_TEST = re.compile(r"ok |FAILED ")


class Part:
    """Some modules, being run by `command`, which takes `--modules A,B`."""

    def __init__(self, modules, command, printing):
        self._printing = printing
        self._counts = None
        self._process = subprocess.Popen([*command, "--modules", ",".join(modules)], stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, text=True)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def wait(self):
        """Returns how many tests passed and failed, once all have."""
        self._reader.join()
        status = self._process.wait()
        if self._counts is None or (status and not self._counts[1]):
            return 0, 1
        return self._counts

    def terminate(self):
        """Ends it; its cluster goes with it."""
        self._process.terminate()

    def _read(self):
        block = []
        for line in self._process.stdout:
            if found := COUNT.fullmatch(line.rstrip()):
                self._counts = int(found[1]), int(found[2])
                continue
            block.append(line)
            if LAST_OF_TEST.match(line):
                self._print(block)
                block = []
        self._print(block)

    def _print(self, block):
        with self._printing:
            print("".join(block), end="", flush=True)


def run(parts, command):
    """Runs the parts side by side; `command(number)` is the command line of one. Returns passed and failed."""
    printing = threading.Lock()
    running = [Part(modules, command(number), printing) for number, modules in enumerate(parts, 1)]
    try:
        counts = [part.wait() for part in running]
    except BaseException:
        for part in running:
            part.terminate()
        for part in running:
            part.wait()
        raise
    return tuple(map(sum, zip(*counts)))
