"""How fast news travel in the default mode, on a real cluster: from nvidia-imex to the waiting workload and to the
ComputeDomain's status. Read from the API server's audit log, the plugin's log and the times at which the container
runtime got the lines of nvidia-imex; their clocks are one."""

import datetime
import re
import statistics

from audit import Audit
from commands import check, wait
from domains import CONTAINER, LABEL, form, gone
from harness import NAMESPACE, test
from installations import DEFAULT
from objects import name_of

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


@test
def a_daemon_that_gets_ready_releases_the_workload_and_shows_in_the_status_at_once(world):
    released, answered_after, shown = [], [], []
    for i in range(ROUNDS):
        name = f"domain-{i}"
        with Audit(world) as audit:
            _, found = form(world, NODE, name=name)
            received, answered = patches(audit, "daemon", "computedomaincliques")[-1]
            told = wait("a patch of the status after the daemon's word", lambda: [
                done for begun, done in patches(audit, "controller", "computedomains/status") if begun > received], 10)
            ready = wait("the plugin's word that the claim is prepared", lambda: prepared(world, received), 10)
        released.append((ready - received).total_seconds() * 1000)
        answered_after.append((ready - imex_ready(world, found[NODE])).total_seconds() * 1000)
        shown.append((told[0] - answered).total_seconds() * 1000)
        world.delete("pods", "--all", "--grace-period=1")
        gone(world, name)
        wait("no daemon", lambda: not world.list("pods", NAMESPACE, LABEL), 40)
    check(min(answered_after) > 0, f"answered before nvidia-imex was READY: {answered_after} ms")
    check(max(answered_after) < 2000 and max(shown) < 2000, f"answered after {answered_after} ms, shown after {shown} ms")
    return (f"nvidia-imex READY to claim answered: {spread(answered_after)} of {ROUNDS} (wanted 50 ms); of it from the daemon's "
            f"word on: {spread(released)}; daemon's word to the ComputeDomain's status: {spread(shown)} (wanted 200 ms)")


def spread(times):
    return f"median {statistics.median(times):.0f} ms, most {max(times):.0f} ms"
