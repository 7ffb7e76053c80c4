"""Values that an administrator may set: I10 and B5 to B7 of the test-suite, IMEX overrides, a limit of slots."""

import json
import time

import gpu_node
from commands import check, check_in, wait
from domains import (CONTAINER, create, daemons, form, gone, members, node_label, wait_daemon_running, wait_reason,
                     wait_status)
from harness import CHECKPOINT, NAMESPACE, RELEASE, test
from installations import SETTINGS
from objects import CLIQUE_LABEL, name_of, uid_of, workload
from processes import container_path, main_process

INSTALLATION = SETTINGS
NODE = "node-1"
LEASE = f"{RELEASE}-controller"
# What is said at level 6 and not at 0 (cluster-side.md 4.13 and AT-B7).
TALK = {"everybody": ("round_trippers.go", '"Response" verb="GET"'),
        "controller": ("Processing added or updated ComputeDomain", "Caches populated", "Listing and watching"),
        "kubelet-plugin": ("Caches populated", "Listing and watching"),
        "daemon": ("Wait for updated ComputeDomainDaemonInfo list",)}


@test
def I10_every_node_shows_its_clique(world):
    for node in world.list("nodes"):
        label = node["metadata"]["labels"].get(CLIQUE_LABEL)
        check(label == f"{gpu_node.CLUSTER_UUID}.{gpu_node.CLIQUE}", f"{name_of(node)}: {label}")


@test
def B5_a_claim_that_is_not_ready_survives_the_plugin_and_is_undone_once_it_is_gone(world):
    world.gpu_node(NODE).faults(**{"nvidia-imex": {"state": "INIT_GPU"}})
    domain = create(world)
    world.apply(workload("work", "domain-channel", node=NODE))
    wait_daemon_running(world, domain, NODE)
    pod = world.get("pod", "work")
    claim = pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    wait("the claim half prepared", lambda: states(world)[claim] == "PrepareStarted", 20)

    world.restart_plugin(NODE)
    wait("the log names it", lambda: f"partially prepared claim not stale: default/{claim}" in world.plugin_log(NODE), 20)
    check(states(world)[claim] == "PrepareStarted" and node_label(world, NODE) == uid_of(domain), "it was undone")

    world.uninstall()
    try:
        world.kill_pod(pod)
        wait("the claim gone", lambda: world.get("resourceclaim", claim) is None, 30)
    finally:
        world.install(SETTINGS)

    wait("the log says that it was undone", lambda: all(part in world.plugin_log(NODE) for part in (
        f"Marked claim PrepareAborted in checkpoint: default/{claim}",
        f"Checkpointed RC cleanup: unprepared stale claim: default/{claim}")), 30)
    wait("the node free", lambda: node_label(world, NODE) is None, 20)
    # The kubelet has not seen the end of the pod, and unprepares again what is aborted already.
    wait("a later unprepare does nothing", lambda: "Unprepare noop: claim in PrepareAborted state" in world.plugin_log(NODE),
         60)
    gone(world)


def states(world):
    """State of each claim in the checkpoint of NODE, by name."""
    text = world.cluster.node(NODE).path(CHECKPOINT).read_text()
    return {c["name"]: c["checkpointState"] for c in (json.loads(text)["v2"].get("preparedClaims") or {}).values()}


@test
def B6_another_controller_leads_when_the_leader_is_killed(world):
    def holder():
        name = (world.get("lease", LEASE, NAMESPACE) or {}).get("spec", {}).get("holderIdentity")
        return next((p for p in world.pods_of("controller") if name and name.startswith(name_of(p) + "-")), None)
    world.wait_for_component("controller", 2)
    form(world, NODE)
    leader = wait("a leader among the controllers", holder, 20)
    world.kill_pod(leader)
    wait("another leader", lambda: (now := holder()) and uid_of(now) != uid_of(leader), 20)
    world.apply(workload("other", "domain-channel", node="node-2"))
    world.wait_pod_ready("other")
    domain = wait_status(world, "domain", "Ready")
    wait("both members", lambda: set(members(world, domain)) == {"node-1", "node-2"}, 10)
    world.wait_for_component("controller", 2)


@test
def B7_controllers_plugins_and_daemons_say_what_belongs_to_their_verbosity(world):
    note = set_verbosity(world, 0)
    try:
        for component, text in logs_with_a_domain(world, "quiet").items():
            found = [part for part in (*TALK[component], *TALK["everybody"]) if part in text]
            check(not found, f"the log of {component} at level 0 has {found}")
        quiet = all_logs(world, "controller")
        check("controller manager config" in quiet and "Verbosity: 0" in quiet, f"the controllers' log: {quiet}")
    finally:
        set_verbosity(world, 6)
    for component, text in logs_with_a_domain(world, "talkative").items():
        missing = [part for part in (*TALK[component], *TALK["everybody"]) if part not in text]
        check(not missing, f"the log of {component} at level 6 lacks {missing}")
    return note


def set_verbosity(world, level):
    """Restarts controllers and plugins with another verbosity, also for daemons made from now on. How long each took."""
    taken = {}
    for component, kind in (("controller", "deployment"), ("kubelet-plugin", "daemonset")):
        old = {uid_of(p) for p in world.pods_of(component)}
        began = time.monotonic()
        world.kubectl("set", "env", f"{kind}/{RELEASE}-{component}", "-n", NAMESPACE, f"LOG_VERBOSITY={level}",
                      *([f"LOG_VERBOSITY_CD_DAEMON={level}"] if component == "controller" else []))
        world.wait_for_component(component, 2, others_than=old)
        wait_gone(world, component, old)
        taken[component] = time.monotonic() - began
    check(all(seconds <= 20 for seconds in taken.values()), f"two of each, one after another, took {taken}")
    return ", ".join(f"two of {component} replaced in {seconds:.1f} s" for component, seconds in taken.items())


def wait_gone(world, component, uids):
    """Returns when no pod of a component has one of these UIDs."""
    wait(f"the old {component} gone", lambda: not uids & {
        uid_of(p) for p in world.list("pods", NAMESPACE, f"nvdra-component={component}")}, 20)


def logs_with_a_domain(world, name):
    """The logs by component, of a daemon too, once a domain has been formed and has gone."""
    _, found = form(world, NODE, name=name)
    logs = {"daemon": world.kubectl("logs", name_of(found[NODE]), "-n", NAMESPACE, "-c", CONTAINER)}
    world.delete("pods", "--all", "--grace-period=1")
    gone(world, name)
    return logs | {component: all_logs(world, component) for component in ("controller", "kubelet-plugin")}


def all_logs(world, component):
    """What all pods of a component have said."""
    return "\n".join(world.kubectl("logs", name_of(p), "-n", NAMESPACE, "--all-containers") for p in world.pods_of(component))


def set_controller(world, setting):
    """Restarts the controllers with another environment variable."""
    old = [uid_of(p) for p in world.pods_of("controller")]
    world.kubectl("set", "env", f"deployment/{RELEASE}-controller", "-n", NAMESPACE, setting)
    world.wait_for_component("controller", 2, others_than=old)


@test
def an_override_stands_once_in_the_configuration_of_IMEX(world):
    _, found = form(world, NODE)
    pid = main_process(found[NODE]["status"]["containerStatuses"][0]["containerID"])
    lines = container_path(pid, "/imexd/imexd.cfg").read_text().splitlines()
    set_lines = [line for line in lines if line.startswith("IMEX_NODE_DISCONNECTED_GRACE_TIME")]
    check(set_lines == ["IMEX_NODE_DISCONNECTED_GRACE_TIME=60"], f"lines: {set_lines}")
    address = found[NODE]["status"]["podIP"]
    check(f"IMEX_CMD_BIND_INTERFACE_IP={address}" in lines, "the command address is not the pod's")


@test
def forbidden_and_broken_overrides_are_refused(world):
    for setting, part in (("IMEX_CMD_BIND_INTERFACE_IP=1.2.3.4", "computed by the driver"), ("A\\,B=1", "cannot be passed on")):
        status, text = world.render(f"resources.computeDomains.imex.config.{setting}")
        check(status != 0, f"{setting} is rendered")
        check_in(part, text)


@test
def a_node_beyond_the_last_slot_is_told_so_where_the_user_looks(world):
    set_controller(world, "MAX_NODES_PER_IMEX_DOMAIN=1")
    try:
        domain = create(world)
        world.apply(workload("first", "domain-channel", node="node-1"))
        world.wait_pod_ready("first")
        world.apply(workload("second", "domain-channel", node="node-2"))
        wait_daemon_running(world, domain, "node-2")
        wait_reason(world, "domain", "node-2", "slot", seconds=40)
        check(world.get("pod", "second")["status"]["phase"] == "Pending", "the second workload was started")
        check(set(members(world, domain)) == {"node-1"}, f"members: {members(world, domain)}")
        world.delete("pod", "first", "--grace-period=1")
        world.wait_pod_ready("second", 120)
        wait("the first daemon gone", lambda: set(daemons(world, domain)) == {"node-2"}, 20)
    finally:
        set_controller(world, "MAX_NODES_PER_IMEX_DOMAIN-")
