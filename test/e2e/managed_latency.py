"""How fast news travel in the default mode, on a real cluster: from a daemon to the waiting workload and to the
ComputeDomain's status. Read from the API server's audit log and the plugin's log, whose clocks are one."""

import datetime
import re
import statistics

from audit import Audit
from commands import check, wait
from domains import LABEL, form, gone
from harness import NAMESPACE, test
from installations import DEFAULT

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


def patches(audit, user, resource):
    """(received, answered) of one user's successful patches of a resource, in the order of their answers."""
    return sorted((at(e["requestReceivedTimestamp"]), at(e["stageTimestamp"]))
                  for e in audit.events() if e["verb"] == "patch" and e["responseStatus"].get("code") == 200
                  and (audit.user(e), audit.resource(e)) == (user, resource))


@test
def a_daemon_that_gets_ready_releases_the_workload_and_shows_in_the_status_at_once(world):
    released, shown = [], []
    for i in range(ROUNDS):
        name = f"domain-{i}"
        with Audit(world) as audit:
            form(world, NODE, name=name)
            received, answered = patches(audit, "daemon", "computedomaincliques")[-1]
            told = wait("a patch of the status after the daemon's word", lambda: [
                done for begun, done in patches(audit, "controller", "computedomains/status") if begun > received], 10)
            ready = wait("the plugin's word that the claim is prepared", lambda: prepared(world, received), 10)
        released.append((ready - received).total_seconds() * 1000)
        shown.append((told[0] - answered).total_seconds() * 1000)
        world.delete("pods", "--all", "--grace-period=1")
        gone(world, name)
        wait("no daemon", lambda: not world.list("pods", NAMESPACE, LABEL), 40)
    check(max(released) < 2000 and max(shown) < 2000, f"released after {released} ms, shown after {shown} ms")
    return (f"daemon says Ready to claim answered: median {statistics.median(released):.0f} ms, most {max(released):.0f} ms "
            f"of {ROUNDS} (wanted 50 ms); to the ComputeDomain's status: median {statistics.median(shown):.0f} ms, most "
            f"{max(shown):.0f} ms (wanted 200 ms)")
