"""Least privilege: what each account may do in each mode."""

from support import HOST_MANAGED, ChartTest, Rendered

EVENTS = ["create", "patch"]
READ = ["get", "list", "watch"]
CONTROLLER = "nvdra-clusterrole-controller"
PLUGIN = "nvdra-clusterrole-kubeletplugin"
ELECTION = ["controller.leaderElection.enabled=true"]
TWO_NAMESPACES = ["controller.containers.computeDomain.env[0].name=ADDITIONAL_NAMESPACES",
                  r"controller.containers.computeDomain.env[0].value= extra\,\,nvdra\,"]


class Permissions(ChartTest):
    def test_the_host_managed_controller_touches_domains_and_templates_only(self):
        rendered = Rendered(HOST_MANAGED)
        self.assertEqual({
            "resource.nvidia.com/computedomains": sorted([*READ, "update", "patch"]),
            "resource.nvidia.com/computedomains/status": ["patch", "update"],
            "resource.k8s.io/resourceclaimtemplates": sorted([*READ, "create", "update", "patch", "delete"]),
            "/events": EVENTS,
        }, rendered.rules("ClusterRole", CONTROLLER))
        self.assertEqual([], rendered.all("Role"))

    def test_the_driver_managed_controller_adds_daemonsets_cliques_pods_and_nodes(self):
        rendered = Rendered()
        added = {key: verbs for key, verbs in rendered.rules("ClusterRole", CONTROLLER).items()
                 if key not in Rendered(HOST_MANAGED).rules("ClusterRole", CONTROLLER)}
        self.assertEqual({"/nodes": sorted([*READ, "patch"])}, added)
        self.assertEqual({
            "apps/daemonsets": sorted([*READ, "create", "update", "patch", "delete"]),
            "resource.nvidia.com/computedomaincliques": sorted([*READ, "update", "patch"]),
            "/pods": READ,
        }, rendered.rules("Role", "nvdra-role-controller", "nvdra"))

    def test_cleaning_up_after_a_change_of_mode_needs_the_rights_of_the_other_mode(self):
        cleaning = Rendered([*HOST_MANAGED, "resources.computeDomains.imex.cleanUpOtherMode=true"])
        for kind, name, space in (("ClusterRole", CONTROLLER, None), ("Role", "nvdra-role-controller", "nvdra")):
            self.assertEqual(Rendered().rules(kind, name, space), cleaning.rules(kind, name, space))
        self.assertEqual([], [role["metadata"]["name"] for role in cleaning.all("ClusterRole")
                              if "daemon" in role["metadata"]["name"]])

    def test_the_lease_is_the_only_one_and_only_with_leader_election(self):
        for values in (HOST_MANAGED, []):
            rules = Rendered([*values, *ELECTION]).rules("Role", "nvdra-role-controller", "nvdra")
            self.assertEqual(["create"], rules["coordination.k8s.io/leases"])
            self.assertEqual(["get", "patch", "update"], rules["coordination.k8s.io/leases:nvdra-controller"])
            self.assertNotIn("leases", str(Rendered(values).all("Role")))

    def test_the_host_managed_plugin_writes_slices_and_events_only(self):
        rendered = Rendered(HOST_MANAGED)
        self.assertEqual({
            "resource.nvidia.com/computedomains": READ,
            "resource.k8s.io/resourceclaims": READ,
            "resource.k8s.io/resourceslices": sorted([*READ, "create", "update", "patch", "delete"]),
            "/nodes": ["get"],
            "/pods": ["get"],
            "/events": EVENTS,
        }, rendered.rules("ClusterRole", PLUGIN))
        self.assertNotIn("nodes-policy-nvdra", str(rendered.names()))

    def test_the_plugin_may_label_its_node_where_it_has_to(self):
        owner = "kubeletPlugin.containers.computeDomains.gpuCliqueLabelEnabled=true"
        for values in ([], [*HOST_MANAGED, owner]):
            rendered = Rendered(values)
            self.assertEqual(sorted([*READ, "patch"]), rendered.rules("ClusterRole", PLUGIN)["/nodes"])
            self.assertIn("ValidatingAdmissionPolicy nodes-policy-nvdra", rendered.names())

    def test_the_driver_managed_plugin_follows_cliques_and_daemon_pods(self):
        self.assertEqual({"resource.nvidia.com/computedomaincliques": READ, "/pods": READ},
                         Rendered().rules("Role", "nvdra-role-kubeletplugin", "nvdra"))

    def test_the_daemon_keeps_its_entry_and_labels_its_pod(self):
        self.assertEqual({
            "resource.nvidia.com/computedomains": sorted([*READ, "update", "patch"]),
            "resource.nvidia.com/computedomains/status": sorted([*READ, "update", "patch"]),
            "resource.nvidia.com/computedomaincliques": sorted([*READ, "create", "update", "patch", "delete"]),
            "/pods": sorted([*READ, "patch"]),
            "/events": EVENTS,
        }, Rendered().rules("ClusterRole", "compute-domain-daemon-role"))

    def test_nobody_may_create_workloads_except_the_driver_managed_controller(self):
        for values in (HOST_MANAGED, []):
            rendered = Rendered(values)
            for role in (*rendered.all("ClusterRole"), *rendered.all("Role")):
                for rule in role["rules"]:
                    self.assertNotIn("*", [*rule["apiGroups"], *rule["resources"], *rule["verbs"]])
                    if {"apps", "batch"} & set(rule["apiGroups"]) or "secrets" in rule["resources"]:
                        self.assertEqual(("nvdra-role-controller", []), (role["metadata"]["name"], values))

    def test_additional_namespaces_get_their_own_roles_once_each(self):
        rendered = Rendered(TWO_NAMESPACES)
        for kind, name in (("Role", "nvdra-role-controller"), ("RoleBinding", "nvdra-role-binding-controller"),
                           ("Role", "nvdra-role-kubeletplugin"), ("RoleBinding", "nvdra-role-binding-kubeletplugin"),
                           ("ServiceAccount", "compute-domain-daemon-service-account")):
            places = [one["metadata"]["namespace"] for one in rendered.all(kind) if one["metadata"]["name"] == name]
            self.assertEqual(["extra", "nvdra"], sorted(places), name)
        subjects = rendered.get("ClusterRoleBinding", "compute-domain-daemon-role-binding")["subjects"]
        self.assertEqual(["nvdra", "extra"], [one["namespace"] for one in subjects])
        binding = rendered.get("RoleBinding", "nvdra-role-binding-controller", "extra")
        self.assertEqual([{"kind": "ServiceAccount", "name": "nvdra-service-account-controller", "namespace": "nvdra"}],
                         binding["subjects"])

    def test_bindings_name_the_accounts_that_the_pods_use(self):
        rendered = Rendered(["serviceAccount.name=mine"])
        for kind, name, account, binding in (
                ("Deployment", "nvdra-controller", "mine-controller", "nvdra-clusterrole-binding-controller-nvdra"),
                ("DaemonSet", "nvdra-kubelet-plugin", "mine-kubeletplugin", "nvdra-clusterrole-binding-kubeletplugin")):
            self.assertEqual(account, rendered.get(kind, name)["spec"]["template"]["spec"]["serviceAccountName"])
            self.assertEqual(account, rendered.get("ClusterRoleBinding", binding)["subjects"][0]["name"])
            rendered.get("ServiceAccount", account, "nvdra")

    def test_accounts_and_permissions_have_separate_switches(self):
        without_accounts = Rendered([*HOST_MANAGED, "serviceAccount.create=false"])
        self.assertEqual([], without_accounts.all("ServiceAccount"))
        self.assertEqual(2, len(without_accounts.all("ClusterRoleBinding")))
        without_rbac = Rendered(["rbac.create=false"])
        for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"):
            self.assertEqual([], without_rbac.all(kind))
        self.assertEqual(3, len(without_rbac.all("ServiceAccount")))

    def test_policies_hold_the_plugin_to_its_own_node_and_driver(self):
        rendered = Rendered(["serviceAccount.name=mine"])
        for name, places in (("resourceslices-policy-nvdra", ["resourceslices"]), ("nodes-policy-nvdra", ["nodes"])):
            policy = rendered.get("ValidatingAdmissionPolicy", name)["spec"]
            self.assertEqual("request.userInfo.username == 'system:serviceaccount:nvdra:mine-kubeletplugin'",
                             policy["matchConditions"][0]["expression"])
            self.assertEqual(places, policy["matchConstraints"]["resourceRules"][0]["resources"])
            self.assertEqual("Fail", policy["failurePolicy"])
            binding = rendered.get("ValidatingAdmissionPolicyBinding", name)["spec"]
            self.assertEqual({"policyName": name, "validationActions": ["Deny"]}, binding)
        slices = rendered.get("ValidatingAdmissionPolicy", "resourceslices-policy-nvdra")["spec"]
        self.assertEqual(["v1", "v1beta2", "v1beta1"], slices["matchConstraints"]["resourceRules"][0]["apiVersions"])
        self.assertEqual(["CREATE", "UPDATE", "DELETE"], slices["matchConstraints"]["resourceRules"][0]["operations"])
