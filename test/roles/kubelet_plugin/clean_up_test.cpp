// What is left of claims and domains, and when it goes.
#include "roles/kubelet_plugin/managed_node.hpp"

using namespace nvdra;
using namespace nvdra::roles;
using namespace nvdra::roles::kubelet_plugin;
using namespace nvdra::roles::kubelet_plugin::test;

namespace {

void give_node_to(ManagedNode& node, const std::string& domain) {
  JsonObject labels;
  if (!domain.empty()) labels[domain_label] = domain;
  node.api.set(node_path, {{"metadata", {{"name", "node-a"}, {"labels", std::move(labels)}}}});
}

dra::Checkpoint::Entries dropped(const std::string& uid) {
  dra::Checkpoint checkpoint;
  dra::CheckpointClaim claim;
  claim.state = dra::ClaimState::completed;
  claim.status = channel_status();
  claim.name = uid;
  claim.space = "default";
  checkpoint.put(ClaimUid(uid), claim);
  return checkpoint.entries();
}

}  // namespace

TEST_CASE("a completed claim that is gone is unprepared, and its node label goes with it",
          "[plugin][clean_up]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("a");
  node.pod();
  node.daemon(true);
  REQUIRE(node.prepare("a"));
  node.pass();
  CHECK(node.entry("a"));
  CHECK(node.node_label() == domain_uid);
  node.api.remove("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/a");
  node.pass();
  CHECK_FALSE(node.entry("a"));
  CHECK(node.node_label().empty());
}

TEST_CASE("a claim in use whose entry was lost keeps its file and its node label",
          "[plugin][clean_up]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("a");
  node.pod();
  node.daemon(true);
  REQUIRE(node.prepare("a"));
  const std::string file = cdi::claim_file(ClaimUid("a"));
  REQUIRE(node.run(node.checkpoint.update([](dra::Checkpoint& checkpoint) {
    checkpoint.erase(ClaimUid("a"));
    return ok();
  })));

  SECTION("and gets it back") {
    node.pass();
    REQUIRE(node.entry("a"));
    CHECK(node.entry("a")->state == dra::ClaimState::completed);
    CHECK(node.cdi.get(file));
    CHECK(node.node_label() == domain_uid);
    REQUIRE(node.unprepare("a"));
    CHECK_FALSE(node.cdi.get(file));
    CHECK(node.node_label().empty());
  }
  SECTION("while the API server cannot say whether it is in use") {
    node.api.away = 1000;
    node.pass();
    node.api.away = 0;
    CHECK_FALSE(node.entry("a"));
    CHECK(node.cdi.get(file));
    CHECK(node.node_label() == domain_uid);
  }
  SECTION("but not once it is gone") {
    node.api.remove("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/a");
    node.pass();
    CHECK_FALSE(node.entry("a"));
    CHECK_FALSE(node.cdi.get(file));
    CHECK(node.node_label().empty());
  }
}

TEST_CASE("a node label that no claim needs is removed", "[plugin][clean_up]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  give_node_to(node, domain_uid);
  node.pass();
  CHECK(node.node_label().empty());
}

TEST_CASE("a node label that somebody takes off under a workload is put back",
          "[plugin][clean_up]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("a");
  node.pod();
  node.daemon(true);
  REQUIRE(node.prepare("a"));

  SECTION("as long as its domain lives") {
    give_node_to(node, "");
    REQUIRE(node.run(node.looking_after_domains([&] { return node.node_label() == domain_uid; })));
  }
  SECTION("not for a domain that is being deleted, also when the cache is late to know") {
    if (GENERATE(true, false)) {
      node.domain(domain_uid, "d", nullptr, true);
    } else {
      Json deleting = node.api.at(domain_path("d"));
      deleting.at("metadata").as_object()["deletionTimestamp"] = "2026-01-01T00:00:00Z";
      node.api.set(domain_path("d"), deleting);
    }
    give_node_to(node, "");
    node.keep_node();
    CHECK(node.node_label().empty());
  }
  SECTION("not from another domain") {
    give_node_to(node, other_domain);
    node.keep_node();
    CHECK(node.node_label() == other_domain);
  }
  SECTION("not for a claim that is being unprepared in vain, until it is prepared again") {
    {
      Result<Fd> held = try_lock_file(node.directory.get(), dra::CheckpointStore::lock_name);
      REQUIRE(held);
      REQUIRE_FALSE(node.unprepare("a"));
    }
    REQUIRE(node.entry("a"));
    node.keep_node();
    CHECK(node.node_label().empty());
    REQUIRE(node.prepare("a"));
    node.keep_node();
    CHECK(node.node_label() == domain_uid);
  }
  SECTION("not for claims that have ended") {
    REQUIRE(node.unprepare("a"));
    node.keep_node();
    CHECK(node.node_label().empty());
  }
}

TEST_CASE("after a reboot the label of claims that still exist waits for the kubelet once",
          "[plugin][clean_up]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("a");
  give_node_to(node, domain_uid);
  node.clean_up.spare(dropped("a"));
  node.pass();
  CHECK(node.node_label() == domain_uid);
  node.pass();
  CHECK(node.node_label().empty());
}

TEST_CASE("after a reboot the label of claims that are gone is removed at once",
          "[plugin][clean_up]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  give_node_to(node, domain_uid);
  node.clean_up.spare(dropped("a"));
  node.pass();
  CHECK(node.node_label().empty());
}

TEST_CASE("a directory goes when its domain is gone and no claim refers to it",
          "[plugin][clean_up]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("x", daemon_status(), driver_space);
  REQUIRE(node.prepare("x", driver_space));
  node.pass();
  CHECK(node.has_directory(domain_uid));  // the domain is there

  node.forget_domain("d");
  REQUIRE(node.unprepare("x", driver_space));
  node.pass();
  CHECK(node.has_directory(domain_uid));  // only the cache has forgotten it

  node.api.remove(domain_path("d"));
  node.api.refuse_patches = 1;
  give_node_to(node, domain_uid);
  node.pass();
  CHECK(node.has_directory(domain_uid));  // the label is still to go
  node.pass();
  CHECK(node.node_label().empty());
  CHECK_FALSE(node.has_directory(domain_uid));
}

TEST_CASE("what kept a directory there may go without news", "[plugin][clean_up]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("x", daemon_status(), driver_space);
  REQUIRE(node.prepare("x", driver_space));
  REQUIRE(node.unprepare("x", driver_space));
  node.forget_domain("d");
  // The server still lists the domain, to the pass at the start and to what looks after news.
  const auto gone = [&] {
    if (node.api.count("GET /apis/resource.nvidia.com/v1beta1/computedomains") >= 2)
      node.api.remove(domain_path("d"));
    return !node.has_directory(domain_uid);
  };
  CHECK(node.run(node.looking_after_domains(gone)));
}

TEST_CASE("what kept a directory there is tried again soon at first", "[plugin][clean_up]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  CleanUp patient(node.parts(), node.driver, [] { return 0.0; }, {1ms, 1ms, 1h, 1h});
  node.claim("x", daemon_status(), driver_space);
  REQUIRE(node.prepare("x", driver_space));
  REQUIRE(node.unprepare("x", driver_space));
  node.forget_domain("d");
  node.api.remove(domain_path("d"));
  node.api.away = 12;
  auto gone = [&] { return !node.has_directory(domain_uid); };
  CHECK(node.run(node.looking_after_domains(gone, &patient)));
}

TEST_CASE("a directory goes although its domain went while the domains were not known",
          "[plugin][clean_up]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  CleanUp patient(node.parts(), node.driver, [] { return 0.0; }, {1ms, 1ms, 5ms, 1h});
  node.claim("x", daemon_status(), driver_space);
  REQUIRE(node.prepare("x", driver_space));
  REQUIRE(node.unprepare("x", driver_space));
  node.forget_domain("d");
  node.api.remove(domain_path("d"));
  node.api.away = 2;
  bool unknown = false;
  auto gone = [&] {
    if (!node.domains.trouble().empty()) unknown = true;
    return !node.has_directory(domain_uid);
  };
  CHECK(node.run(node.beside_domains(node.looking_after_domains(gone, &patient))));
  CHECK(unknown);
}

TEST_CASE("a directory that a claim refers to stays, also when its domain is gone",
          "[plugin][clean_up]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("x", daemon_status(), driver_space);
  REQUIRE(node.prepare("x", driver_space));
  node.forget_domain("d");
  node.api.remove(domain_path("d"));
  node.pass();
  CHECK(node.has_directory(domain_uid));
}
