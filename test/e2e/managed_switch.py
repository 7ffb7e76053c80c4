"""Another mode with domains present (W-C19): told with the remedy, nothing disturbed, cleaned up on request."""

from commands import check, wait
from domains import (daemon_set, daemon_set_name, daemons, form, gone, node_label, status_of, undisturbed, wait_event,
                     wait_reason)
from harness import CHART, NAMESPACE, RELEASE, test
from installations import DEFAULT, SWITCHED
from objects import conditions_text, uid_of, workload

INSTALLATION = DEFAULT
NODE = "node-1"
CLEAN = "resources.computeDomains.imex.cleanUpOtherMode"


@test
def leftovers_of_the_other_mode_are_told_with_the_remedy_and_go_on_request(world):
    domain, _ = form(world, NODE)
    daemon_template = daemon_set_name(domain)
    with undisturbed(world, f"domain-{NODE}"):
        world.installation = SWITCHED
        world.helm("upgrade", RELEASE, CHART)
        wait_reason(world, "domain", "ModeConflict=True", "cleanUpOtherMode")
        wait_event(world, "domain", "cleanUpOtherMode")
        check(status_of(world, "domain") == "NotReady", "the domain is Ready")
        check(daemon_set(world, domain) and world.get("resourceclaimtemplate", daemon_template, NAMESPACE), "leftovers are gone")
        check(node_label(world, NODE) == uid_of(domain) and set(daemons(world, domain)) == {NODE}, "the daemon is gone")

        world.helm("upgrade", RELEASE, CHART, values=(f"{CLEAN}=true",))
        wait("no DaemonSet", lambda: daemon_set(world, domain) is None, 20)
        wait("no daemon template", lambda: world.get("resourceclaimtemplate", daemon_template, NAMESPACE) is None, 20)
        wait("no node label", lambda: node_label(world, NODE) is None, 20)
        wait("no daemon", lambda: not daemons(world, domain), 40)
        world.wait_domain_ready("domain")
        text = conditions_text(world.get("computedomain", "domain"))
        check("ModeConflict=True" not in text, text)
    world.delete("pod", f"domain-{NODE}", seconds=20)

    # The domain is one of the mode it is in now.
    for gpu in world.gpu:
        gpu.service_start()
    world.apply(workload("work", "domain-channel", node=NODE))
    world.wait_pod_ready("work")
    check(world.has_channel("work") and not daemons(world, domain), "no channel, or a daemon")
    world.delete("pod", "work", seconds=20)
    gone(world)
