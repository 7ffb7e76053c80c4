#include "dra/claim_status.hpp"

#include "catch.hpp"

using namespace nvdra;
using namespace nvdra::dra;

namespace {

std::string rendered(std::string_view text) {
  return render_status(*parse_json(text));
}

}  // namespace

TEST_CASE("a claim's status is written in the order of the API type", "[dra][claim_status]") {
  CHECK(rendered(R"({
    "reservedFor": [{"uid": "u", "name": "p", "resource": "pods", "apiGroup": ""}],
    "allocation": {
      "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
        {"values": ["node-a"], "operator": "In", "key": "metadata.name"}]}]},
      "allocationTimestamp": "2026-01-02T03:04:05Z",
      "devices": {
        "config": [{"opaque": {"parameters": {"kind": "K", "a": "<"}, "driver": "d"},
                    "source": "FromClaim", "requests": ["r"]}],
        "results": [{"device": "channel-0", "pool": "node-a", "driver": "d", "request": "r",
                     "adminAccess": false,
                     "tolerations": [{"operator": "Exists", "tolerationSeconds": 0}],
                     "consumedCapacity": {"b": "2", "a": "1"}}]}}})") ==
        R"({"allocation":{"devices":{"results":[{"request":"r","driver":"d","pool":"node-a",)"
        R"("device":"channel-0","adminAccess":false,"tolerations":[{"operator":"Exists",)"
        R"("tolerationSeconds":0}],"consumedCapacity":{"a":"1","b":"2"}}],"config":[{"source":)"
        R"("FromClaim","requests":["r"],"opaque":{"driver":"d","parameters":{"kind":"K","a":)"
        R"("\u003c"}}}]},"nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{"key":)"
        R"("metadata.name","operator":"In","values":["node-a"]}]}]},"allocationTimestamp":)"
        R"("2026-01-02T03:04:05Z"},"reservedFor":[{"resource":"pods","name":"p","uid":"u"}]})");
}

TEST_CASE("what is empty or unknown in a claim's status is left out", "[dra][claim_status]") {
  struct Row {
    const char* why;
    const char* status;
    const char* written;
  };
  const Row row = GENERATE(values<Row>({
      {"nothing", "{}", "{}"},
      {"no object", "null", "{}"},
      {"empty lists", R"({"reservedFor":[],"devices":null})", "{}"},
      {"devices of an allocation are always there", R"({"allocation":{}})",
       R"({"allocation":{"devices":{}}})"},
      {"a field of a newer API", R"({"fresh":1,"allocation":{"x":2}})",
       R"({"allocation":{"devices":{}}})"},
      {"device status",
       R"({"devices":[{"driver":"d","pool":"p","device":"x","data":{"b":1,"a":2},
           "conditions":[{"type":"Ready","status":"True","observedGeneration":0,
           "reason":"R","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}],
           "networkData":{"ips":["1.2.3.4/8"],"interfaceName":""}}]})",
       R"({"devices":[{"driver":"d","pool":"p","device":"x","conditions":[{"type":"Ready",)"
       R"("status":"True","lastTransitionTime":"2026-01-02T03:04:05Z","reason":"R",)"
       R"("message":""}],"data":{"b":1,"a":2},"networkData":{"ips":["1.2.3.4/8"]}}]})"},
  }));
  INFO(row.why);
  CHECK(rendered(row.status) == row.written);
}

TEST_CASE("two statuses are the same if they mean the same", "[dra][claim_status]") {
  auto same = [](std::string_view a, std::string_view b) {
    return same_status(*parse_json(a), *parse_json(b));
  };
  CHECK(same(R"({"reservedFor":[]})", "{}"));
  CHECK(same(R"({"reservedFor":[{"name":"p","uid":"u","resource":"pods"}]})",
             R"({"reservedFor":[{"resource":"pods","name":"p","uid":"u"}]})"));
  CHECK_FALSE(same(R"({"reservedFor":[{"resource":"pods","name":"p","uid":"u"}]})",
                   R"({"reservedFor":[{"resource":"pods","name":"p","uid":"v"}]})"));
}

TEST_CASE("allocated devices are read with and without an allocation", "[dra][claim_status]") {
  CHECK(allocated_devices(*parse_json("{}")).empty());
  CHECK(allocated_devices(*parse_json(R"({"allocation":null})")).empty());
  auto devices = allocated_devices(*parse_json(
      R"({"allocation":{"devices":{"results":[
          {"request":"r/s","driver":"d","pool":"p","device":"channel-0"},
          {"request":"t","driver":"e","pool":"q","device":"daemon-0","adminAccess":true}]}}})"));
  CHECK(devices == std::vector<AllocatedDevice>{{"r/s", "d", "p", "channel-0", false},
                                                {"t", "e", "q", "daemon-0", true}});
}
