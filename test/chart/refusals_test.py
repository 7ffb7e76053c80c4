"""What the chart refuses, and the sentence that it gives."""

import re

from support import HOST_MANAGED, ROOT, ChartTest, Rendered

IMEX = "resources.computeDomains.imex"


class Refusals(ChartTest):
    def test_host_managed_requires_its_gate(self):
        sentence = f"{IMEX}.mode=hostManaged requires the feature gate HostManagedIMEXDaemon"
        self.refused(sentence, f"{IMEX}.mode=hostManaged")
        self.refused(sentence, f"{IMEX}.mode=hostManaged", "featureGates.HostManagedIMEXDaemon=false")

    def test_the_gate_for_names_is_not_switched_off_alone(self):
        names, cliques = "featureGates.IMEXDaemonsWithDNSNames", "featureGates.ComputeDomainCliques"
        sentence = "requires IMEXDaemonsWithDNSNames: to switch that off, add --set featureGates.ComputeDomainCliques=false"
        self.refused(sentence, f"{names}=false")
        self.refused(sentence, "featureGates.AllBeta=false", f"{cliques}=true")
        for legal in ([f"{names}=false", f"{cliques}=false"], ["featureGates.AllBeta=false"],
                      ["featureGates.AllBeta=false", f"{names}=true"], [f"{cliques}=false"],
                      [*HOST_MANAGED, f"{names}=false"]):
            Rendered(legal)

    def test_an_unknown_mode_is_quoted_next_to_the_legal_ones(self):
        for mode in ("HostManaged", ""):
            self.refused(f'{IMEX}.mode is "{mode}": it must be "driverManaged" or "hostManaged"', f"{IMEX}.mode={mode}")
        self.refused(f'{IMEX}.mode is "": it must be', f"{IMEX}=null")

    def test_channel_isolation_is_named_as_not_there_yet(self):
        for mode in ([], HOST_MANAGED):
            self.refused(f'{IMEX}.isolation=channel is not supported yet: use "domain"', *mode, f"{IMEX}.isolation=channel")

    def test_an_unknown_isolation_is_quoted_next_to_the_known_ones(self):
        self.refused(f'{IMEX}.isolation is "node": the isolations are "domain" and "channel"', f"{IMEX}.isolation=node")

    def test_the_mode_is_checked_before_the_isolation(self):
        self.refused("requires the feature gate", f"{IMEX}.mode=hostManaged", f"{IMEX}.isolation=channel")

    def test_imex_values_are_not_looked_at_without_compute_domains(self):
        Rendered(["resources.computeDomains.enabled=false", f"{IMEX}.mode=hostManaged", f"{IMEX}.isolation=channel"])

    def test_the_host_socket_is_an_absolute_path(self):
        for path in ("imex.sock", "", "/run/../x"):
            self.refused(f'{IMEX}.hostSocketPath is "{path}": it must be an absolute path', *HOST_MANAGED,
                         f"{IMEX}.hostSocketPath={path}")

    def test_computed_imex_settings_cannot_be_overridden(self):
        source = (ROOT / "src/roles/common/imex_overrides.cpp").read_text(encoding="utf-8")
        refused_by_the_program = re.findall(r'"([A-Z_]+)"', re.search(r"computed_keys\{(.*?)\}", source, re.DOTALL)[1])
        self.assertIn("SERVER_PORT", refused_by_the_program)
        for key in refused_by_the_program:
            self.refused(f"{IMEX}.config.{key} is computed by the driver: remove it", f"{IMEX}.config.{key}=x")
        self.refused("cannot be passed on", rf"{IMEX}.config.A=1\,2")

    def test_the_default_namespace_needs_permission(self):
        self.refused('Installing into the namespace "default" is not recommended', namespace="default")
        Rendered(["allowDefaultNamespace=true"], namespace="default")
        Rendered(["namespaceOverride=x"], namespace="default")

    def test_values_that_never_existed_or_are_gone_have_a_hint(self):
        self.refused("choose the namespace with --namespace", "namespace=x")
        self.refused('"nvidiaCtkPath" is no longer supported: remove it', "nvidiaCtkPath=/x")

    def test_the_gpu_driver_is_refused_not_forgotten(self):
        self.refused("resources.gpus.enabled=true: nvdra has no plugin for gpu.nvidia.com", "resources.gpus.enabled=true")
        self.refused("gpuResourcesEnabledOverride=true asks for gpu.nvidia.com", "gpuResourcesEnabledOverride=true")

    def test_values_of_the_gpu_driver_that_change_nothing_are_accepted(self):
        plain = Rendered().names()
        for values in (["resources.gpus.enabled=false"], ["resources.gpus.enabled=null"],
                       ["resources.gpus.enabled=false", "gpuResourcesEnabledOverride=true"],
                       ["kubeletPlugin.containers.gpus.healthcheckPort=0", "consumableShares=x",
                        "kubeletPlugin.metrics.gpuHttpEndpoint=:9"]):
            self.assertEqual(plain, Rendered(values).names())

    def test_the_webhook_is_refused_until_it_is_there(self):
        self.refused("webhook.enabled=true: the admission webhook is not part of nvdra 0.1.0", "webhook.enabled=true")
        Rendered(["webhook.replicas=2", "webhook.tls.mode=secret"])

    def test_several_controllers_need_leader_election(self):
        self.refused("controller.replicas=2 without leader election", "controller.replicas=2")

    def test_endpoints_have_a_port(self):
        for value in ("controller.metrics.httpEndpoint", "kubeletPlugin.metrics.computeDomainHttpEndpoint"):
            for endpoint in ("", "localhost", ":0", "a:b:8080", ":http"):
                self.refused(f'{value} is "{endpoint}": it must be an address and a port', f"{value}={endpoint}")

    def test_unknown_values_are_named_with_their_place(self):
        for value, place in (("foo", "''"), ("controller.foo", "'/controller'"), ("image.name", "'/image'"),
                             ("featureGates.HostManagedIMEXDeamon", "'/featureGates'"), (f"{IMEX}.modus", "imex'"),
                             ("kubeletPlugin.containers.computeDomains.foo", "computeDomains'")):
            self.refused(f"additional properties '{value.rsplit('.', 1)[-1]}' not allowed", f"{value}=true")
            self.refused(place, f"{value}=true")

    def test_values_of_the_wrong_type_are_named_with_their_place(self):
        for value, text in (
                ("featureGates.HostManagedIMEXDaemon=yes", "'/featureGates/HostManagedIMEXDaemon': got string, want boolean"),
                ("controller.replicas=two", "'/controller/replicas': got string, want integer"),
                ("controller.leaderElection.leaseDuration=15", "'/controller/leaderElection/leaseDuration': got number, want string"),
                ("controller.leaderElection.retryPeriod=2sec", "'/controller/leaderElection/retryPeriod': '2sec' does not match pattern"),
                ("nvidiaDriverRoot=usr", "'/nvidiaDriverRoot': 'usr' does not match pattern"),
                ("logVerbosity=high", "'/logVerbosity': 'high' does not match pattern"),
                ("image.pullPolicy=Sometimes", "'/image/pullPolicy': value must be one of"),
                ("kubeletPlugin.containers.computeDomains.healthcheckPort=70000", "healthcheckPort': maximum: got 70,000"),
                ("resourceApiVersion=v1", "'/resourceApiVersion': 'v1' does not match pattern"),
                ("controller.metrics=null", "'/controller': missing property 'metrics'")):
            with self.subTest(value=value):
                self.refused(text, value)
