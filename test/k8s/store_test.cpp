#include "k8s/store.hpp"

#include "catch.hpp"
#include "fake/time.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

using namespace nvdra;
using namespace nvdra::k8s;

namespace {

struct Made {
  std::string name;
  std::string version;
  std::string uid = {};    // "" = "uid of <name>"
  std::string label = {};  // of "colour"
};

Object object(const Made& made) {
  std::string uid = made.uid.empty() ? "uid of " + made.name : made.uid;
  return Object(Json{{"metadata",
                      {{"namespace", "n"},
                       {"name", made.name},
                       {"uid", uid},
                       {"resourceVersion", made.version},
                       {"labels", {{"colour", made.label}}}}}});
}

std::vector<Object> objects(std::initializer_list<Made> made) {
  std::vector<Object> all;
  for (const Made& one : made) all.push_back(object(one));
  return all;
}

ObjectKey key(std::string name) {
  return {"n", std::move(name)};
}

// A store whose changes are written down: "+a@1", "a@1>2", "-a@2".
struct World {
  asio::io_context loop{1};
  Store store{loop.get_executor()};
  std::vector<std::string> told;

  World() {
    store.add_index("colour", [](const Object& o) {
      const Json* label = o.label("colour");
      return std::vector<std::string>{std::string(label->get_string())};
    });
    store.on_change([this](const ObjectPtr& before, const ObjectPtr& after) {
      std::string name((after ? after : before)->name());
      if (!before) told.push_back("+" + name + "@" + std::string(after->version()));
      if (!after) told.push_back("-" + name + "@" + std::string(before->version()));
      if (before && after)
        told.push_back(name + "@" + std::string(before->version()) + ">" +
                       std::string(after->version()));
    });
  }
  // "a@1 b@2", what readers see.
  std::string seen() const {
    std::string text;
    for (const ObjectPtr& o : store.all()) {
      if (!text.empty()) text += ' ';
      text += std::string(o->name()) + "@" + std::string(o->version());
    }
    return text;
  }
};

using Told = std::vector<std::string>;
const std::string uid_of_a = "uid of a";

}  // namespace

TEST_CASE("a full list replaces everything, and only differences are told", "[k8s][store]") {
  World w;
  w.store.replace(objects({{"a", "1"}, {"b", "2"}, {"c", "3"}}), "3");
  ObjectPtr unchanged = w.store.get(key("a"));
  w.told.clear();
  w.store.replace(objects({{"a", "1"}, {"b", "5"}, {"d", "6"}}), "6");
  CHECK(w.seen() == "a@1 b@5 d@6");
  CHECK(w.told == Told{"b@2>5", "-c@3", "+d@6"});
  CHECK(w.store.get(key("a")) == unchanged);
}

TEST_CASE("handlers see the store as it is after the change", "[k8s][store]") {
  World w;
  std::vector<std::size_t> sizes;
  w.store.on_change([&](const ObjectPtr&, const ObjectPtr&) { sizes.push_back(w.store.size()); });
  w.store.replace(objects({{"a", "1"}, {"b", "2"}}), "2");
  w.store.erase(key("a"));
  CHECK(sizes == std::vector<std::size_t>{2, 2, 1});
}

TEST_CASE("a store is ready after its first list, also when that is empty", "[k8s][store]") {
  World w;
  bool ready = false;
  asio::co_spawn(
      w.loop,
      [&]() -> Async<void> {
        co_await w.store.wait_ready();
        ready = true;
      },
      asio::detached);
  w.loop.poll();
  w.store.note_written(object({"a", "1"}));
  w.loop.restart();
  w.loop.poll();
  CHECK_FALSE(ready);
  w.store.replace({}, "5");
  w.loop.restart();
  w.loop.poll();
  CHECK(ready);
}

TEST_CASE("an older version than the stored one is ignored, the same one is no change",
          "[k8s][store]") {
  World w;
  w.store.put(object({"a", "10"}));
  w.store.put(object({"a", "9"}));
  w.store.put(object({"a", "10"}));
  CHECK(w.told == Told{"+a@10"});
  w.store.put(object({"a", "11"}));
  CHECK(w.seen() == "a@11");
}

TEST_CASE("an index follows its objects", "[k8s][store]") {
  World w;
  w.store.replace(objects({{"b", "1", {}, "red"}, {"a", "2", {}, "red"}, {"c", "3", {}, "blue"}}),
                  "3");
  auto red = w.store.by_index("colour", "red");
  REQUIRE(red.size() == 2);
  CHECK(red[0]->name() == "a");
  w.store.put(object({"a", "4", {}, "blue"}));
  w.store.erase(key("b"));
  CHECK(w.store.by_index("colour", "red").empty());
  CHECK(w.store.by_index("colour", "blue").size() == 2);
  w.store.replace({}, "9");
  CHECK(w.store.by_index("colour", "blue").empty());
}

TEST_CASE("a late deletion of an earlier object of that name leaves the new one alone",
          "[k8s][store]") {
  World w;
  w.store.put(object({"a", "1", "old"}));
  w.store.note_written(object({"a", "5", "new"}));
  w.store.erase(key("a"), "old");
  CHECK(w.seen() == "a@5");
  w.store.erase(key("a"), "new");
  CHECK(w.seen().empty());
}

TEST_CASE("an own write is visible at once and survives older news", "[k8s][store]") {
  World w;
  w.store.replace(objects({{"a", "10"}}), "10");
  w.store.note_written(object({"a", "20"}));
  w.store.note_written(object({"b", "21"}));
  CHECK(w.seen() == "a@20 b@21");
  w.store.put(object({"a", "15"}));
  CHECK(w.seen() == "a@20 b@21");
  w.store.replace(objects({{"a", "15"}}), "16");
  CHECK(w.seen() == "a@20 b@21");
  w.store.passed("19");
  CHECK(w.seen() == "a@20 b@21");
}

TEST_CASE("an own write is forgotten when the server says otherwise", "[k8s][store]") {
  World w;
  w.store.replace({}, "10");
  w.store.note_written(object({"a", "20"}));
  SECTION("a list that is at least as new lacks it") {
    w.store.replace({}, "20");
    CHECK(w.seen().empty());
  }
  SECTION("the watch shows its deletion") {
    w.store.erase(key("a"), uid_of_a);
    CHECK(w.seen().empty());
  }
  SECTION("the watch has come past it without showing it") {
    w.store.passed("20");
    CHECK(w.seen().empty());
  }
  SECTION("the watch shows a newer version, and then the object is the watch's") {
    w.store.put(object({"a", "25"}));
    w.store.passed("25");
    CHECK(w.seen() == "a@25");
    w.store.replace({}, "24");
    CHECK(w.seen().empty());
  }
}

TEST_CASE("an own write that the watch has shown already is no change", "[k8s][store]") {
  World w;
  w.store.put(object({"a", "20"}));
  w.store.note_written(object({"a", "20"}));
  w.store.note_written(object({"a", "19"}));
  CHECK(w.told == Told{"+a@20"});
  w.store.passed("30");
  CHECK(w.seen() == "a@20");
}

TEST_CASE("an answer that arrives after the object's deletion does not bring it back",
          "[k8s][store]") {
  World w;
  w.store.put(object({"a", "20"}));
  w.store.erase(key("a"), uid_of_a);
  w.store.note_written(object({"a", "21"}));
  CHECK(w.seen().empty());
  w.store.note_written(object({"a", "30", "another"}));
  CHECK(w.seen() == "a@30");
}

TEST_CASE("an object that left the watch's selector and comes back is shown again",
          "[k8s][store]") {
  World w;
  w.store.put(object({"a", "20"}));
  w.store.erase(key("a"), uid_of_a);
  w.store.put(object({"a", "22"}));
  CHECK(w.seen() == "a@22");
  w.store.note_written(object({"a", "23"}));
  CHECK(w.seen() == "a@23");
}

TEST_CASE("an own deletion is visible at once and survives older news", "[k8s][store]") {
  World w;
  w.store.put(object({"a", "20"}));
  w.store.note_deleted(key("a"), uid_of_a);
  CHECK(w.seen().empty());
  w.store.put(object({"a", "20"}));
  CHECK(w.seen().empty());
  w.store.replace(objects({{"a", "20"}}), "20");
  CHECK(w.seen().empty());
  SECTION("the next list has the last word") {
    w.store.replace(objects({{"a", "20"}}), "21");
    CHECK(w.seen() == "a@20");
  }
  SECTION("a newer version shows that the object is still there") {
    w.store.put(object({"a", "22"}));
    CHECK(w.seen() == "a@22");
  }
}

TEST_CASE("a noted deletion of another object of that name changes nothing", "[k8s][store]") {
  World w;
  w.store.put(object({"a", "20", "new"}));
  w.store.note_deleted(key("a"), "old");
  CHECK(w.seen() == "a@20");
}

TEST_CASE("more deletions than are remembered do no harm", "[k8s][store]") {
  World w;
  for (int i = 0; i < 3000; ++i) {
    std::string uid = "u" + std::to_string(i);
    w.store.put(object({"a", std::to_string(i + 1), uid}));
    w.store.erase(key("a"), uid);
  }
  w.store.note_written(object({"a", "4000", "u2999"}));
  CHECK(w.seen().empty());
}

TEST_CASE("only what is to be kept of an object is stored, however it came", "[k8s][store]") {
  World w;
  w.store.keep([](const Json& whole) {
    Json kept = whole;
    kept.at("metadata").at("labels").get_object()["colour"] = "kept";
    return kept;
  });
  auto colour = [&] {
    return text_or_empty(w.store.get(key("a"))->json(), "metadata/labels/colour");
  };
  w.store.replace(objects({{"a", "20", {}, "red"}}), "20");
  CHECK(colour() == "kept");
  w.store.put(object({"a", "21", {}, "red"}));
  CHECK(colour() == "kept");
  w.store.note_written(object({"a", "22", {}, "red"}));
  CHECK(colour() == "kept");
  CHECK(w.seen() == "a@22");
}
