"""Asking a cluster, waiting for it, and failing with what was seen.

Contract: `Commands(cluster, folder)` runs kubectl as administrator; get() and list() give objects as dictionaries.
`wait()` waits for a condition and says what it saw last.
"""

import contextlib
import json
import subprocess
import time

from api import Reader, ReadError
from objects import name_of


class Failed(Exception):
    """What was expected and what was seen."""


NOT_YET = (Failed, ReadError, KeyError, IndexError, TypeError)


def check(holds, text):
    """Fails the test unless it holds."""
    if not holds:
        raise Failed(text)


def check_in(part, text):
    """Fails the test unless the text has the part."""
    check(part in text, f"expected {part!r} in: {text}")


def wait(what, condition, seconds, pause=0.1):
    """Waits until `condition()` is true and returns its value; failures of kubectl count as not yet."""
    deadline = time.monotonic() + seconds
    seen = ""
    while True:
        try:
            if value := condition():
                return value
            seen = ""
        except NOT_YET as error:
            seen = f"; the last answer was: {error!r}"
        if time.monotonic() > deadline:
            raise Failed(f"{what}: not within {seconds} s{seen}")
        time.sleep(pause)


def stays(what, condition, seconds, pause=0.25):
    """Fails unless `condition()` is true all the time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        check(condition(), f"{what}: not any more")
        time.sleep(pause)


class Commands:
    """kubectl on a cluster. `folder`: for followed logs."""

    def __init__(self, cluster, folder):
        self.cluster = cluster
        self.folder = folder
        self.reader = Reader(cluster, folder)

    def try_kubectl(self, *arguments, text=None):
        """kubectl's status and everything it printed."""
        done = self.cluster.kubectl(*arguments, input=text, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def kubectl(self, *arguments, text=None):
        """kubectl's output; fails with its error."""
        done = self.cluster.kubectl(*arguments, input=text, capture_output=True, text=True)
        check(done.returncode == 0, f"kubectl {' '.join(map(str, arguments))}: {done.stderr.strip()}")
        return done.stdout

    def apply(self, *objects):
        """Applies objects given as dictionaries, or as text."""
        text = "\n---\n".join(o if isinstance(o, str) else json.dumps(o) for o in objects)
        return self.kubectl("apply", "-f", "-", text=text)

    def get(self, kind, name, namespace="default"):
        """The object, or None when there is none."""
        return self.reader.get(kind, name, namespace)

    def list(self, kind, namespace="default", labels="", fields=""):
        """The objects of a kind; `namespace` None means all of them."""
        return self.reader.list(kind, namespace, labels, fields)

    def delete(self, *arguments, seconds=30):
        """kubectl delete, which must end in time."""
        self.kubectl("delete", *arguments, f"--timeout={seconds}s")

    def kill_pod(self, pod):
        """Deletes a pod by force: no grace period, no waiting for the kubelet."""
        self.kubectl("delete", "pod", name_of(pod), "-n", pod["metadata"]["namespace"], "--force", "--grace-period=0")

    @contextlib.contextmanager
    def following_log(self, pod, container):
        """The log of a container while the block runs, also past the end of its pod: a function that reads it."""
        path = self.folder / f"followed-{name_of(pod)}.log"
        with open(path, "wb") as file, self.cluster.start_kubectl(
                "logs", "-f", name_of(pod), "-n", pod["metadata"]["namespace"], "-c", container, stdout=file,
                stderr=subprocess.STDOUT) as kubectl:
            try:
                wait("the first line of a log", path.read_text, 10)
                yield path.read_text
            finally:
                kubectl.kill()
