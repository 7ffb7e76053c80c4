"""Runs the tests, each followed by cleaning, and prints what explains a failure."""

import time

import cleaning
from commands import Failed
from figures import Missed
from harness import NAMESPACE, TROUBLE, installation_of

MOST_AGAIN = 5
COMPONENTS = ("nvdra-component=controller", "nvdra-component=kubelet-plugin", cleaning.DOMAIN_LABEL)


def run(world, chosen):
    """Runs tests; returns those that failed. What was not run after nvdra could not be repaired has failed too."""
    failed = []
    for number, function in enumerate(chosen):
        name = function.__name__.replace("_", " ")
        started, clock = time.time(), time.monotonic()
        trouble = None
        note = ""
        try:
            world.install(installation_of(function))
            started, clock = time.time(), time.monotonic()
            note = function(world)
        except TROUBLE as error:
            trouble = error
            print(f"    {_words(error)}", flush=True)
            if not isinstance(error, Missed):
                explain(world, started)
        seconds = time.monotonic() - clock
        try:
            world.install(installation_of(function))  # a test may have ended in the middle of another installation
            cleaning.clean(world)
        except TROUBLE as error:
            if not trouble:
                explain(world, started)
            trouble = trouble or error
            print(f"    cleaning up: {_words(error)}", flush=True)
        if trouble:
            failed.append(function)
        print(f"{'FAILED' if trouble else 'ok    '} {name} ({seconds:.1f} s){': ' + note if note else ''}", flush=True)
        if trouble and not _repair_installation(world):
            return failed + list(chosen[number + 1:])
    return failed


def run_again(world, failed, attempts):
    """Runs failed tests up to so often again; returns those that never passed. Names the others as unsteady."""
    for attempt in range(2, attempts + 1):
        # Many failures are no accident.
        if not failed or len(failed) > MOST_AGAIN:
            break
        print(f"attempt {attempt} of {len(failed)} failed tests", flush=True)
        still = run(world, failed)
        for function in failed:
            if function not in still:
                print(f"UNSTEADY {function.__name__.replace('_', ' ')}: passed at attempt {attempt} only", flush=True)
        failed = still
    return failed


def _words(error):
    return str(error) if isinstance(error, Failed) else f"{type(error).__name__}: {error}"


def _repair_installation(world):
    """A failed test may have left nvdra itself broken; whether the next one can run."""
    installation = world.installation
    try:
        world.try_kubectl("rollout", "status", "-n", NAMESPACE, "deployment", "--timeout=10s")
        if installation and not (world.pods_of("controller") and len(world.pods_of("kubelet-plugin")) == 2):
            world.install(installation, again=True)
    except TROUBLE as error:
        print(f"    nvdra cannot be installed again, the other tests are not run: {_words(error)}", flush=True)
        return False
    return True


def explain(world, since):
    """Prints what a human would look at first."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(since))
    _show(world, "get", "pods,computedomains,resourceclaims,computedomaincliques,daemonsets", "-A", "-o", "wide")
    _show(world, "get", "events", "-A", "--sort-by=.lastTimestamp", lines=40)
    _show(world, "get", "computedomains,computedomaincliques", "-A", "-o", "yaml")
    _show(world, "get", "nodes", "--show-labels")
    _show(world, "describe", "pods", "-n", "default")
    _show(world, "describe", "pods", "-n", NAMESPACE, lines=60)
    for label in COMPONENTS:
        _show(world, "logs", "-n", NAMESPACE, "-l", label, "--all-containers", "--prefix", "--tail=60",
              f"--since-time={stamp}")


def _show(world, *arguments, lines=80):
    text = world.try_kubectl(*arguments)[1].rstrip().splitlines()
    print(f"    --- kubectl {' '.join(arguments)}")
    print("\n".join(f"    {line}" for line in text[-lines:]), flush=True)
