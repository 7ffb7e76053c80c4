"""What the chart tells the roles: only variables they know, with the values of the user."""

from support import HOST_MANAGED, ChartTest, Rendered, env

LOGGING = {"LOG_VERBOSITY"}  # expanded by Kubernetes into -v
CONTROLLER = LOGGING | {
    "POD_NAME", "NAMESPACE", "IMAGE_NAME", "CD_DAEMON_IMAGE_PULL_SECRET_NAMES", "LOG_VERBOSITY_CD_DAEMON",
    "MAX_NODES_PER_IMEX_DOMAIN", "IMEX_MODE", "IMEX_ISOLATION", "HTTP_ENDPOINT", "METRICS_PATH", "PPROF_PATH",
    "ADDITIONAL_NAMESPACES", "LEADER_ELECTION_ENABLED", "LEADER_ELECTION_LEASE_LOCK_NAMESPACE",
    "LEADER_ELECTION_LEASE_LOCK_NAME", "LEADER_ELECTION_LEASE_DURATION", "LEADER_ELECTION_RENEW_DEADLINE",
    "LEADER_ELECTION_RETRY_PERIOD", "KUBECONFIG", "KUBE_API_QPS", "KUBE_API_BURST", "FEATURE_GATES",
    "IMEX_CONFIG_OVERRIDES", "CD_DAEMON_PRIORITY_CLASS_NAME", "NVIDIA_VISIBLE_DEVICES", "CD_DAEMON_ROLL_OUT",
    "CLEAN_UP_OTHER_MODE",
}
PLUGIN = LOGGING | {
    "NODE_NAME", "NAMESPACE", "HTTP_ENDPOINT", "METRICS_PATH", "CDI_ROOT", "NVIDIA_DRIVER_ROOT", "HOST_DRIVER_ROOT",
    "DRIVER_ROOT_CTR_PATH", "NVIDIA_CDI_HOOK_PATH", "KUBELET_REGISTRAR_DIRECTORY_PATH",
    "KUBELET_PLUGINS_DIRECTORY_PATH", "HEALTHCHECK_PORT", "GPU_CLIQUE_LABEL_ENABLED", "IMEX_MODE", "IMEX_ISOLATION",
    "IMEX_HOST_SOCKET_PATH", "FEATURE_GATES", "KUBECONFIG", "KUBE_API_QPS", "KUBE_API_BURST", "ALT_PROC_DEVICES_PATH",
    "MASK_NVIDIA_DRIVER_PARAMS", "NVIDIA_VISIBLE_DEVICES", "ADDITIONAL_NAMESPACES",
}
WAIT_FOR_DRIVER = {"NVIDIA_DRIVER_ROOT", "NVIDIA_VISIBLE_DEVICES", "KUBELET_REGISTRAR_DIRECTORY_PATH",
                   "KUBELET_PLUGINS_DIRECTORY_PATH"}

EVERYTHING = ["altProcDevices=/a", "nvidiaCDIHookPath=/h", "maskNvidiaDriverParams=true", "imagePullSecrets[0].name=s",
              "featureGates.ComputeDomainCliques=false", "controller.leaderElection.enabled=true",
              "resources.computeDomains.imex.config.A=1", "resources.computeDomains.imex.rollOutDaemons=true",
              "resources.computeDomains.imex.cleanUpOtherMode=true"]


class Variables(ChartTest):
    def test_the_roles_get_only_variables_that_they_know(self):
        for values in ([], EVERYTHING, HOST_MANAGED, [*HOST_MANAGED, *EVERYTHING]):
            rendered = Rendered(values)
            init = rendered.get("DaemonSet", "nvdra-kubelet-plugin")["spec"]["template"]["spec"]["initContainers"][0]
            for container, known in ((rendered.controller(), CONTROLLER), (rendered.plugin(), PLUGIN), (init, WAIT_FOR_DRIVER)):
                names = [one["name"] for one in container["env"]]
                self.assertEqual(set(), set(names) - known)
                self.assertEqual(len(names), len(set(names)), "a variable is set twice")
                self.assertNotIn("args", container)

    def test_the_controller_gets_what_it_requires(self):
        for values in ([], HOST_MANAGED):
            found = env(Rendered(values).controller())
            self.assertEqual({"fieldRef": {"fieldPath": "metadata.name"}}, found["POD_NAME"])
            self.assertEqual({"fieldRef": {"fieldPath": "metadata.namespace"}}, found["NAMESPACE"])
            self.assertEqual("nvdra:0.1.0", found["IMAGE_NAME"])
            self.assertEqual(("4", "4"), (found["LOG_VERBOSITY"], found["LOG_VERBOSITY_CD_DAEMON"]))

    def test_the_plugin_takes_daemons_of_the_controllers_additional_namespaces(self):
        self.assertNotIn("ADDITIONAL_NAMESPACES", env(Rendered().plugin()))
        named = Rendered(["controller.containers.computeDomain.env[0].name=ADDITIONAL_NAMESPACES",
                          r"controller.containers.computeDomain.env[0].value= extra\,\,nvdra\,other"])
        self.assertEqual("extra,other", env(named.plugin())["ADDITIONAL_NAMESPACES"])

    def test_mode_isolation_socket_and_gates_reach_both_roles(self):
        rendered = Rendered([*HOST_MANAGED, "resources.computeDomains.imex.isolation=", "featureGates.AllBeta=false",
                             "resources.computeDomains.imex.hostSocketPath=/run/imex.sock"])
        for container in (rendered.controller(), rendered.plugin()):
            found = env(container)
            self.assertEqual(("hostManaged", ""), (found["IMEX_MODE"], found["IMEX_ISOLATION"]))
            self.assertEqual("AllBeta=false,HostManagedIMEXDaemon=true,", found["FEATURE_GATES"])
        self.assertEqual("/run/imex.sock", env(rendered.plugin())["IMEX_HOST_SOCKET_PATH"])
        self.assertNotIn("FEATURE_GATES", env(Rendered().controller()))

    def test_what_concerns_daemons_only_is_left_out_of_host_managed(self):
        values = ["resources.computeDomains.imex.config.B=x", "resources.computeDomains.imex.config.A=60"]
        found = env(Rendered(values).controller())
        self.assertEqual("A=60,B=x,", found["IMEX_CONFIG_OVERRIDES"])
        self.assertEqual("system-node-critical", found["CD_DAEMON_PRIORITY_CLASS_NAME"])
        self.assertNotIn("CD_DAEMON_PRIORITY_CLASS_NAME", env(Rendered(["controller.priorityClassName="]).controller()))
        hosted = env(Rendered([*HOST_MANAGED, *values]).controller())
        self.assertNotIn("IMEX_CONFIG_OVERRIDES", hosted)
        self.assertNotIn("CD_DAEMON_PRIORITY_CLASS_NAME", hosted)

    def test_requests_and_limits_of_the_daemons_are_passed_on(self):
        self.assertNotIn("CD_DAEMON_RESOURCES_JSON", env(Rendered().controller()))
        values = ["daemon.resources.limits.memory=256Mi", "daemon.resources.limits.cpu=1"]
        self.assertEqual('{"limits":{"cpu":1,"memory":"256Mi"}}', env(Rendered(values).controller())["CD_DAEMON_RESOURCES_JSON"])
        self.assertNotIn("CD_DAEMON_RESOURCES_JSON", env(Rendered([*HOST_MANAGED, *values]).controller()))

    def test_rolling_out_and_cleaning_up_are_asked_for(self):
        found = env(Rendered().controller())
        self.assertNotIn("CD_DAEMON_ROLL_OUT", found)
        self.assertNotIn("CLEAN_UP_OTHER_MODE", found)
        asked = ["resources.computeDomains.imex.rollOutDaemons=true", "resources.computeDomains.imex.cleanUpOtherMode=true"]
        self.assertEqual("true", env(Rendered(asked).controller())["CD_DAEMON_ROLL_OUT"])
        hosted = env(Rendered([*HOST_MANAGED, *asked]).controller())
        self.assertEqual("true", hosted["CLEAN_UP_OTHER_MODE"])
        self.assertNotIn("CD_DAEMON_ROLL_OUT", hosted)

    def test_metrics_off_leaves_the_controllers_endpoint_for_the_probes(self):
        found = env(Rendered(["controller.metrics.enabled=false"]).controller())
        self.assertEqual((":8080", "", ""), (found["HTTP_ENDPOINT"], found["METRICS_PATH"], found["PPROF_PATH"]))
        self.assertNotIn("HTTP_ENDPOINT", env(Rendered(["kubeletPlugin.metrics.enabled=false"]).plugin()))
        self.assertEqual(":8081", env(Rendered().plugin())["HTTP_ENDPOINT"])

    def test_leader_election_is_told_its_lease(self):
        found = env(Rendered(["controller.leaderElection.enabled=true", "nameOverride=n"]).controller("n-controller"))
        self.assertEqual(("true", "n-controller", "nvdra", "15s", "10s", "2s"), tuple(found["LEADER_ELECTION_" + name] for name in (
            "ENABLED", "LEASE_LOCK_NAME", "LEASE_LOCK_NAMESPACE", "LEASE_DURATION", "RENEW_DEADLINE", "RETRY_PERIOD")))

    def test_the_plugin_learns_paths_port_and_label_ownership(self):
        found = env(Rendered([*EVERYTHING, "nvidiaDriverRoot=/run/nvidia/driver",
                              "kubeletPlugin.containers.computeDomains.gpuCliqueLabelEnabled=true"]).plugin())
        self.assertEqual("/run/nvidia/driver", found["NVIDIA_DRIVER_ROOT"])
        self.assertEqual(("/h", "true", "true", "51515", "/var/run/cdi"), tuple(found[name] for name in (
            "NVIDIA_CDI_HOOK_PATH", "MASK_NVIDIA_DRIVER_PARAMS", "GPU_CLIQUE_LABEL_ENABLED", "HEALTHCHECK_PORT", "CDI_ROOT")))
        self.assertEqual({"fieldRef": {"fieldPath": "spec.nodeName"}}, found["NODE_NAME"])

    def test_a_users_variable_replaces_the_charts(self):
        entry = "controller.containers.computeDomain.env"
        container = Rendered(options=["--set-string", f"{entry}[0].name=LOG_VERBOSITY_CD_DAEMON,{entry}[0].value=0",
                                      "--set-string", f"{entry}[1].name=KUBE_API_QPS,{entry}[1].value=50"]).controller()
        self.assertEqual(1, [one["name"] for one in container["env"]].count("LOG_VERBOSITY_CD_DAEMON"))
        found = env(container)
        self.assertEqual(("0", "50", "4"), (found["LOG_VERBOSITY_CD_DAEMON"], found["KUBE_API_QPS"], found["LOG_VERBOSITY"]))

    def test_a_users_variable_cannot_contradict_a_value(self):
        for role, name, value in (("controller.containers.computeDomain", "IMEX_MODE", "resources.computeDomains.imex.mode"),
                                  ("controller.containers.computeDomain", "FEATURE_GATES", "featureGates"),
                                  ("controller.containers.computeDomain", "CLEAN_UP_OTHER_MODE",
                                   "resources.computeDomains.imex.cleanUpOtherMode"),
                                  ("controller.containers.computeDomain", "CD_DAEMON_ROLL_OUT",
                                   "resources.computeDomains.imex.rollOutDaemons"),
                                  ("controller.containers.computeDomain", "CD_DAEMON_RESOURCES_JSON", "daemon.resources"),
                                  ("kubeletPlugin.containers.computeDomains", "IMEX_MODE", "resources.computeDomains.imex.mode"),
                                  ("kubeletPlugin.containers.computeDomains", "NVIDIA_DRIVER_ROOT", "nvidiaDriverRoot")):
            self.refused(f"{role}.env must not set {name}: use the value {value},", f"{role}.env[0].name={name}",
                         f"{role}.env[0].value=x")
