"""Fail-over of a job over two nodes (B9). The MPI job is played by a program that needs its channel and its peer."""

import shutil
import subprocess
import time

import images
from commands import Failed, check, wait
from domains import create, daemons, wait_fabric
from driver_files import COMPILERS
from harness import HERE, test
from installations import DEFAULT
from objects import name_of, uid_of

INSTALLATION = DEFAULT
IMAGE = "localhost/nvdra-test/job:1"
BOTH = ("node-1", "node-2")
WORK = 6  # seconds of common work
LIMIT = 300


def load_image(world):
    """The job's program on both nodes."""
    program = world.cluster.folder / "job"
    if program.exists():  # this folder is as old as the cluster
        return
    compiler = next(c for c in COMPILERS if shutil.which(c))
    done = subprocess.run([compiler, "-static", "-O1", "-o", program, HERE / "stand_ins/job.c"], capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    world.cluster.load_image(images.write(world.folder / "job.tar", IMAGE, ["/bin/job"], files={
        "bin/job": program.read_bytes()}))


def job(name):
    """Two workers on different nodes; one that ends with an error is started again."""
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {
        "completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimit": 20, "template": {
            "metadata": {"labels": {"workers": name}}, "spec": {
                "restartPolicy": "OnFailure", "terminationGracePeriodSeconds": 1,
                "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
                    "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"workers": name}}}]}},
                "containers": [{"name": "worker", "image": IMAGE, "command": ["/bin/job", "2", str(WORK)],
                                "env": [{"name": "POD_LABEL", "value": name}],
                                "resources": {"claims": [{"name": "channel"}]}}],
                "resourceClaims": [{"name": "channel", "resourceClaimTemplateName": "domain-channel"}]}}}}


def workers(world, name):
    """The job's pods that are not being deleted, by their number."""
    pods = world.list("pods", "default", f"workers={name}")
    return {p["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]: p for p in pods
            if "deletionTimestamp" not in p["metadata"]}


def wait_together(world, name):
    """Returns the workers once both have said that all are here."""
    def together():
        pods = workers(world, name)
        logs = [world.try_kubectl("logs", name_of(p))[1] for p in pods.values()]
        if len(logs) != 2 or not all("all 2 workers are here" in log for log in logs):
            raise Failed(str(logs))
        return pods
    return wait("both workers together", together, 90)


def fail_over(world, name, kill):
    """A job whose workers have met when `kill(workers)` strikes: seconds until it has succeeded all the same."""
    load_image(world)
    domain = create(world)
    world.apply(job(name))
    pods = wait_together(world, name)
    wait_fabric(world, domain, BOTH)
    began = time.monotonic()
    kill(pods)

    def succeeded():
        status = world.get("job", name)["status"]
        if any(c["type"] == "Failed" and c["status"] == "True" for c in status.get("conditions", ())):
            raise Failed(f"the job has failed: {status}")
        return status.get("succeeded") == 2
    wait(f"job {name} succeeded", succeeded, LIMIT, 0.5)
    return f"succeeded {time.monotonic() - began:.0f} s after the kill (limit {LIMIT} s)"


@test
def B9_a_job_survives_a_worker_deleted_by_force(world):
    return fail_over(world, "killed-worker", lambda pods: world.kill_pod(pods["0"]))


@test
def B9_a_job_survives_all_daemons_deleted_by_force(world):
    def kill(_):
        found = daemons(world, world.get("computedomain", "domain"))
        check(set(found) == set(BOTH), f"daemons on {set(found)}")
        world.kubectl("delete", "pod", "-n", "dra-driver-nvidia-gpu", "-l", "resource.nvidia.com/computeDomain",
                      "--grace-period=0", "--force")
        kill.uids = {uid_of(p) for p in found.values()}
    note = fail_over(world, "killed-daemons", kill)
    check(not kill.uids & {uid_of(p) for p in daemons(world, world.get("computedomain", "domain")).values()},
          "daemons survived their deletion")
    return note


@test
def B9_a_job_survives_a_worker_deleted_by_the_rules(world):
    return fail_over(world, "deleted-worker", lambda pods: world.kubectl(
        "delete", "pod", name_of(pods["1"]), "--wait=false"))
