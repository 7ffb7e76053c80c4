"""The guide's section "Validate host-managed IMEX", steps 1 to 5, with its manifests word for word.

H1 to H5 are the names of the steps in the acceptance tests. `systemctl` is played by GpuNode: a node of
the test cluster has no systemd.
"""

import time

from commands import check, check_in, wait
from harness import CHANNEL, HERE, test
from installations import HOST_MANAGED

INSTALLATION = HOST_MANAGED
DOMAIN = HERE / "manifests/my-compute-domain.yaml"
WORKLOAD = HERE / "manifests/my-workload.yaml"
HOSTNAME = """\
          - key: kubernetes.io/hostname
            operator: In
            values:
            - {node}
"""
CLIQUE = """\
          - key: nvidia.com/gpu.clique
            operator: Exists
"""


def pinned_workload(node):
    """my-workload.yaml with the expression that step 4 adds."""
    text = WORKLOAD.read_text()
    check(text.count(CLIQUE) == 1, "the manifest has no clique expression")
    return text.replace(CLIQUE, CLIQUE + HOSTNAME.format(node=node))


def claim_of(pod):
    """The name of the claim that was made for the pod."""
    return pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"]


def create_domain(world):
    """my-compute-domain, Ready."""
    world.kubectl("apply", "-f", DOMAIN)
    return world.wait_domain_ready("my-compute-domain")


@test
def H1_every_node_has_an_active_service_that_reports_READY(world):
    for gpu in world.gpu:
        check(gpu.service_is_active(), f"{gpu.node.name}: nvidia-imex.service is not active")
        check(gpu.service_state() == "READY", f"{gpu.node.name}: nvidia-imex-ctl says {gpu.service_state()}")


@test
def H2_the_controller_creates_only_the_workload_template(world):
    create_domain(world)
    uid = world.kubectl("get", "computedomain", "my-compute-domain", "-o", "jsonpath={.metadata.uid}")
    check(len(uid) == 36, f"no UID: {uid!r}")
    check_in("imex-channel-0", world.kubectl("get", "resourceclaimtemplate", "imex-channel-0"))
    label = f"resource.nvidia.com/computeDomain={uid}"
    for query in (("daemonset", "--all-namespaces", "-l", label),
                  ("resourceclaimtemplate", "--all-namespaces", "-l",
                   label + ",resource.nvidia.com/computeDomainTarget=Daemon"),
                  ("computedomainclique", "-A"), ("nodes", "-l", "resource.nvidia.com/computeDomain")):
        answer = world.try_kubectl("get", *query)[1]
        check(answer.startswith("No resources found"), f"kubectl get {' '.join(query)}: {answer}")


@test
def H2f_allocationMode_All_is_forced_to_Single(world):
    world.apply(DOMAIN.read_text() + "    allocationMode: All\n")
    world.wait_domain_ready("my-compute-domain")
    path = "jsonpath={.spec.spec.devices.config[0].opaque.parameters.allocationMode}"
    mode = world.kubectl("get", "resourceclaimtemplate", "imex-channel-0", "-o", path)
    check(mode == "Single", f"allocationMode is {mode!r}")


@test
def H2g_Ready_says_nothing_about_host_services_and_numNodes(world):
    for gpu in world.gpu:
        gpu.service_stop()
    world.apply(DOMAIN.read_text().replace("numNodes: 0", "numNodes: 2"))
    domain = world.wait_domain_ready("my-compute-domain")
    check("nodes" not in domain["status"], f"status has nodes: {domain['status']}")


@test
def H3_the_workload_gets_channel0(world):
    create_domain(world)
    world.kubectl("apply", "-f", WORKLOAD)
    world.wait_pod_ready("my-workload")
    world.kubectl("exec", "my-workload", "--", "test", "-c", CHANNEL)
    check_in("IMEX channel0 is available", world.kubectl("logs", "my-workload"))


@test
def H4_the_same_pod_and_claim_recover_when_the_service_is_back(world):
    create_domain(world)
    world.kubectl("apply", "-f", WORKLOAD)
    node = world.wait_pod_ready("my-workload")["spec"]["nodeName"]
    # H4a; the guide's shell ignores SIGTERM, so this takes its grace period of 30 s.
    world.kubectl("delete", "-f", WORKLOAD)
    gpu = world.gpu_node(node)
    gpu.service_stop()

    world.apply(pinned_workload(node))
    event = world.wait_prepare_event("my-workload", seconds=30)
    for part in (gpu.socket, "does not exist", "check `systemctl status nvidia-imex`", "IMEX_CMD_ENABLED=1"):
        check_in(part, event)
    check_in("FailedPrepareDynamicResources", world.kubectl("describe", "pod", "my-workload"))
    pod = world.get("pod", "my-workload")
    claim = world.get("resourceclaim", claim_of(pod))
    check(pod["status"]["phase"] == "Pending", f"the pod is {pod['status']['phase']}")

    check(world.held_claims(node) == 1, "the plugin does not hold the claim")
    began = time.monotonic()
    gpu.service_start()
    world.wait_pod_ready("my-workload", 300)
    seconds = time.monotonic() - began
    world.kubectl("exec", "my-workload", "--", "test", "-c", CHANNEL)
    check(gpu.service_state() == "READY", f"the service is {gpu.service_state()}")
    now = world.get("pod", "my-workload")
    check(now["metadata"]["uid"] == pod["metadata"]["uid"], "the pod was created anew")
    check(claim_of(now) == claim_of(pod), "the pod has another claim")
    check(world.get("resourceclaim", claim_of(now))["metadata"]["uid"] == claim["metadata"]["uid"],
          "the claim was created anew")
    check(seconds <= 3, f"the pod was Ready {seconds:.1f} s after the service was started, not within 3 s")
    return f"service back to pod Ready {seconds:.1f} s"


@test
def H5_nothing_is_left_and_the_service_stays_active(world):
    create_domain(world)
    world.kubectl("apply", "-f", WORKLOAD)
    node = world.wait_pod_ready("my-workload")["spec"]["nodeName"]
    world.kubectl("delete", "pod", "my-workload")
    world.kubectl("delete", "computedomain", "my-compute-domain")
    check(world.get("resourceclaimtemplate", "imex-channel-0") is None, "the template is left")
    check(world.get("computedomain", "my-compute-domain") is None, "the ComputeDomain is left")
    wait("no claim", lambda: not world.list("resourceclaims"), 10)
    left = list(world.cluster.node(node).path("/run/cdi").glob("*"))
    check(not left, f"CDI files are left on {node}: {left}")
    for gpu in world.gpu:
        check(gpu.service_is_active(), f"{gpu.node.name}: nvidia-imex.service is not active")
        check(gpu.service_state() == "READY", f"{gpu.node.name}: nvidia-imex-ctl says {gpu.service_state()}")
