"""The guide with default values: its manifests word for word (AT-G1 to G7, G9) and the installation's sample (AT-S)."""

from commands import check, check_in, wait
from domains import CLIQUE, LABEL, daemon_set_name, daemons, nodes_of, wait_daemons
from harness import CHANNEL, HERE, NAMESPACE, test
from installations import DEFAULT
from objects import name_of, uid_of

INSTALLATION = DEFAULT
MANIFESTS = HERE / "manifests"
DOMAIN = MANIFESTS / "my-compute-domain.yaml"
WORKLOAD = MANIFESTS / "my-workload.yaml"
AFFINITY = WORKLOAD.read_text()[WORKLOAD.read_text().index("  affinity:\n"):WORKLOAD.read_text().index("  containers:\n")]


def create_domain(world, text=None):
    """my-compute-domain, Ready."""
    world.apply(text or DOMAIN.read_text())
    return world.wait_domain_ready("my-compute-domain")


@test
def G1_G2_the_domain_gets_its_template_and_an_empty_DaemonSet(world):
    uid = uid_of(create_domain(world))
    labels = world.get("resourceclaimtemplate", "imex-channel-0")["metadata"]["labels"]
    check((labels.get(LABEL), labels.get(LABEL + "Target")) == (uid, "Workload"), f"labels of the template: {labels}")
    sets = world.list("daemonsets", None, f"{LABEL}={uid}")
    check([(s["metadata"]["namespace"], name_of(s)) for s in sets] == [(NAMESPACE, f"computedomain-daemon-{uid}")],
          f"DaemonSets: {[s['metadata'] for s in sets]}")
    wait("no pod wanted", lambda: world.get("daemonset", name_of(sets[0]), NAMESPACE)["status"].get(
        "observedGeneration"), 10)
    status = world.get("daemonset", name_of(sets[0]), NAMESPACE)["status"]
    check(status["desiredNumberScheduled"] == 0, f"wanted pods: {status}")
    templates = world.list("resourceclaimtemplates", None, f"{LABEL}={uid},{LABEL}Target=Daemon")
    check([(t["metadata"]["namespace"], name_of(t)) for t in templates] == [(NAMESPACE, f"computedomain-daemon-{uid}")],
          f"daemon templates: {[t['metadata'] for t in templates]}")


@test
def G3_G4_G5_the_workload_gets_its_channel_and_the_status_is_Ready(world):
    domain = create_domain(world)
    world.kubectl("apply", "-f", WORKLOAD)
    node = world.wait_pod_ready("my-workload")["spec"]["nodeName"]
    world.kubectl("exec", "my-workload", "--", "test", "-c", CHANNEL)
    check_in("IMEX channel0 is available", world.kubectl("logs", "my-workload"))
    check_in("status: Ready", world.kubectl("get", "computedomain", "my-compute-domain", "-o", "yaml"))
    check_in(f"{uid_of(domain)}.{CLIQUE}", world.kubectl("get", "computedomainclique", "-n", NAMESPACE))
    check(world.get("node", node)["metadata"]["labels"].get(LABEL) == uid_of(domain), "the node has no label of the domain")
    # Its own word releases the workload; the kubelet's probe may come a moment later.
    wait_daemons(world, domain, [node], 10)


@test
def G6_a_node_without_fabric_starts_the_workload_without_devices(world):
    gpu = world.gpu_node("node-2")
    gpu.faults(fabric="none")
    world.restart_plugin("node-2")
    try:
        domain = create_domain(world)
        text = WORKLOAD.read_text()
        check(text.count(AFFINITY) == 1, "the manifest has no affinity")
        world.apply(text.replace(AFFINITY, "  nodeSelector: {kubernetes.io/hostname: node-2}\n"))
        # The script fails at its `test -c`, so there is a container that has ended with 1.
        wait("the script ended with status 1", lambda: ended_status(world.get("pod", "my-workload")) == 1, 60)
        check("IMEX channel0" not in world.kubectl("logs", "my-workload"), "the container has a channel")
        check(set(daemons(world, domain)) == {"node-2"}, "there is no daemon on the node without fabric")

        def told():
            return nodes_of(world.get("computedomain", "my-compute-domain")).get("node-2")
        entry = wait("node-2 in status.nodes", told, 20)
        check((entry["cliqueID"], entry["index"]) == ("", -1), str(entry))
        world.delete("pod", "my-workload", "--grace-period=1")
    finally:
        gpu.faults()
        world.restart_plugin("node-2")


def ended_status(pod):
    """The exit status of the pod's container, now or at its last end."""
    status = pod["status"]["containerStatuses"][0]
    ended = status["state"].get("terminated") or status.get("lastState", {}).get("terminated") or {}
    return ended.get("exitCode")


@test
def G7_allocationMode_All_injects_every_channel(world):
    text = DOMAIN.read_text().replace("imex-channel-0", "tpl-imex-channels") + "    allocationMode: All\n"
    create_domain(world, text)
    world.apply(WORKLOAD.read_text().replace("TemplateName: imex-channel-0", "TemplateName: tpl-imex-channels"))
    world.wait_pod_ready("my-workload", 80)
    log = world.kubectl("logs", "my-workload")
    channels = {line.rsplit(" ", 1)[1] for line in log.splitlines() if line.startswith("c")}
    check(channels == {f"channel{i}" for i in range(2048)}, f"{len(channels)} channels: {sorted(channels)[:5]}...")


@test
def G9_the_spec_cannot_be_changed(world):
    create_domain(world)
    for patch in ('[{"op":"replace","path":"/spec/numNodes","value":3}]', '[{"op":"remove","path":"/spec"}]'):
        status, text = world.try_kubectl("patch", "computedomain", "my-compute-domain", "--type=json", "-p", patch)
        check(status != 0 and ("spec is immutable" in text or "spec: Required value" in text), f"{patch}: {text}")


@test
def S1_to_S4_the_sample_of_the_installation_guide(world):
    domain, pod = MANIFESTS / "imex-compute-domain.yaml", MANIFESTS / "imex-test-pod.yaml"
    check_in("computedomain.resource.nvidia.com/imex-channel-injection created", world.kubectl("apply", "-f", domain))
    check_in("pod/imex-channel-injection created", world.kubectl("apply", "-f", pod))
    world.wait_pod_ready("imex-channel-injection", 100)
    log = world.kubectl("logs", "imex-channel-injection")
    check(any(line.startswith("crw-rw-rw-") and line.endswith(" channel0") for line in log.splitlines()), log)
    name = daemon_set_name(world.get("computedomain", "imex-channel-injection"))
    text = world.kubectl("delete", "-f", pod, "-f", domain, "--timeout=40s")
    check('pod "imex-channel-injection" deleted' in text
          and 'computedomain.resource.nvidia.com "imex-channel-injection" deleted' in text, text)
    check(world.get("resourceclaimtemplate", "imex-channel-0") is None, "the template is left")
    check(world.get("daemonset", name, NAMESPACE) is None, "the DaemonSet is left")
