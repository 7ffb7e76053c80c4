#include "roles/kubelet_plugin/ledger.hpp"

#include "base/time.hpp"
#include "catch.hpp"
#include "roles/kubelet_plugin/claims.hpp"
#include "roles/kubelet_plugin/devices.hpp"

using namespace nvdra;
using namespace nvdra::roles;
using namespace nvdra::roles::kubelet_plugin;
using namespace nvdra::roles::kubelet_plugin::test;
using dra::Checkpoint;
using dra::CheckpointClaim;
using dra::ClaimState;

namespace {

const auto now = std::chrono::system_clock::time_point{} + std::chrono::hours(24 * 365 * 50);

void finish(Checkpoint& checkpoint, const Begin& claim) {
  REQUIRE(std::get<Begun>(begin(checkpoint, claim, now)) == Begun::started);
  REQUIRE_FALSE(
      complete(checkpoint, claim.claim, prepared_groups(claim.claim.uid, claim.groups, true)));
}

CheckpointClaim aborted(const Json& status, std::chrono::seconds ago) {
  CheckpointClaim entry;
  entry.state = ClaimState::aborted;
  entry.status = status;
  entry.aborted_at = rfc3339(now - ago);
  return entry;
}

Trouble trouble(Attempt<Begun> attempt) {
  Trouble* found = trouble_of(attempt);
  REQUIRE(found);
  return *found;
}

}  // namespace

TEST_CASE("beginning writes the intent once", "[plugin][ledger]") {
  Checkpoint checkpoint;
  Begin claim = wanted("a");
  CHECK(std::get<Begun>(begin(checkpoint, claim, now)) == Begun::started);
  auto changes = checkpoint.changes();
  CHECK(checkpoint.find(ClaimUid("a"))->state == ClaimState::started);
  CHECK(std::get<Begun>(begin(checkpoint, claim, now)) == Begun::started);
  CHECK(checkpoint.changes() == changes);
}

TEST_CASE("a completed claim is answered from its entry", "[plugin][ledger]") {
  Checkpoint checkpoint;
  finish(checkpoint, wanted("a"));
  CHECK(std::get<Begun>(begin(checkpoint, wanted("a"), now)) == Begun::completed);
  auto prepared = checkpoint.find(ClaimUid("a"))->prepared();
  REQUIRE(prepared.size() == 1);
  CHECK(prepared[0].cdi_ids ==
        std::vector<std::string>{"k8s.compute-domain.nvidia.com/claim=a-channel-0"});
}

TEST_CASE("a device of another completed claim is refused until that one is unprepared",
          "[plugin][ledger]") {
  Checkpoint checkpoint;
  finish(checkpoint, wanted("a"));
  Trouble held = trouble(begin(checkpoint, wanted("b"), now));
  CHECK(held.kind == Trouble::Kind::retry);
  CHECK_THAT(
      held.text,
      Catch::Contains("requested device channel-0 is already allocated to different claim a"));
  CHECK_FALSE(checkpoint.find(ClaimUid("b")));
  checkpoint.erase(ClaimUid("a"));
  CHECK(std::get<Begun>(begin(checkpoint, wanted("b"), now)) == Begun::started);
}

TEST_CASE("a claim that is only started does not hold its channel", "[plugin][ledger]") {
  Checkpoint checkpoint;
  REQUIRE(std::get<Begun>(begin(checkpoint, wanted("a"), now)) == Begun::started);
  CHECK(std::get<Begun>(begin(checkpoint, wanted("b"), now)) == Begun::started);
}

TEST_CASE("a claim with admin access does not take a channel from its holder", "[plugin][ledger]") {
  Checkpoint checkpoint;
  finish(checkpoint, wanted("a"));
  Json admin_result = result();
  admin_result.get_object()["adminAccess"] = true;
  Json admin = status(JsonArray{admin_result},
                      JsonArray{config(parameters(channel_config_kind, domain_uid))});
  CHECK(std::get<Begun>(begin(checkpoint, wanted("b", admin), now)) == Begun::started);
}

TEST_CASE("a legacy entry without an allocation holds nothing and breaks nothing",
          "[plugin][ledger]") {
  Checkpoint checkpoint;
  CheckpointClaim legacy;
  legacy.state = ClaimState::completed;
  checkpoint.put(ClaimUid("old"), legacy);
  CHECK(std::get<Begun>(begin(checkpoint, wanted("a"), now)) == Begun::started);
}

TEST_CASE("a claim that was given up is refused until it changes or 90 s have passed",
          "[plugin][ledger]") {
  Checkpoint checkpoint;
  checkpoint.put(ClaimUid("a"), aborted(channel_status(), std::chrono::seconds(89)));
  Trouble refused = trouble(begin(checkpoint, wanted("a"), now));
  CHECK(refused.kind == Trouble::Kind::permanent);
  CHECK_THAT(refused.text, Catch::Contains("claim prepare was already aborted"));

  Json reserved_again = channel_status();
  reserved_again.at("reservedFor").at(0).get_object()["uid"] = "another pod";
  CHECK(std::get<Begun>(begin(checkpoint, wanted("a", reserved_again), now)) == Begun::started);

  checkpoint.put(ClaimUid("a"), aborted(channel_status(), std::chrono::seconds(90)));
  CHECK(std::get<Begun>(begin(checkpoint, wanted("a"), now)) == Begun::started);
}

TEST_CASE("a prepare that finishes after the unprepare changes nothing", "[plugin][ledger]") {
  Checkpoint checkpoint;
  Begin claim = wanted("a");
  REQUIRE(std::get<Begun>(begin(checkpoint, claim, now)) == Begun::started);
  checkpoint.put(ClaimUid("a"), aborted(channel_status(), std::chrono::seconds(0)));
  auto late = complete(checkpoint, claim.claim, {});
  REQUIRE(late);
  CHECK(late->kind == Trouble::Kind::permanent);
  CHECK(checkpoint.find(ClaimUid("a"))->state == ClaimState::aborted);
  checkpoint.erase(ClaimUid("a"));
  CHECK(complete(checkpoint, claim.claim, {}));
}

TEST_CASE("what undoing means follows from the entry", "[plugin][ledger]") {
  CheckpointClaim entry;
  CHECK(undo_of(nullptr) == Undo::nothing);
  entry.state = ClaimState::started;
  CHECK(undo_of(&entry) == Undo::started);
  entry.state = ClaimState::completed;
  CHECK(undo_of(&entry) == Undo::completed);
  entry.state = ClaimState::aborted;
  CHECK(undo_of(&entry) == Undo::nothing);
  entry.state = ClaimState::unknown;
  CHECK(undo_of(&entry) == Undo::completed);
}

TEST_CASE("an aborted entry from before the clock was set back does not bind for ever",
          "[plugin][ledger]") {
  Checkpoint checkpoint;
  checkpoint.put(ClaimUid("soon"), aborted(channel_status(), std::chrono::seconds(-89)));
  checkpoint.put(ClaimUid("later"), aborted(channel_status(), std::chrono::hours(-24 * 365)));
  CheckpointClaim last = aborted(channel_status(), std::chrono::seconds(0));
  last.aborted_at = "9999-12-31T23:59:59Z";
  checkpoint.put(ClaimUid("last"), std::move(last));
  CHECK(expired(checkpoint, now) == std::vector{ClaimUid("last"), ClaimUid("later")});
}

TEST_CASE("only aborted entries whose lifetime is over expire", "[plugin][ledger]") {
  Checkpoint checkpoint;
  finish(checkpoint, wanted("done"));
  checkpoint.put(ClaimUid("fresh"), aborted(channel_status(), std::chrono::seconds(89)));
  checkpoint.put(ClaimUid("old"), aborted(channel_status(), std::chrono::seconds(90)));
  CheckpointClaim undated = aborted(channel_status(), std::chrono::seconds(0));
  undated.aborted_at.clear();
  checkpoint.put(ClaimUid("undated"), undated);
  CHECK(expired(checkpoint, now) == std::vector<ClaimUid>{ClaimUid("old"), ClaimUid("undated")});
}
