"""Figures on a real API server. They are printed; a test fails when a figure is far off (figures.py)."""

import contextlib
import json
import sys
from pathlib import Path

from commands import Failed, check, wait
from figures import Figure, tell
from harness import HERE, test
from installations import HOST_MANAGED
from objects import compute_domain
from processes import resident

INSTALLATION = HOST_MANAGED
COUNT = 100


@test
def one_hundred_ComputeDomains_form_and_go(world):
    file = world.folder / "domains.json"
    file.write_text(json.dumps([compute_domain(f"many-{i}", f"many-{i}-channel") for i in range(COUNT)]))
    sent, formed = many(world, "create", file)
    check(len(world.list("resourceclaimtemplates")) == COUNT, "there are not as many templates")
    unsent, gone = many(world, "delete", file)
    wait("all templates gone", lambda: not world.list("resourceclaimtemplates"), 10)
    return tell(Figure("all Ready after", formed, "s", 4, f"of which the requests took {sent} s"),
                Figure("all gone after", gone, "s", 6, f"of which the requests took {unsent} s"))


def many(world, method, file):
    """Seconds until the requests were answered, and until their work was done."""
    cluster = world.cluster
    server = json.loads(Path(cluster.kubeconfig).read_text())["clusters"][0]["cluster"]["server"]
    done = cluster.run(sys.executable, HERE / "many.py", server, cluster.folder / "pki", method, file,
                       capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    return map(float, done.stdout.split())


@test
def controller_and_plugin_are_small_when_they_have_been_idle_for_a_minute(world):
    figures = []
    for component, wanted in (("controller", 12), ("kubelet-plugin", 16)):
        # They give memory back once a minute; builds for development may need more.
        def size(pods=world.pods_of(component)):
            return max(resident(pod["status"]["containerStatuses"][0]["containerID"]) for pod in pods)
        with contextlib.suppress(Failed):
            wait(f"{component} small", lambda: size() <= wanted, 75)  # noqa: B023
        check(size() > 0, f"{component} has no process")
        figures.append(Figure(f"{component}, resident", size(), "MB", wanted))
    return tell(*figures)
