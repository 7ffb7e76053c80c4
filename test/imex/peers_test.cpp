#include "imex/peers.hpp"

#include "catch.hpp"
#include "fake/temp_dir.hpp"
#include "imex/hosts_file.hpp"

#include <sys/stat.h>

using namespace nvdra;
using namespace nvdra::imex;

namespace {

const std::string uid = "0f8fad5b-d9cb-469f-a165-70867728950e";
const std::string other_uid = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";

Peer peer(const char* node, const char* address, std::int64_t slot) {
  return {NodeName(node), address, slot};
}

}  // namespace

TEST_CASE("a domain's hash is FNV-1a in label-safe digits", "[imex][peers]") {
  CHECK(domain_hash("") == "65bb57b6b5");  // of 2166136261, the hash of nothing
  CHECK(domain_hash(uid) == domain_hash(uid));
  CHECK(domain_hash(uid) != domain_hash(other_uid));
  CHECK_THAT(domain_hash(uid), Catch::Matches("[456789bcdf]{1,10}"));
}

TEST_CASE("the nodes files of two domains have no line in common", "[imex][peers]") {
  CHECK(slot_name("8585d4965d", 7) == "compute-domain-daemon-8585d4965d-0007");
  const std::string file = render_slot_names(uid, 2);
  const std::string hash = domain_hash(uid);
  CHECK(file ==
        "compute-domain-daemon-" + hash + "-0000\ncompute-domain-daemon-" + hash + "-0001\n");
  CHECK(render_slot_names(other_uid, 18).find(hash) == std::string::npos);
}

TEST_CASE("every slot has an address, unused ones the one where nobody listens", "[imex][peers]") {
  const Slots slots = place_peers({peer("b", "10.0.0.2", 2), peer("a", "10.0.0.1", 0)}, uid, 4);
  REQUIRE(slots.all.size() == 4);
  CHECK(slots.findings.empty());
  CHECK(slots.all[0] == Slot{slot_name(domain_hash(uid), 0), "10.0.0.1"});
  CHECK(slots.all[1].address == "127.0.0.2");
  CHECK(slots.all[2].address == "10.0.0.2");
  CHECK(slots.all[3].address == "127.0.0.2");
}

TEST_CASE("members without a place are named and the others keep theirs", "[imex][peers]") {
  const Slots slots =
      place_peers({peer("a", "10.0.0.1", 0), peer("b", "10.0.0.2", 0), peer("c", "10.0.0.3", 2),
                   peer("d", "10.0.0.4", -1), peer("e", "x y", 1)},
                  uid, 2);
  CHECK(slots.all[0].address == "10.0.0.1");
  CHECK(slots.all[1].address == "127.0.0.2");
  REQUIRE(slots.findings.size() == 4);
  CHECK(slots.findings[0] == "nodes a and b both have index 0");
  CHECK(slots.findings[1] == "node c has index 2, which is outside 0 to 1");
  CHECK_THAT(slots.findings[2], Catch::Contains("node d has index -1"));
  CHECK_THAT(slots.findings[3], Catch::Contains("node e has the address"));
}

TEST_CASE("what is no address takes nobody's name away", "[imex][peers]") {
  const char* odd = GENERATE("", "x y", "somebody", "10.0.0.256", "10.0.0.1\n10.0.0.2 z", "0.0.0.0",
                             "::", "fe80::1%eth0", "10.0.0.1#");
  INFO(odd);
  const Slots slots = place_peers({peer("a", odd, 0), peer("b", "fd00::2", 1)}, uid, 2);
  CHECK(slots.all[0].address == "127.0.0.2");
  CHECK(slots.all[1].address == "fd00::2");
  REQUIRE(slots.findings.size() == 1);
  CHECK_THAT(slots.findings[0], Catch::Contains("node a has the address"));
}

TEST_CASE("editing the hosts file keeps foreign lines byte by byte", "[imex][hosts]") {
  const std::string foreign =
      "# Kubernetes-managed hosts file.\n"
      "127.0.0.1\tlocalhost\n"
      "  10.1.2.3   computedomain-daemon-0f8fad5b-xyz  \n"
      "10.9.9.9 db # see compute-domain-daemon-0000\n"
      "\n";
  const std::string old =
      "10.0.0.7\tcompute-domain-daemon-0003\n"
      "# Compute Domain Daemon mappings\n"
      "10.0.0.8\tcompute-domain-daemon-8585d4965d-0000\n";
  const std::vector<Slot> slots{{"compute-domain-daemon-f-0000", "10.0.0.1"},
                                {"compute-domain-daemon-f-0001", "127.0.0.2"}};
  const std::string ours =
      "10.0.0.1\tcompute-domain-daemon-f-0000\n127.0.0.2\tcompute-domain-daemon-f-0001\n";
  CHECK(edit_hosts(foreign + old, slots) == foreign + ours);
  CHECK(edit_hosts(old + foreign, slots) == foreign + ours);
  CHECK(edit_hosts(foreign + ours, slots) == foreign + ours);
  CHECK(edit_hosts("127.0.0.1 localhost", slots) == "127.0.0.1 localhost\n" + ours);
}

TEST_CASE("the hosts file is changed in place, and only when it must be", "[imex][hosts]") {
  const fake::TempDir files;
  files.write("hosts", "127.0.0.1 localhost\n10.0.0.1\tcompute-domain-daemon-0000\n");
  struct stat before{}, after{};
  REQUIRE(::stat(files.path("hosts").c_str(), &before) == 0);
  const std::vector<Slot> slots{{"compute-domain-daemon-f-0000", "10.0.0.1"}};
  const Result<bool> first = update_hosts(files.path("hosts"), slots);
  REQUIRE(first);
  CHECK(*first);
  CHECK(files.read("hosts") == "127.0.0.1 localhost\n10.0.0.1\tcompute-domain-daemon-f-0000\n");
  const Result<bool> again = update_hosts(files.path("hosts"), slots);
  REQUIRE(again);
  CHECK_FALSE(*again);
  REQUIRE(::stat(files.path("hosts").c_str(), &after) == 0);
  CHECK(before.st_ino == after.st_ino);
  const Result<bool> shorter = update_hosts(files.path("hosts"), {});
  REQUIRE(shorter);
  CHECK(files.read("hosts") == "127.0.0.1 localhost\n");
}

TEST_CASE("a hosts file that cannot be written is one sentence with its path", "[imex][hosts]") {
  const fake::TempDir files;
  const Result<bool> done = update_hosts(files.path(), {{"n", "10.0.0.1"}});
  REQUIRE_FALSE(done);
  CHECK_THAT(done.error().text(), Catch::Contains(files.path()) && Catch::Contains("by name"));
}
