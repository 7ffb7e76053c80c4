"""Background programs: started with a log file, known by their process id, ended for certain.

Contract: a Process is one program that can be started and stopped any number of times. Its id is kept
in a file, so that a later Python process finds it again; an id that has been given to another program
since is recognised by its start time. Output goes to NAME.log, which grows over restarts.
`wait_until()` waits for a condition and fails early, with the end of the log, when a program it
depends on has ended.
"""

import ctypes
import os
import signal
import subprocess
import time
from pathlib import Path


class ProcessError(Exception):
    """A program did not start, ended, or did not do its work in time."""


class Process:
    """One program.

    enter: a command line that is put in front, for programs in other namespaces.
    group: the Group it joins; without one, it is killed when this Python process ends in any way.
    """

    def __init__(self, name, command, folder, enter=(), environment=None, group=None):
        self.name = name
        self.command = [*enter, *map(str, command)]
        self.log = Path(folder) / f"{name}.log"
        self._record = Path(folder) / f"{name}.pid"
        self._environment = {**os.environ, **(environment or {})}
        self._group = group
        self._child = None

    def start(self):
        """Starts the program unless it runs."""
        if self.alive():
            return
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log, "ab") as log:
            self._child = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                env=self._environment, start_new_session=True,
                preexec_fn=self._group.join if self._group else _die_with_parent)
        self._record.write_text(f"{self._child.pid} {start_time(self._child.pid)}")

    def pid(self):
        """The process id, or None when it does not run."""
        if self._child:
            return self._child.pid if self._child.poll() is None else None
        try:
            pid, started = map(int, self._record.read_text().split())
        except (OSError, ValueError):
            return None
        return pid if started and start_time(pid) == started else None

    def alive(self):
        """Whether it runs."""
        return self.pid() is not None

    def signal(self, number):
        """Sends a signal; nothing happens when it does not run."""
        if pid := self.pid():
            os.kill(pid, number)

    def stop(self, patience=10):
        """Asks it to end, kills it after `patience` seconds, and returns when it is gone."""
        self.signal(signal.SIGTERM if patience else signal.SIGKILL)
        deadline = time.monotonic() + patience
        while self.alive():
            if time.monotonic() > deadline:
                self.signal(signal.SIGKILL)
            time.sleep(0.02)
        self._child = None
        self._record.unlink(missing_ok=True)

    def tail(self, lines=15):
        """The end of its log, for messages."""
        try:
            text = self.log.read_text(errors="replace").splitlines()[-lines:]
        except OSError:
            text = []
        return "\n".join([f"the end of {self.log}:", *(f"  {line}" for line in text)])

    def check(self):
        """Raises ProcessError when it does not run."""
        if not self.alive():
            raise ProcessError(f"{self.name} has ended; {self.tail()}")


def wait_until(what, condition, seconds, processes=()):
    """Waits until `condition()` is true and returns its value.

    Raises ProcessError when one of the processes ends or the time is over; the message then shows the
    log of the process that ended, or of the last one named.
    """
    deadline = time.monotonic() + seconds
    pause = 0.02
    while True:
        if value := condition():
            return value
        for process in processes:
            process.check()
        if time.monotonic() > deadline:
            logs = "; " + processes[-1].tail() if processes else ""
            raise ProcessError(f"{what}: not after {seconds} s{logs}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.25)


def start_time(pid):
    """When the process was started, in ticks since boot; 0 when it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == "Z" else int(fields[19])


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def kill_until_none(members, patience, complaint):
    """Kills the processes that members() names until it names none; raises complaint(pids) when some survive."""
    deadline = time.monotonic() + patience
    while pids := members():
        if time.monotonic() > deadline:
            raise complaint(pids)
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)
