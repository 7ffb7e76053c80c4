"""Figures of the default mode on a real cluster. They are printed; a test fails only when a figure is far off,
and when nvdra sends more requests than it may."""

import json
import statistics
import sys
import time
from pathlib import Path

from audit import Audit, settle, table
from commands import check, stays, wait
from domains import LABEL, create, daemons, form, gone, wait_daemons, wait_status
from harness import HERE, NAMESPACE, test
from host_figures import many
from installations import DEFAULT
from objects import compute_domain, uid_of, workload
from processes import main_process, resident

INSTALLATION = DEFAULT
BOTH = ("node-1", "node-2")
ROUNDS = 10


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
    median = statistics.median(taken)
    check(median <= 10, f"{median:.1f} s")
    return f"workload created to Ready: median {median:.2f} s of {ROUNDS} (wanted 2.5 s), {min(taken):.2f} to {max(taken):.2f} s"


@test
def both_workloads_of_a_two_node_domain_start_quickly(world):
    taken = []
    for i in range(3):
        pods = [workload(f"work-{n}", f"domain-{i}-channel", node=n) for n in BOTH]
        taken.append(max(stopwatch(world, compute_domain(f"domain-{i}", f"domain-{i}-channel"), *pods).values()))
        world.delete("pods", "--all", "--grace-period=1")
        gone(world, f"domain-{i}")
        wait("no daemon", lambda: not world.list("pods", NAMESPACE, LABEL), 40)
    median = statistics.median(taken)
    check(median <= 15, f"{median:.1f} s")
    return f"domain created to both Ready: median {median:.2f} s of 3 (wanted 3 s)"


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
def nothing_is_requested_while_nothing_changes(world):
    form(world, *BOTH)
    settle(world)
    with Audit(world) as audit:
        stays("the domain", lambda: True, 15)
        requests = [r for r in audit.requests() if r[1] != "watch"]
    check(not requests, f"in 15 s: {table(requests)}")
    return "no request in 15 s"


@test
def a_daemon_is_small(world):
    domain, found = form(world, "node-1")
    pid = main_process(found["node-1"]["status"]["containerStatuses"][0]["containerID"])
    before = cpu_seconds(pid)
    time.sleep(10)  # it gives back the memory of its start five seconds after that
    used = (cpu_seconds(pid) - before) / 10 * 100
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    size = next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1000
    check(0 < size < 100 and used < 5, f"{size} MB, {used} % of a processor")
    check(uid_of(wait_status(world, "domain", "Ready")) == uid_of(domain) and wait_daemons(world, domain, ["node-1"]), "")
    return f"{size:.1f} MB resident (8 wanted), {used:.2f} % of a processor (0.1 wanted)"


def cpu_seconds(pid):
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


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
    size = resident(controller["status"]["containerStatuses"][0]["containerID"])
    with Audit(world) as audit:
        unsent, gone_after = many(world, "delete", file)
        wait("nothing left", lambda: not world.list("daemonsets", NAMESPACE, LABEL)
             and not world.list("resourceclaimtemplates", None), 20)
        going = len(audit.requests())
    check(formed <= 10 * formed_wanted and gone_after <= 10 * gone_wanted, f"formed after {formed} s, gone after {gone_after} s")
    return (f"{count} domains Ready after {formed} s (wanted: {formed_wanted} s; the requests took {sent} s), all gone after "
            f"{gone_after} s (wanted: {gone_wanted} s; the requests took {unsent} s); {forming / count:.1f} and "
            f"{going / count:.1f} requests for each; controller with them: {size:.1f} MB resident")
