#include "roles/daemon/moves.hpp"

#include "catch.hpp"
#include "roles/common/names.hpp"
#include "roles/daemon/arrangement.hpp"
#include "roles/daemon/people.hpp"
#include "roles/daemon/verdict.hpp"

using namespace nvdra;
using namespace nvdra::roles;
using namespace nvdra::roles::daemon;
using namespace nvdra::roles::daemon::test;

namespace {

const Patch& patch_of(const Move& move) {
  REQUIRE(std::holds_alternative<Patch>(move));
  return std::get<Patch>(move);
}

std::string stuck(const Move& move) {
  REQUIRE(std::holds_alternative<Stuck>(move));
  return std::get<Stuck>(move).sentence;
}

std::string operations(const Move& move) {
  std::string text;
  for (const Json& operation : patch_of(move).operations)
    text += std::string(text.empty() ? "" : "; ") + std::string(text_or_empty(operation, "op")) +
            " " + std::string(text_or_empty(operation, "path"));
  return text;
}

Move move_at(const k8s::Object& clique, bool ready = false, bool take_over = true) {
  return next_move(&clique, clique_place(), self("a", "10.0.0.1"), ready, take_over);
}

}  // namespace

TEST_CASE("the first daemon makes the clique and joins it in one request", "[daemon][moves]") {
  const Move move = next_move(nullptr, clique_place(), self("a", "10.0.0.1"), false, true);
  REQUIRE(std::holds_alternative<Create>(move));
  const Json& made = std::get<Create>(move).object;
  CHECK(text_or_empty(made, "metadata/name") == domain_uid + "." + clique_id);
  CHECK(domain_of(k8s::Object(made)).value == domain_uid);
  CHECK(clique_of(k8s::Object(made)).value == clique_id);
  const Json& owner = array_or_empty(made, "metadata/ownerReferences").at(0);
  CHECK(to_text(owner) == R"({"apiVersion":"v1","kind":"Pod","name":"pod-a","uid":"uid-a"})");
  const Members members = read_members(made, MemberList::clique_daemons);
  REQUIRE(members.all.size() == 1);
  CHECK(members.all[0].index == 0);
  CHECK_FALSE(members.all[0].ready);
}

TEST_CASE("a daemon joins with the lowest free index, unless somebody has joined meanwhile",
          "[daemon][moves]") {
  const k8s::Object clique =
      clique_with({entry("b", "10.0.0.2", 0, true), entry("c", "10.0.0.3", 2)});
  const Move move = move_at(clique);
  CHECK(patch_of(move).what == "join with index 1");
  CHECK(operations(move) ==
        "test /metadata/ownerReferences; add /daemons/-; add /metadata/ownerReferences/-");
  CHECK(patch_of(move).operations.at(0).at("value") ==
        *find(clique.json(), "metadata/ownerReferences"));
  CHECK(patch_of(move).crowd == 1);
  // Without owners, or as one of them already, the version is all there is.
  for (const std::vector<std::string>& owners : {std::vector<std::string>{}, {"uid-a", "uid-b"}})
    CHECK_THAT(operations(move_at(clique_with({entry("b", "10.0.0.2", 0)}, owners))),
               Catch::StartsWith("test /metadata/resourceVersion; add /daemons/-"));
}

TEST_CASE("the daemon of a nineteenth node is told that all slots are taken, and by whom",
          "[daemon][moves]") {
  std::vector<Json> entries;
  for (int i = 0; i < 18; ++i)
    entries.push_back(entry("n" + std::to_string(i), "10.0.0." + std::to_string(i + 10), i));
  const std::string sentence = stuck(move_at(clique_with(entries)));
  CHECK_THAT(sentence, Catch::Contains("all 18 slots of ComputeDomainClique") &&
                           Catch::Contains("n0, n1, ") && Catch::Contains("node a cannot join") &&
                           Catch::Contains("MAX_NODES_PER_IMEX_DOMAIN"));
}

TEST_CASE("an entry that is there and says what it shall say is left alone", "[daemon][moves]") {
  const k8s::Object clique = clique_with({entry("a", "10.0.0.1", 0, true)}, {"uid-a"});
  CHECK(std::holds_alternative<Settled>(move_at(clique, true)));
  CHECK(operations(move_at(clique, false)) == "test /daemons/0/nodeName; add /daemons/0/status");
}

TEST_CASE("a new pod takes the entry of its node over with its index, and is NotReady",
          "[daemon][moves]") {
  const k8s::Object clique =
      clique_with({entry("b", "10.0.0.2", 0), entry("a", "10.0.0.9", 1, true)});
  const Move move = move_at(clique, true);
  CHECK(operations(move) ==
        "test /daemons/1/nodeName; replace /daemons/1; add "
        "/metadata/ownerReferences/-");
  const Json& written = *find(patch_of(move).operations.at(1), "value");
  CHECK(to_text(written) == to_text(entry("a", "10.0.0.1", 1)));
}

TEST_CASE("an older pod does not fight for an entry that a newer one has taken",
          "[daemon][moves]") {
  const k8s::Object clique = clique_with({entry("a", "10.0.0.9", 1, true)});
  const Move move = move_at(clique, true, false);
  REQUIRE(std::holds_alternative<Stuck>(move));
  CHECK(std::get<Stuck>(move).another_pod);
  CHECK(std::holds_alternative<Settled>(last_move(&clique, clique_place(), self("a", "10.0.0.1"))));
}

TEST_CASE("a pod that reuses the address of another one's entry is not taken for it",
          "[daemon][moves]") {
  const k8s::Object clique = clique_with({entry("b", "10.0.0.1", 0, true)});
  CHECK(patch_of(move_at(clique)).what == "join with index 1");
  CHECK(std::holds_alternative<Settled>(last_move(&clique, clique_place(), self("a", "10.0.0.1"))));
}

TEST_CASE("of two members with one index the later one takes another", "[daemon][moves]") {
  const k8s::Object later =
      clique_with({entry("b", "10.0.0.2", 0), entry("a", "10.0.0.1", 0, true)}, {"uid-a"});
  CHECK(patch_of(move_at(later, true)).what == "take index 1 instead of 0");
  CHECK_THAT(operations(move_at(later, true)), Catch::StartsWith("test /metadata/resourceVersion"));
  const k8s::Object first =
      clique_with({entry("a", "10.0.0.1", 0, true), entry("b", "10.0.0.2", 0)}, {"uid-a"});
  CHECK(std::holds_alternative<Settled>(move_at(first, true)));
}

TEST_CASE("an index outside the slots is given up", "[daemon][moves]") {
  const int bad = GENERATE(-1, 18, 4000);
  const k8s::Object clique = clique_with({entry("a", "10.0.0.1", bad)}, {"uid-a"});
  CHECK_THAT(patch_of(move_at(clique)).what, Catch::StartsWith("take index 0 instead of"));
}

TEST_CASE("a clique of another domain under our name is refused with the label",
          "[daemon][moves]") {
  const k8s::Object clique = clique_with({}, {}, "1b4e28ba-2fa1-11d2-883f-0016d3cca427");
  CHECK_THAT(stuck(move_at(clique)), Catch::Contains("1b4e28ba") && Catch::Contains("delete it"));
  CHECK(std::holds_alternative<Settled>(last_move(&clique, clique_place(), self("a", "10.0.0.1"))));
}

TEST_CASE("labels of the own clique that somebody has edited are restored, others are kept",
          "[daemon][moves]") {
  Json json = clique_with({entry("a", "10.0.0.1", 0, true)}, {"uid-a"}).json();
  json.at("metadata").at("labels").as_object()["team"] = "x";
  REQUIRE(std::holds_alternative<Settled>(move_at(k8s::Object(json), true)));
  const std::string_view label = GENERATE(domain_label, clique_label);
  SECTION("changed") {
    json.at("metadata").at("labels").as_object()[label] = "other";
  }
  SECTION("removed") {
    json.at("metadata").at("labels").as_object().erase(std::string(label));
  }
  const k8s::Object edited(json);
  const Move move = move_at(edited, true);
  CHECK(operations(move) == "test /metadata/resourceVersion; add /metadata/labels");
  const Json& labels = *find(patch_of(move).operations.at(1), "value");
  CHECK(text_or_empty(labels, "team") == "x");
  json.at("metadata").as_object()["labels"] = labels;
  CHECK(domain_of(k8s::Object(json)).value == domain_uid);
  CHECK(std::holds_alternative<Settled>(move_at(k8s::Object(json), true)));
  CHECK(patch_of(last_move(&edited, clique_place(), self("a", "10.0.0.1"))).what == "leave");
}

TEST_CASE("leaving removes this pod's entry and no other", "[daemon][moves]") {
  const k8s::Object clique = clique_with({entry("b", "10.0.0.2", 0), entry("a", "10.0.0.1", 1)});
  CHECK(operations(last_move(&clique, clique_place(), self("a", "10.0.0.1"))) ==
        "test /daemons/1/ipAddress; test /daemons/1/nodeName; remove /daemons/1");
  CHECK(std::holds_alternative<Settled>(last_move(nullptr, clique_place(), self("a", "10.0.0.1"))));
}

TEST_CASE("without cliques an index counts among the nodes of the own clique only",
          "[daemon][moves]") {
  Json other = node_entry("b", "10.0.0.2", 0);
  other.get_object()["cliqueID"] = "other.1";
  const k8s::Object domain = domain_with({other, node_entry("c", "10.0.0.3", 0)});
  const Move move = next_move(&domain, domain_place(), self("a", "10.0.0.1"), false, true);
  CHECK(patch_of(move).what == "join with index 1");
  CHECK(operations(move) == "test /metadata/resourceVersion; add /status/nodes/-");
}

TEST_CASE("without cliques the ComputeDomain must be the daemon's own one", "[daemon][moves]") {
  CHECK_THAT(stuck(next_move(nullptr, domain_place(), self("a", "10.0.0.1"), false, true)),
             Catch::Contains("default/d does not exist"));
  k8s::Object other = domain_with({}, 0, "1b4e28ba-2fa1-11d2-883f-0016d3cca427");
  CHECK_THAT(stuck(next_move(&other, domain_place(), self("a", "10.0.0.1"), false, true)),
             Catch::Contains("is another one"));
}

TEST_CASE("a change of the own index or of a peer is another layout", "[daemon][layout]") {
  const k8s::Object one = clique_with({entry("a", "10.0.0.1", 0), entry("b", "10.0.0.2", 1)});
  const Plan plan = lay_out(&one, MemberList::clique_daemons, self("a", "10.0.0.1"), true);
  const auto& layout = std::get<Layout>(plan.layout);
  CHECK(layout.own == 0);
  REQUIRE(layout.slots.size() == 18);
  CHECK(layout.slots[1].address == "10.0.0.2");
  CHECK(layout.slots[17].address == "127.0.0.2");
}

TEST_CASE("nothing is laid out for a daemon that is no member", "[daemon][layout]") {
  const k8s::Object clique = clique_with({entry("b", "10.0.0.2", 1), entry("a", "10.0.0.9", 0)});
  for (const char* node : {"a", "c"}) {
    const Plan plan = lay_out(&clique, MemberList::clique_daemons, self(node, "10.0.0.1"), true);
    CHECK(std::holds_alternative<Unknown>(plan.layout));
  }
}

TEST_CASE("with addresses everybody must be there first", "[daemon][layout]") {
  struct Row {
    int wanted;
    const char* why;
  };
  const Row row = GENERATE(values<Row>({
      {0, "numNodes of the ComputeDomain is 0"},
      {3, "lists 2 nodes, and numNodes is 3"},
      {1, "lists 2 nodes, and numNodes is 1"},
      {2, nullptr},
  }));
  const k8s::Object domain =
      domain_with({node_entry("b", "10.0.0.2", 1), node_entry("a", "10.0.0.1", 0)}, row.wanted);
  const Plan plan = lay_out(&domain, MemberList::domain_nodes, self("a", "10.0.0.1"), false);
  if (row.why) {
    CHECK_THAT(std::get<Unknown>(plan.layout).why, Catch::Contains(row.why));
  } else {
    CHECK(std::get<Layout>(plan.layout).addresses ==
          std::vector<std::string>{"10.0.0.2", "10.0.0.1"});
  }
}

TEST_CASE("with addresses a member without one is named, and nothing is written",
          "[daemon][layout]") {
  const k8s::Object domain =
      domain_with({node_entry("b", "10.0.0.2\nevil", 1), node_entry("a", "10.0.0.1", 0)}, 2);
  const Plan plan = lay_out(&domain, MemberList::domain_nodes, self("a", "10.0.0.1"), false);
  CHECK_THAT(std::get<Unknown>(plan.layout).why, Catch::Contains("node b has the address"));
}

TEST_CASE("a member is ready only when everything about it holds", "[daemon][verdict]") {
  imex::Answer ready{.ready = true, .word = "READY"};
  Facts good{.index = 1, .applied = 1, .child_up = true, .identified = 1, .answer = &ready};
  CHECK(judge(good) == Verdict{true, "READY", ""});
  good.identified.reset();
  CHECK(judge(good).ready);

  static const imex::Answer starting{.word = "INIT_GPU"};
  static const imex::Answer silent{.trouble = "nvidia-imex-ctl gave no answer within 5 s"};
  struct Row {
    const char* state;
    const char* says;
    std::function<void(Facts&)> spoil;
  };
  const Row row = GENERATE_COPY(values<Row>({
      {"JOINING", "all 18 slots", [](Facts& f) { f.membership_trouble = "all 18 slots"; }},
      {"JOINING", "no entry", [](Facts& f) { f.index.reset(); }},
      {"FILES", "/etc/hosts", [](Facts& f) { f.files_trouble = "/etc/hosts is full"; }},
      {"FILES", "index 2", [](Facts& f) { f.index = 2; }},
      {"STARTING", "being started", [](Facts& f) { f.child_up = false; }},
      {"CRASHING", "keeps ending (exit status 1) and is started again after a pause: port",
       [](Facts& f) {
         f.child_up = false;
         f.crashes = 3;
         f.child_end = "exit status 1";
         f.child_trouble = "port 50000 is taken";
       }},
      {"STARTING", "not been asked", [](Facts& f) { f.answer = nullptr; }},
      {"INIT_GPU", "says INIT_GPU", [](Facts& f) { f.answer = &starting; }},
      {"UNKNOWN", "no answer within 5 s", [](Facts& f) { f.answer = &silent; }},
      {"WRONG_INDEX", "member 0, but this node has index 1", [](Facts& f) { f.identified = 0; }},
      {"UNCONNECTED", "not with b", [](Facts& f) { f.unconnected = "not with b"; }},
  }));
  Facts facts = good;
  row.spoil(facts);
  const Verdict verdict = judge(facts);
  INFO(row.says);
  CHECK_FALSE(verdict.ready);
  CHECK(verdict.state == row.state);
  CHECK_THAT(verdict.reason, Catch::Contains(row.says));
}

TEST_CASE("peers without a connection are named by their nodes (report 47)", "[daemon][verdict]") {
  const Circle circle{{{.node = NodeName("a"), .ip = "10.0.0.1", .clique = {}, .index = 0},
                       {.node = NodeName("b"), .ip = "10.0.0.2", .clique = {}, .index = 3}}};
  CHECK(connection_trouble({}, circle).empty());
  // As slots with names, as addresses, and a peer that the list does not know.
  CHECK_THAT(connection_trouble({{3, "compute-domain-daemon-x-0003", "NEVER_CONNECTED"}}, circle),
             Catch::Contains("of b (NEVER_CONNECTED), which is READY too"));
  CHECK_THAT(connection_trouble({{0, "10.0.0.2", "DISCONNECTED"}}, circle),
             Catch::Contains("of b (DISCONNECTED)"));
  CHECK(connection_trouble({{5, "10.0.0.9", "NEVER_CONNECTED"}}, circle).empty());
}

TEST_CASE("a peer of another release is told as such", "[daemon][verdict]") {
  const Circle circle{{{.node = NodeName("b"), .ip = "10.0.0.2", .clique = {}, .index = 3}}};
  CHECK_THAT(connection_trouble({{3, "x", "NODE_MAP_MISMATCH"}}, circle),
             Catch::Contains("refuses nvidia-imex of b (NODE_MAP_MISMATCH) until") &&
                 Catch::Contains("one release"));
}
