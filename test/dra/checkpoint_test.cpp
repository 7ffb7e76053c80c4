#include "dra/checkpoint.hpp"

#include "catch.hpp"
#include "dra/checksum.hpp"
#include "fake/temp_dir.hpp"

#include <chrono>
#include <fstream>
#include <iostream>

using namespace nvdra;
using namespace nvdra::dra;

namespace {

const ClaimUid daemon_uid("1b4e28ba-2fa1-11d2-883f-0016d3cca427");
const ClaimUid aborted_uid("2c5ea4c0-4067-11e9-8bad-9b1deb4d3b7d");
const std::string boot = "5a0a3c5e-0a68-4a3c-9d52-1a2b3c4d5e6f";

const std::string empty_text = R"({"checksum":1083090442,"v1":{},"v2":{"checksum":4135050411,)"
                               R"("nodeBootID":"5a0a3c5e-0a68-4a3c-9d52-1a2b3c4d5e6f"}})";

std::string data(const std::string& name) {
  std::ifstream file(NVDRA_DRA_DATA "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// A file around the inside of v2 and what follows it, with checksums that fit.
std::string file_of(const std::string& v1, const std::string& v2, const std::string& rest = "") {
  std::string inner = "{\"checksum\":0" + v2 + "}";
  std::string outer = "{\"checksum\":0,\"v1\":" + v1 + rest + "}";
  return "{\"checksum\":" + std::to_string(checksum(outer)) + ",\"v1\":" + v1 +
         ",\"v2\":{\"checksum\":" + std::to_string(checksum(inner)) + v2 + "}" + rest + "}";
}

CheckpointClaim daemon_claim() {
  CheckpointClaim claim;
  claim.state = ClaimState::completed;
  claim.name = "c1";
  claim.space = "ns1";
  claim.status = *parse_json(R"({
    "reservedFor":[{"name":"p","resource":"pods","uid":"7c9e6679-7425-40de-944b-e07fc1f90ae7"}],
    "allocation":{
      "nodeSelector":{"nodeSelectorTerms":[{"matchFields":[
        {"key":"metadata.name","operator":"In","values":["node-a"]}]}]},
      "devices":{
        "config":[{"source":"FromClaim","requests":["daemon"],"opaque":{
          "driver":"compute-domain.nvidia.com","parameters":{
            "apiVersion":"resource.nvidia.com/v1beta1",
            "domainID":"0f8fad5b-d9cb-469f-a165-70867728950e",
            "kind":"ComputeDomainDaemonConfig"}}}],
        "results":[{"request":"daemon","driver":"compute-domain.nvidia.com","pool":"node-a",
                    "device":"daemon-0"}]}}})");
  PreparedDevice device{{"daemon"},
                        "node-a",
                        "daemon-0",
                        {"k8s.compute-domain.nvidia.com/device=all",
                         "k8s.compute-domain.nvidia.com/claim=" + daemon_uid.value + "-daemon-0"}};
  claim.groups = {{{{CheckpointDevice::Kind::daemon, 0, device}},
                   "daemon",
                   DomainUid("0f8fad5b-d9cb-469f-a165-70867728950e")}};
  return claim;
}

}  // namespace

TEST_CASE("an empty checkpoint is written byte for byte as the original writes it",
          "[dra][checkpoint]") {
  Checkpoint checkpoint;
  checkpoint.set_boot_id(boot);
  CHECK(render(checkpoint) == empty_text);
  Result<Checkpoint> parsed = parse_checkpoint(empty_text);
  REQUIRE(parsed);
  CHECK(parsed->entries().empty());
  CHECK(parsed->boot_id() == boot);
}

TEST_CASE("a completed and an aborted claim are written byte for byte as the original does",
          "[dra][checkpoint]") {
  CheckpointClaim aborted;
  aborted.state = ClaimState::aborted;
  aborted.name = "c2";
  aborted.space = "ns1";
  aborted.aborted_at = "2026-01-02T03:04:05Z";
  Checkpoint checkpoint;
  checkpoint.set_boot_id(boot);
  checkpoint.put(aborted_uid, aborted);
  checkpoint.put(daemon_uid, daemon_claim());
  CHECK(render(checkpoint) == data("checkpoint_two_claims.json"));
}

TEST_CASE("the original's checkpoint is understood, and written back unchanged",
          "[dra][checkpoint]") {
  std::string text = data("checkpoint_two_claims.json");
  Result<Checkpoint> parsed = parse_checkpoint(text);
  REQUIRE(parsed);
  CHECK(parsed->changes() == 0);
  CHECK(render(*parsed) == text);

  const CheckpointClaim* claim = parsed->find(daemon_uid);
  REQUIRE(claim);
  CHECK(claim->state == ClaimState::completed);
  CHECK(claim->name == "c1");
  CHECK(claim->space == "ns1");
  CHECK(claim->groups == daemon_claim().groups);
  CHECK(claim->prepared() == Prepared{daemon_claim().groups[0].devices[0].device});
  CHECK(text_or_empty(claim->status, "allocation/nodeSelector") == "");
  CHECK(array_or_empty(claim->status, "reservedFor").size() == 1);

  const CheckpointClaim* aborted = parsed->find(aborted_uid);
  REQUIRE(aborted);
  CHECK(aborted->state == ClaimState::aborted);
  CHECK(aborted->aborted_at == "2026-01-02T03:04:05Z");
  CHECK(parsed->find(ClaimUid("other")) == nullptr);
}

TEST_CASE("a started claim is in v2 only", "[dra][checkpoint]") {
  Checkpoint checkpoint;
  CheckpointClaim claim = daemon_claim();
  claim.state = ClaimState::started;
  claim.groups.clear();
  checkpoint.put(daemon_uid, claim);
  std::string text = render(checkpoint);
  CHECK(text.starts_with(R"({"checksum":1083090442,"v1":{},"v2":)"));
  CHECK(text.find(R"({"checkpointState":"PrepareStarted","status":{"allocation")") !=
        std::string::npos);
  REQUIRE(parse_checkpoint(text));
  CHECK(parse_checkpoint(text)->find(daemon_uid)->state == ClaimState::started);

  checkpoint.erase(daemon_uid);
  CHECK(checkpoint.changes() == 2);
  CHECK(render(checkpoint) == R"({"checksum":1083090442,"v1":{},"v2":{"checksum":4166374854}})");
}

TEST_CASE("a channel without devices to inject is stored with an empty list of ids",
          "[dra][checkpoint]") {
  CheckpointClaim claim;
  claim.state = ClaimState::completed;
  claim.groups = {{{{CheckpointDevice::Kind::channel, 0, {{"channel"}, "n", "channel-0", {}}}},
                   "channel",
                   DomainUid("d")}};
  Checkpoint checkpoint;
  checkpoint.put(daemon_uid, claim);
  std::string text = render(checkpoint);
  CHECK(text.find(R"("status":{},"preparedDevices":[{"devices":[{"channel":{"info":{"id":0},)"
                  R"("device":{"Requests":["channel"],"PoolName":"n","DeviceName":"channel-0",)"
                  R"("CDIDeviceIDs":[]}},"daemon":null}],"configState":{"Type":"channel",)"
                  R"("ComputeDomain":"d"}}])") != std::string::npos);
  CHECK(parse_checkpoint(text)->find(daemon_uid)->groups == claim.groups);
}

TEST_CASE("a checkpoint with only the older layout is migrated as completed claims",
          "[dra][checkpoint]") {
  std::string text = data("checkpoint_two_claims.json");
  std::size_t v2 = text.find(",\"v2\":");
  text = text.substr(0, v2) + "}";
  Result<Checkpoint> parsed = parse_checkpoint(text);
  REQUIRE(parsed);
  REQUIRE(parsed->entries().size() == 1);
  const CheckpointClaim* claim = parsed->find(daemon_uid);
  CHECK(claim->state == ClaimState::completed);
  CHECK(claim->groups == daemon_claim().groups);
  CHECK(claim->name.empty());
  CHECK(parsed->boot_id().empty());
  // The v1 copy is the old file's, so a downgrade finds what it wrote.
  CHECK(render(*parsed).substr(0, v2) == text.substr(0, v2));
}

TEST_CASE("the oldest layout is migrated without a status", "[dra][checkpoint]") {
  Result<Checkpoint> parsed = parse_checkpoint(data("checkpoint_oldest.json"));
  REQUIRE(parsed);
  const CheckpointClaim* claim = parsed->find(daemon_uid);
  REQUIRE(claim);
  CHECK(claim->state == ClaimState::completed);
  CHECK(claim->status == Json(JsonObject{}));
  REQUIRE(claim->prepared().size() == 1);
  CHECK(claim->prepared()[0] ==
        PreparedDevice{{"channel"},
                       "node-a",
                       "channel-0",
                       {"k8s.compute-domain.nvidia.com/claim=" + daemon_uid.value + "-channel-0"}});
  CHECK(claim->groups[0].domain.value == "0f8fad5b-d9cb-469f-a165-70867728950e");
  CHECK(parse_checkpoint(render(*parsed))->find(daemon_uid)->groups == claim->groups);
}

TEST_CASE("whatever damaged the file, it is found and told", "[dra][checkpoint]") {
  const std::string good = data("checkpoint_two_claims.json");
  struct Row {
    const char* why;
    std::string text;
    std::string told;
  };
  const Row row = GENERATE_COPY(values<Row>({
      {"zero bytes", "", "the file has 0 bytes and no content"},
      {"only white space", " \n", "no content"},
      {"no JSON", "hello", "byte 0: expected '{'"},
      {"an empty object", "{}", "no checksum in the file"},
      {"a checksum that is no number", R"({"checksum":"1"})", "no checksum in the file"},
      {"a negative checksum", R"({"checksum":-1})", "no checksum in the file"},
      {"cut off", good.substr(0, good.size() / 2), "expected a complete value"},
      {"one byte short", good.substr(0, good.size() - 1), "expected '}' or ','"},
      {"v1 changed", replaced(good, "node-a", "node-b"), "of the file does not fit"},
      {"v2 changed", replaced(good, "\"c1\"", "\"c9\""), "of v2 does not fit"},
      {"checksum of v2 changed", replaced(good, "4167885747", "4167885748"), "of v2 does not fit"},
      {"checksum of the file changed", replaced(good, "298085628", "298085629"),
       "checksum 298085629 of the file does not fit its content, which has 298085628"},
      {"claims are no object", file_of("{}", ",\"preparedClaims\":[]"), "preparedClaims: byte 0"},
  }));
  INFO(row.why);
  Result<Checkpoint> parsed = parse_checkpoint(row.text);
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().code == Errc::corrupt);
  INFO(parsed.error().text());
  CHECK(parsed.error().text().find(row.told) != std::string::npos);
}

TEST_CASE("entries and fields that we do not know survive a change beside them",
          "[dra][checkpoint]") {
  std::string pending =
      R"("0a":{"checkpointState":"PreparePending","status":{"fresh":[1.50]},"name":"n","more":{}})";
  std::string completed =
      R"("0b":{"checkpointState":"PrepareCompleted","status":{"x":1},"shape":"odd","name":"n"})";
  std::string broken = R"("0c":[1,2])";
  std::string unset = R"("0d":{"status":{}})";
  std::string text = file_of("{\"preparedClaims\":{\"0b\":{\"status\":{\"x\":1}}}}",
                             ",\"preparedClaims\":{" + pending + "," + completed + "," + broken +
                                 "," + unset + "},\"nodeBootID\":\"b\",\"epoch\":7",
                             ",\"hint\":\"<raw>\"");
  Result<Checkpoint> parsed = parse_checkpoint(text);
  REQUIRE(parsed);
  CHECK(render(*parsed) == text);
  CHECK(parsed->find(ClaimUid("0a"))->state == ClaimState::unknown);
  CHECK(parsed->find(ClaimUid("0a"))->state_text == "PreparePending");
  CHECK(parsed->find(ClaimUid("0c"))->state == ClaimState::unknown);
  CHECK(parsed->find(ClaimUid("0c"))->state_text == "not an object");
  CHECK(parsed->find(ClaimUid("0d"))->state_text == "");

  parsed->put(daemon_uid, daemon_claim());
  std::string changed = render(*parsed);
  for (const std::string& piece : {pending, completed, broken, unset})
    CHECK(changed.find(piece) != std::string::npos);
  CHECK(changed.find("\"epoch\":7") != std::string::npos);
  CHECK(changed.ends_with(",\"hint\":\"<raw>\"}"));
  CHECK(parse_checkpoint(changed)->entries().size() == 5);
}

TEST_CASE("a newer layout beside ours is accepted, and dropped by the first change",
          "[dra][checkpoint]") {
  std::string v3 = R"(,"v3":{"checksum":5,"claims":[]})";
  std::string counted = file_of("{}", "", v3);
  // A release that leaves v3 out of the file's checksum, as v2 is left out.
  std::string left_out = file_of("{}", "");
  left_out.insert(left_out.size() - 1, v3);
  for (const std::string& text : {counted, left_out}) {
    Result<Checkpoint> parsed = parse_checkpoint(text);
    REQUIRE(parsed);
    parsed->set_boot_id(boot);
    CHECK(render(*parsed) == empty_text);
  }
}

TEST_CASE("what a boot id means for the entries", "[dra][checkpoint]") {
  struct Row {
    const char* why;
    std::string stored;
    Boot expected;
    std::size_t kept;
  };
  const Row row = GENERATE(values<Row>({
      {"the same boot", "boot-1", Boot::same, 1},
      {"a file of a release that stored none", "", Boot::unrecorded, 1},
      {"the node has booted since", "boot-0", Boot::other, 0},
  }));
  INFO(row.why);
  Checkpoint checkpoint;
  checkpoint.put(daemon_uid, daemon_claim());
  checkpoint.set_boot_id(row.stored);
  Adopted adopted = adopt_boot_id(checkpoint, "boot-1");
  CHECK(adopted.boot == row.expected);
  CHECK(checkpoint.entries().size() == row.kept);
  CHECK(adopted.dropped.size() == 1 - row.kept);
  CHECK(checkpoint.boot_id() == "boot-1");
}

TEST_CASE("the boot id is read without white space", "[dra][checkpoint]") {
  fake::TempDir dir;
  dir.write("boot_id", "  beef-01\n");
  CHECK(*read_boot_id(dir.path("boot_id")) == "beef-01");
  dir.write("boot_id", "\n");
  CHECK_FALSE(read_boot_id(dir.path("boot_id")));
  CHECK_FALSE(read_boot_id(dir.path("none")));
  CHECK(read_boot_id()->size() == 36);
}

TEST_CASE("how long 500 claims take", "[dra][checkpoint][.figure]") {
  Checkpoint checkpoint;
  for (int i = 0; i < 500; ++i)
    checkpoint.put(ClaimUid("1b4e28ba-2fa1-11d2-883f-" + std::to_string(100000000000 + i)),
                   daemon_claim());
  auto begin = std::chrono::steady_clock::now();
  std::string text;
  for (int i = 0; i < 20; ++i) {
    Checkpoint changed = checkpoint;
    changed.put(daemon_uid, daemon_claim());
    text = render(changed);
  }
  auto rendered = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) CHECK(parse_checkpoint(text));
  auto parsed = std::chrono::steady_clock::now();
  auto micros = [](auto length) {
    return std::chrono::duration_cast<std::chrono::microseconds>(length).count() / 20;
  };
  std::cout << text.size() << " bytes: render " << micros(rendered - begin) << " us, parse "
            << micros(parsed - rendered) << " us\n";
}
