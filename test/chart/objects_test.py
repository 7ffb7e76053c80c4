"""Names, labels and shapes of what the chart installs."""

import re

from support import CHART, HOST_MANAGED, ROOT, ChartTest, Rendered, env, helm

COMMON = [
    "ClusterRole nvdra-clusterrole-controller",
    "ClusterRole nvdra-clusterrole-kubeletplugin",
    "ClusterRoleBinding nvdra-clusterrole-binding-controller-nvdra",
    "ClusterRoleBinding nvdra-clusterrole-binding-kubeletplugin",
    "DaemonSet nvdra/nvdra-kubelet-plugin",
    "Deployment nvdra/nvdra-controller",
    "DeviceClass compute-domain-default-channel.nvidia.com",
    "ServiceAccount nvdra/nvdra-service-account-controller",
    "ServiceAccount nvdra/nvdra-service-account-kubeletplugin",
    "ValidatingAdmissionPolicy resourceslices-policy-nvdra",
    "ValidatingAdmissionPolicyBinding resourceslices-policy-nvdra",
]
DRIVER_MANAGED_ONLY = [
    "ClusterRole compute-domain-daemon-role",
    "ClusterRoleBinding compute-domain-daemon-role-binding",
    "DeviceClass compute-domain-daemon.nvidia.com",
    "Role nvdra/nvdra-role-controller",
    "Role nvdra/nvdra-role-kubeletplugin",
    "RoleBinding nvdra/nvdra-role-binding-controller",
    "RoleBinding nvdra/nvdra-role-binding-kubeletplugin",
    "ServiceAccount nvdra/compute-domain-daemon-service-account",
    "ValidatingAdmissionPolicy nodes-policy-nvdra",
    "ValidatingAdmissionPolicyBinding nodes-policy-nvdra",
]


class Objects(ChartTest):
    def test_host_managed_installs_nothing_of_the_daemons(self):
        self.assertEqual(sorted(COMMON), Rendered(HOST_MANAGED).names())

    def test_driver_managed_is_the_default_and_adds_what_daemons_need(self):
        self.assertEqual(sorted(COMMON + DRIVER_MANAGED_ONLY), Rendered().names())

    def test_nothing_is_installed_without_compute_domains(self):
        self.assertEqual([], Rendered(["resources.computeDomains.enabled=false"]).names())

    def test_lint_is_clean_in_both_modes(self):
        for values in ([], HOST_MANAGED):
            settings = [part for value in values for part in ("--set", value)]
            result = helm("lint", "--strict", CHART, "-n", "nvdra", *settings)
            self.assertEqual(0, result.returncode, result.stdout + result.stderr)

    def test_name_overrides_keep_the_names_of_an_older_installation(self):
        names = Rendered([*HOST_MANAGED, "nameOverride=dra-driver-nvidia-gpu"], release="old").names()
        for one in ("Deployment nvdra/dra-driver-nvidia-gpu-controller",
                    "DaemonSet nvdra/dra-driver-nvidia-gpu-kubelet-plugin",
                    "ServiceAccount nvdra/old-dra-driver-nvidia-gpu-service-account-controller"):
            self.assertIn(one, names)
        self.assertIn("ServiceAccount nvdra/full-service-account-kubeletplugin",
                      Rendered(["fullnameOverride=full"]).names())

    def test_the_namespace_can_be_overridden_everywhere(self):
        rendered = Rendered(["namespaceOverride=other"], namespace="default")
        self.assertEqual({None, "other"}, {one["metadata"].get("namespace") for one in rendered.objects})
        self.assertIn("system:serviceaccount:other:", str(rendered.all("ValidatingAdmissionPolicy")))

    def test_every_object_says_who_made_it(self):
        for one in Rendered().objects:
            labels = one["metadata"]["labels"]
            self.assertEqual({"helm.sh/chart", "app.kubernetes.io/version", "app.kubernetes.io/managed-by",
                              "app.kubernetes.io/name", "app.kubernetes.io/instance"}, set(labels))
            self.assertEqual("nvdra", labels["app.kubernetes.io/name"])

    def test_pods_are_selected_by_their_component_label(self):
        rendered = Rendered(["selectorLabelsOverride.team=a"])
        for kind, name, component in (("Deployment", "nvdra-controller", "controller"),
                                      ("DaemonSet", "nvdra-kubelet-plugin", "kubelet-plugin")):
            spec = rendered.get(kind, name)["spec"]
            self.assertEqual({"team": "a", "nvdra-component": component}, spec["selector"]["matchLabels"])
            self.assertEqual({"team": "a", "nvdra-component": component, "app.kubernetes.io/name": "nvdra",
                              "app.kubernetes.io/instance": "nvdra"}, spec["template"]["metadata"]["labels"])

    def test_controllers_avoid_each_other_also_under_another_name(self):
        spec = Rendered(["nameOverride=other"]).get("Deployment", "other-controller")["spec"]["template"]["spec"]
        term = spec["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]
        self.assertEqual({"other-component": "controller"}, term["podAffinityTerm"]["labelSelector"]["matchLabels"])

    def test_affinity_can_be_removed(self):
        spec = Rendered(["controller.affinity=null"]).get("Deployment", "nvdra-controller")["spec"]["template"]["spec"]
        self.assertNotIn("affinity", spec)

    def test_the_image_has_no_registry_and_the_version_as_tag(self):
        self.assertEqual("nvdra:0.1.0", Rendered().controller()["image"])
        rendered = Rendered(["image.repository=registry.example/x/nvdra", "image.tag=v7", "image.pullPolicy=Never"])
        pod = rendered.get("DaemonSet", "nvdra-kubelet-plugin")["spec"]["template"]["spec"]
        for container in (rendered.controller(), *pod["containers"], *pod["initContainers"]):
            self.assertEqual(("registry.example/x/nvdra:v7", "Never"), (container["image"], container["imagePullPolicy"]))

    def test_chart_and_program_have_one_version(self):
        program = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text()).group(1)
        chart = (CHART / "Chart.yaml").read_text()
        self.assertIn(f"\nversion: {program}\n", chart)
        self.assertIn(f'\nappVersion: "{program}"\n', chart)

    def test_pull_secrets_reach_the_pods_and_the_daemons(self):
        rendered = Rendered(["imagePullSecrets[0].name=a", "imagePullSecrets[1].name=b"])
        for kind, name in (("Deployment", "nvdra-controller"), ("DaemonSet", "nvdra-kubelet-plugin")):
            pod = rendered.get(kind, name)["spec"]["template"]["spec"]
            self.assertEqual([{"name": "a"}, {"name": "b"}], pod["imagePullSecrets"])
        self.assertEqual("a,b", env(rendered.controller())["CD_DAEMON_IMAGE_PULL_SECRET_NAMES"])

    def test_device_classes_select_by_driver_type_and_id(self):
        rendered = Rendered(["resourceApiVersion=resource.k8s.io/v1beta1"])
        channel = rendered.get("DeviceClass", "compute-domain-default-channel.nvidia.com")
        daemon = rendered.get("DeviceClass", "compute-domain-daemon.nvidia.com")
        self.assertEqual({"resource.k8s.io/v1beta1"}, {channel["apiVersion"], daemon["apiVersion"]})
        attributes = "device.attributes['compute-domain.nvidia.com']"
        driver = "device.driver == 'compute-domain.nvidia.com'"
        self.assertEqual(f"{driver} && {attributes}.type == 'channel' && {attributes}.id == 0",
                         channel["spec"]["selectors"][0]["cel"]["expression"])
        self.assertEqual(f"{driver} && {attributes}.type == 'daemon'",
                         daemon["spec"]["selectors"][0]["cel"]["expression"])

    def test_device_classes_take_the_newest_version_of_the_cluster(self):
        self.assertEqual("resource.k8s.io/v1", Rendered().all("DeviceClass")[0]["apiVersion"])

    def test_network_policies_are_opt_in_and_know_the_ports(self):
        rendered = Rendered(["controller.networkPolicy.enabled=true", "kubeletPlugin.networkPolicy.enabled=true",
                             "kubeletPlugin.networkPolicy.apiServerPorts={7443}", "daemon.networkPolicy.enabled=true"])
        self.assertEqual(3, len(rendered.all("NetworkPolicy")))
        plugin = rendered.get("NetworkPolicy", "nvdra-kubelet-plugin")["spec"]
        self.assertEqual([{"ports": [{"protocol": "TCP", "port": 7443}]}], plugin["egress"])
        self.assertEqual({"matchLabels": {"nvdra-component": "kubelet-plugin"}}, plugin["podSelector"])
        daemon = rendered.get("NetworkPolicy", "nvdra-compute-domain-daemon")["spec"]
        self.assertEqual([50000, 50005], [port["port"] for port in daemon["ingress"][0]["ports"]])
        self.assertEqual([], [one for one in Rendered([*HOST_MANAGED, "daemon.networkPolicy.enabled=true"]).names()
                              if one.startswith("NetworkPolicy")])

    def test_openshift_gets_its_bindings(self):
        options = ("--api-versions", "security.openshift.io/v1/SecurityContextConstraints")
        privileged = "ClusterRoleBinding nvdra-openshift-privileged-role-binding-kubeletplugin"
        anyuid = "ClusterRoleBinding compute-domain-daemon-openshift-anyuid-role-binding"
        self.assertEqual(sorted([*COMMON, privileged]), Rendered(HOST_MANAGED, options=options).names())
        self.assertEqual({privileged, anyuid}, set(Rendered(options=options).names()) - set(Rendered().names()))


class Controller(ChartTest):
    def test_two_controllers_never_overlap_without_leader_election(self):
        self.assertEqual({"type": "Recreate"}, Rendered().get("Deployment", "nvdra-controller")["spec"]["strategy"])
        spec = Rendered(["controller.leaderElection.enabled=true", "controller.replicas=2"]).get("Deployment", "nvdra-controller")["spec"]
        self.assertEqual((2, {"type": "RollingUpdate"}), (spec["replicas"], spec["strategy"]))

    def test_probes_ask_the_http_endpoint(self):
        for values, port in (([], 8080), (["controller.metrics.httpEndpoint=0.0.0.0:9000"], 9000),
                             (["controller.metrics.enabled=false"], 8080)):
            container = Rendered(values).controller()
            self.assertEqual([{"name": "http", "containerPort": port}], container["ports"])
            self.assertEqual({"path": "/healthz", "port": "http"}, container["livenessProbe"]["httpGet"])
            self.assertEqual({"path": "/healthz", "port": "http"}, container["startupProbe"]["httpGet"])
            self.assertEqual({"path": "/readyz", "port": "http"}, container["readinessProbe"]["httpGet"])

    def test_an_endpoint_on_loopback_has_no_probes(self):
        for endpoint in ("127.0.0.1:8080", "localhost:8080", "[::1]:8080"):
            container = Rendered([f"controller.metrics.httpEndpoint={endpoint}"]).controller()
            self.assertEqual(endpoint, env(container)["HTTP_ENDPOINT"])
            self.assertNotIn("livenessProbe", container)
            self.assertNotIn("readinessProbe", container)

    def test_the_original_command_starts_the_role(self):
        container = Rendered().controller()
        self.assertEqual("compute-domain", container["name"])
        self.assertEqual(["compute-domain-controller", "-v", "$(LOG_VERBOSITY)"], container["command"])


class Plugin(ChartTest):
    def pod(self, values=()):
        return Rendered(values).get("DaemonSet", "nvdra-kubelet-plugin")["spec"]["template"]["spec"]

    def test_the_original_command_starts_the_role_in_a_privileged_container(self):
        container = self.pod()["containers"][0]
        self.assertEqual("compute-domains", container["name"])
        self.assertEqual(["compute-domain-kubelet-plugin", "-v", "$(LOG_VERBOSITY)"], container["command"])
        self.assertEqual({"privileged": True}, container["securityContext"])

    def test_probes_ask_the_grpc_health_service(self):
        container = self.pod(["kubeletPlugin.containers.computeDomains.healthcheckPort=6000"])["containers"][0]
        grpc = {"port": 6000, "service": "liveness"}
        self.assertEqual({"grpc": grpc, "periodSeconds": 1, "timeoutSeconds": 10, "failureThreshold": 600},
                         container["startupProbe"])
        self.assertEqual({"grpc": grpc, "periodSeconds": 10, "timeoutSeconds": 10, "failureThreshold": 3},
                         container["livenessProbe"])
        self.assertNotIn("readinessProbe", container)

    def test_a_health_port_of_zero_or_less_reaches_the_program_and_has_no_probes(self):
        for port in ("0", "-1"):
            container = self.pod([f"kubeletPlugin.containers.computeDomains.healthcheckPort={port}"])["containers"][0]
            self.assertEqual(port, env(container)["HEALTHCHECK_PORT"])
            self.assertNotIn("livenessProbe", container)
            self.assertNotIn("startupProbe", container)

    def test_the_pod_waits_for_the_driver_without_a_shell(self):
        init = self.pod()["initContainers"][0]
        self.assertEqual(("init-container", ["nvdra", "wait-for-driver"]), (init["name"], init["command"]))
        self.assertEqual({"privileged": True}, init["securityContext"])
        changed = self.pod(["kubeletPlugin.containers.init.securityContext.privileged=false",
                            "kubeletPlugin.containers.init.resources.limits.memory=20Mi"])["initContainers"][0]
        self.assertEqual({"privileged": False}, changed["securityContext"])
        self.assertEqual({"limits": {"memory": "20Mi"}}, changed["resources"])

    def test_the_driver_root_and_its_parent_are_mounted(self):
        for root, parent, mount in (("/", "/", {"readOnly": True}),
                                    ("/run/nvidia/driver/", "/run/nvidia", {"mountPropagation": "HostToContainer"})):
            pod = self.pod([f"nvidiaDriverRoot={root}"])
            paths = {one["name"]: one["hostPath"] for one in pod["volumes"]}
            self.assertEqual({"path": root.rstrip("/") or "/", "type": "DirectoryOrCreate"}, paths["driver-root"])
            self.assertEqual({"path": parent, "type": "DirectoryOrCreate"}, paths["driver-root-parent"])
            self.assertEqual([{"name": "driver-root-parent", "mountPath": "/driver-root-parent", **mount}],
                             pod["initContainers"][0]["volumeMounts"])

    def test_the_plugin_has_the_kubelets_folders_and_the_cdi_folder(self):
        pod = self.pod(["kubeletPlugin.kubeletPluginsDirectoryPath=/k/plugins",
                        "kubeletPlugin.kubeletRegistrarDirectoryPath=/k/registry"])
        self.assertEqual([
            {"name": "plugins-registry", "mountPath": "/k/registry"},
            {"name": "plugins", "mountPath": "/k/plugins", "mountPropagation": "Bidirectional"},
            {"name": "cdi", "mountPath": "/var/run/cdi"},
            {"name": "driver-root", "mountPath": "/driver-root", "readOnly": True, "mountPropagation": "HostToContainer"},
        ], pod["containers"][0]["volumeMounts"])
        self.assertNotIn("hostNetwork", pod)
        self.assertNotIn("hostPID", pod)

    def test_simulated_nodes_bring_their_own_list_of_devices(self):
        pod = self.pod(["altProcDevices=/etc/proc-devices"])
        self.assertEqual("/alt-proc-devices", env(pod["containers"][0])["ALT_PROC_DEVICES_PATH"])
        self.assertIn({"name": "alt-proc-devices", "hostPath": {"path": "/etc/proc-devices", "type": "File"}}, pod["volumes"])
        self.assertIn({"name": "alt-proc-devices", "mountPath": "/alt-proc-devices", "readOnly": True},
                      pod["containers"][0]["volumeMounts"])

    def test_the_pod_runs_on_gpu_nodes_and_updates_all_at_once(self):
        spec = Rendered().get("DaemonSet", "nvdra-kubelet-plugin")["spec"]
        self.assertEqual({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}}, spec["updateStrategy"])
        affinity = spec["template"]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        keys = [term["matchExpressions"][0]["key"] for term in affinity["nodeSelectorTerms"]]
        self.assertEqual(["feature.node.kubernetes.io/pci-10de.present", "feature.node.kubernetes.io/pci-0302_10de.present",
                          "feature.node.kubernetes.io/pci-0300_10de.present",
                          "feature.node.kubernetes.io/cpu-model.vendor_id", "nvidia.com/gpu.present"], keys)
