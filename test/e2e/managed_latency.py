"""How fast news travel in the default mode, on a real cluster: from nvidia-imex to the waiting workload and to the
ComputeDomain's status. Read from the API server's audit log, the plugin's log and the times at which the container
runtime got the lines of nvidia-imex; their clocks are one."""

import datetime
import os
import re
import signal

from audit import Audit
from commands import check, wait
from domains import CONTAINER, LABEL, form, gone, wait_status
from figures import longest, tell
from harness import NAMESPACE, test
from installations import DEFAULT
from objects import name_of
from processes import named

INSTALLATION = DEFAULT
ROUNDS = 10
NODE = "node-1"
PREPARED = re.compile(r'I(\d{4} \d\d:\d\d:\d\d\.\d{6}).*"Prepared claim" claim="default/')


def at(text):
    """A time of the audit log."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def prepared(world, since):
    """When the plugin had prepared the workload's claim; klog knows no year and no time zone but the container's, UTC."""
    found = [datetime.datetime.strptime(f"{since.year} {m.group(1)}", "%Y %m%d %H:%M:%S.%f").replace(tzinfo=datetime.UTC)
             for m in map(PREPARED.match, world.plugin_log(NODE).splitlines()) if m]
    return next((when for when in found if when > since), None)


def imex_ready(world, pod):
    """When nvidia-imex was READY: it names its GPUs then."""
    log = world.kubectl("logs", "--timestamps", name_of(pod), "-n", NAMESPACE, "-c", CONTAINER)
    lines = [line for line in log.splitlines() if "nvidia-imex: " in line and "] GPU id: " in line]
    return datetime.datetime.fromisoformat(lines[0].split()[0][:26].rstrip("Z") + "+00:00")


def patches(audit, user, resource):
    """(received, answered) of one user's successful patches of a resource, in the order of their answers."""
    return sorted((at(e["requestReceivedTimestamp"]), at(e["stageTimestamp"]))
                  for e in audit.events() if e["verb"] == "patch" and e["responseStatus"].get("code") == 200
                  and (audit.user(e), audit.resource(e)) == (user, resource))


def milliseconds(begin, end):
    """Between two times."""
    return (end - begin).total_seconds() * 1000


def word_and_status(audit, position):
    """Of the daemon's first (0) or last (-1) word to its clique: when it was received, when it was answered, and when
    the status that followed was."""
    received, answered = wait("the daemon's word", lambda: patches(audit, "daemon", "computedomaincliques"), 20)[position]
    told = wait("a patch of the status after the daemon's word", lambda: [
        done for begun, done in patches(audit, "controller", "computedomains/status") if begun > received], 10)
    return received, answered, told[0]


@test
def a_daemon_that_gets_ready_releases_the_workload_and_shows_in_the_status_at_once(world):
    released, answered_after, shown = [], [], []
    lost, lost_after = [], []
    for i in range(ROUNDS):
        name = f"domain-{i}"
        with Audit(world) as audit:
            _, found = form(world, NODE, name=name)
            received, answered, told = word_and_status(audit, -1)
            ready = wait("the plugin's word that the claim is prepared", lambda: prepared(world, received), 10)  # noqa: B023
        released.append(milliseconds(received, ready))
        answered_after.append(milliseconds(imex_ready(world, found[NODE]), ready))
        shown.append(milliseconds(answered, told))
        killed, answered, told = not_ready(world, name, found[NODE])
        lost.append(milliseconds(answered, told))
        lost_after.append(milliseconds(killed, told))
        world.delete("pods", "--all", "--grace-period=1")
        gone(world, name)
        wait("no daemon", lambda: not world.list("pods", NAMESPACE, LABEL), 40)
    check(min(answered_after) > 0, f"answered before nvidia-imex was READY: {answered_after} ms")
    return tell(longest("nvidia-imex READY to claim answered", answered_after, 50),
                longest("of it from the daemon's word on", released, 50),
                longest("daemon's word Ready to the ComputeDomain's status", shown, 200),
                longest("its word NotReady to the status", lost, 200),
                longest("end of nvidia-imex to the status", lost_after, None))


def not_ready(world, name, pod):
    """Kills the nvidia-imex of a Ready domain: when that was, when the daemon's word was answered, and the status."""
    (pid,) = named(pod["status"]["containerStatuses"][0]["containerID"], "nvidia-imex")
    with Audit(world) as audit:
        killed = datetime.datetime.now(datetime.UTC)
        os.kill(pid, signal.SIGKILL)
        _, answered, told = word_and_status(audit, 0)
        wait_status(world, name, "Ready")  # again
    return killed, answered, told
