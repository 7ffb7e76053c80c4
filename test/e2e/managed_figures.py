"""Figures of the default mode on a real cluster. They are printed; a test fails when a figure is far off
(figures.py), and when nvdra sends more requests than it may."""

import json
import statistics
import sys
import time
from pathlib import Path

from audit import Audit, settle, table
from commands import check, stays, wait
from domains import LABEL, create, daemons, form, gone
from figures import Figure, tell
from harness import HERE, NAMESPACE, test
from host_figures import many
from installations import DEFAULT
from objects import compute_domain, workload
from processes import cpu_seconds, main_process, processes_of, resident, resident_of

INSTALLATION = DEFAULT
BOTH = ("node-1", "node-2")
ROUNDS = 10
IDLE_SECONDS = 60


def stopwatch(world, *objects):
    """Seconds until Ready by pod, from the first object's creation."""
    file = world.folder / "stopwatch.json"
    file.write_text(json.dumps(objects))
    cluster = world.cluster
    server = json.loads(Path(cluster.kubeconfig).read_text())["clusters"][0]["cluster"]["server"]
    done = cluster.run(sys.executable, HERE / "stopwatch.py", server, cluster.folder / "pki", file, capture_output=True,
                       text=True)
    check(done.returncode == 0, done.stderr)
    return json.loads(done.stdout)


@test
def a_workload_in_a_fresh_domain_starts_quickly(world):
    taken = []
    for i in range(ROUNDS):
        create(world, f"domain-{i}")
        pod = workload(f"work-{i}", f"domain-{i}-channel", node=BOTH[i % 2])
        taken.append(stopwatch(world, pod)[f"work-{i}"])
        world.delete("pod", f"work-{i}", "--grace-period=1")
        gone(world, f"domain-{i}")
    return tell(Figure("workload created to Ready", statistics.median(taken), "s", 2.5,
                       f"median of {ROUNDS}, {min(taken):.2f} to {max(taken):.2f} s"))


@test
def both_workloads_of_a_two_node_domain_start_quickly(world):
    taken = []
    for i in range(3):
        pods = [workload(f"work-{n}", f"domain-{i}-channel", node=n) for n in BOTH]
        taken.append(max(stopwatch(world, compute_domain(f"domain-{i}", f"domain-{i}-channel"), *pods).values()))
        world.delete("pods", "--all", "--grace-period=1")
        gone(world, f"domain-{i}")
        wait("no daemon", lambda: not world.list("pods", NAMESPACE, LABEL), 40)
    return tell(Figure("domain created to both Ready", statistics.median(taken), "s", 3,
                       f"median of 3, {min(taken):.2f} to {max(taken):.2f} s"))


@test
def the_requests_to_form_a_domain_are_few(world):
    notes = []
    for nodes in (BOTH[:1], BOTH):
        settle(world)
        name = f"domain-{len(nodes)}"
        with Audit(world) as audit:
            domain, _ = form(world, *nodes, name=name)
            time.sleep(3)  # what still follows counts too
            requests = audit.requests()
        most = 12 + 12 * len(nodes)
        notes.append(f"{len(requests)} for {len(nodes)} node{'s' * (len(nodes) > 1)} (at most {most}): {table(requests)}")
        world.delete("pods", "--all", "--grace-period=1")
        gone(world, name)
        wait("no daemon", lambda d=domain: not daemons(world, d), 40)
        check(len(requests) <= most, notes[-1])
    return "; ".join(notes)


@test
def daemons_are_small_and_idle_and_request_nothing_while_nothing_changes(world):
    _, found = form(world, *BOTH)
    settle(world)
    pids = [main_process(found[node]["status"]["containerStatuses"][0]["containerID"]) for node in BOTH]
    before = [cpu_seconds([pid]) for pid in pids]
    with Audit(world) as audit:
        stays("the daemons", lambda: all(Path(f"/proc/{pid}").exists() for pid in pids), IDLE_SECONDS, 5)
        requests = [r for r in audit.requests() if r[1] != "watch"]
    used = max(cpu_seconds([pid]) - earlier for pid, earlier in zip(pids, before))
    check(not requests, f"in {IDLE_SECONDS} s: {table(requests)}")
    size = max(resident_of(pid) for pid in pids)
    return f"no request in {IDLE_SECONDS} s; " + tell(
        Figure("daemon, resident", size, "MB", 8),
        Figure("daemon, of a processor", used / IDLE_SECONDS * 100, "%", 0.1, f"in {IDLE_SECONDS} s"))


# The Events of so many domains are still on their way when these tests end, so they are the last.

@test
def one_hundred_domains_form_and_go(world):
    return form_and_go(world, 100, 4, 6)


@test
def five_hundred_domains_form_and_go(world):
    return form_and_go(world, 500, 20, 30)


def form_and_go(world, count, formed_wanted, gone_wanted):
    """Makes and deletes so many domains; returns how long it took, with how many requests, and the memory between."""
    file = world.folder / "domains.json"
    file.write_text(json.dumps([compute_domain(f"many-{i}", f"many-{i}-channel") for i in range(count)]))
    with Audit(world) as audit:
        sent, formed = many(world, "create", file)
        check(len(world.list("resourceclaimtemplates", None)) == 2 * count, "there are not as many templates")
        check(len(world.list("daemonsets", NAMESPACE, LABEL)) == count, "there are not as many DaemonSets")
        forming = len(audit.requests())
    (controller,) = world.pods_of("controller")
    container = controller["status"]["containerStatuses"][0]["containerID"]
    size = resident(container)
    idle = idle_with(world, container, count) if count == 500 else ()
    with Audit(world) as audit:
        unsent, gone_after = many(world, "delete", file)
        wait("nothing left", lambda: not world.list("daemonsets", NAMESPACE, LABEL)
             and not world.list("resourceclaimtemplates", None), 20)
        going = len(audit.requests())
    return tell(
        Figure(f"{count} domains Ready after", formed, "s", formed_wanted, f"of which the requests took {sent} s"),
        Figure("all gone after", gone_after, "s", gone_wanted, f"of which the requests took {unsent} s"),
        Figure("for each", forming / count, "requests"), Figure("and", going / count, "requests"),
        Figure("controller with them, resident", size, "MB", 40), *idle)


def idle_with(world, container, count):
    """What a controller costs that has so many domains and nothing to do: when Kubernetes has looked at all of them."""
    wait("the status of all DaemonSets", lambda: all(
        "observedGeneration" in d.get("status", {}) for d in world.list("daemonsets", NAMESPACE, LABEL)), 120, 2)
    settle(world)
    pids = processes_of(container)
    before = cpu_seconds(pids)
    with Audit(world) as audit:
        time.sleep(30)
        requests = [r for r in audit.requests() if r[1] != "watch"]
    used = cpu_seconds(pids) - before
    check(not requests, f"in 30 s with {count} domains: {table(requests)}")
    return (Figure("controller with them, of a processor while idle", used / 30 * 100, "%", 0.1,
                   f"({used:.3f} s in 30 s), no request"),)
