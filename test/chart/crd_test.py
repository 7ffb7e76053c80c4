"""The two CRDs: the contract with other readers of the API, and what is ours."""

import re

from support import CHART, ChartTest
from yaml_subset import documents


def crd(plural):
    found, = documents((CHART / "crds" / f"resource.nvidia.com_{plural}.yaml").read_text())
    return found


def required(schema, path=""):
    """{path: required fields} of every object in a schema."""
    found = {path: sorted(schema["required"])} if "required" in schema else {}
    for name, inner in schema.get("properties", {}).items():
        found.update(required(inner, f"{path}.{name}".lstrip(".")))
    if "items" in schema:
        found.update(required(schema["items"], path + "[]"))
    return found


class Crds(ChartTest):
    def setUp(self):
        self.domain, self.clique = crd("computedomains"), crd("computedomaincliques")

    def schema(self, one):
        return one["spec"]["versions"][0]["schema"]["openAPIV3Schema"]

    def test_names_scope_and_version(self):
        for one, kind, plural, short in ((self.domain, "ComputeDomain", "computedomains", "cd"),
                                         (self.clique, "ComputeDomainClique", "computedomaincliques", "cdc")):
            self.assertEqual(f"{plural}.resource.nvidia.com", one["metadata"]["name"])
            self.assertEqual("resource.nvidia.com", one["spec"]["group"])
            self.assertEqual("Namespaced", one["spec"]["scope"])
            self.assertEqual({"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": plural[:-1],
                              "shortNames": [short]}, one["spec"]["names"])
            version, = one["spec"]["versions"]
            self.assertEqual(("v1beta1", True, True), (version["name"], version["served"], version["storage"]))

    def test_only_the_domain_has_a_status_subresource(self):
        self.assertEqual({"status": {}}, self.domain["spec"]["versions"][0]["subresources"])
        self.assertNotIn("subresources", self.clique["spec"]["versions"][0])

    def test_the_domain_shows_status_nodes_and_age(self):
        columns = self.domain["spec"]["versions"][0]["additionalPrinterColumns"]
        self.assertEqual([("Status", "string", ".status.status"), ("Nodes", "string", ".status.nodeSummary"),
                          ("Age", "date", ".metadata.creationTimestamp")],
                         [(one["name"], one["type"], one["jsonPath"]) for one in columns])

    def test_required_fields(self):
        self.assertEqual({
            "": ["spec"],
            "spec": ["channel"],
            "spec.channel": ["resourceClaimTemplate"],
            "spec.channel.resourceClaimTemplate": ["name"],
            "status": ["status"],
            "status.conditions[]": ["lastTransitionTime", "message", "reason", "status", "type"],
            "status.nodes[]": ["cliqueID", "ipAddress", "name"],
        }, required(self.schema(self.domain)))
        self.assertEqual({"daemons[]": ["cliqueID", "ipAddress", "nodeName"]}, required(self.schema(self.clique)))

    def test_the_spec_is_immutable(self):
        rule, = self.schema(self.domain)["properties"]["spec"]["x-kubernetes-validations"]
        self.assertEqual("self == oldSelf", rule["rule"])

    def test_defaults_and_enums(self):
        spec = self.schema(self.domain)["properties"]["spec"]["properties"]
        self.assertEqual((0, 0, "integer"), tuple(spec["numNodes"][key] for key in ("default", "minimum", "type")))
        mode = spec["channel"]["properties"]["allocationMode"]
        self.assertEqual((["All", "Single"], "Single"), (mode["enum"], mode["default"]))
        status = self.schema(self.domain)["properties"]["status"]["properties"]
        daemon = self.schema(self.clique)["properties"]["daemons"]["items"]["properties"]
        for one in (status["status"], status["nodes"]["items"]["properties"]["status"], daemon["status"]):
            self.assertEqual((["Ready", "NotReady"], "NotReady"), (one["enum"], one["default"]))

    def test_list_keys(self):
        status = self.schema(self.domain)["properties"]["status"]["properties"]
        daemons = self.schema(self.clique)["properties"]["daemons"]
        for one, key in ((status["nodes"], "name"), (status["conditions"], "type"), (daemons, "nodeName")):
            self.assertEqual(("map", [key]), (one["x-kubernetes-list-type"], one["x-kubernetes-list-map-keys"]))

    def test_the_templates_name_is_a_dns_subdomain(self):
        name = self.schema(self.domain)["properties"]["spec"]["properties"]["channel"]["properties"]["resourceClaimTemplate"]["properties"]["name"]
        self.assertEqual((1, 253), (name["minLength"], name["maxLength"]))
        for good in ("imex-channel-0", "a", "a.b-c.d", "123"):
            self.assertRegex(good, re.compile(name["pattern"]))
        for bad in ("", "-a", "a-", "a..b", "A", "a_b", "a\nb", "a/b", ".a"):
            self.assertNotRegex(bad, re.compile(name["pattern"].replace("$", r"\Z")))
