// The client against an API server that is not ours.
#include "k8s/client.hpp"

#include "base/ids.hpp"
#include "base/task_group.hpp"
#include "catch.hpp"
#include "fake/run_loop.hpp"
#include "k8s/http_transport.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <set>

using namespace nvdra;
using namespace nvdra::k8s;

namespace {

const ResourceType namespaces{"", "v1", "namespaces", "Namespace", false};
const ResourceType configmaps{"", "v1", "configmaps", "ConfigMap"};
const ResourceType nodes{"", "v1", "nodes", "Node", false};
const ResourceType leases{"coordination.k8s.io", "v1", "leases", "Lease"};

// A client of the server in KUBECONFIG, and a namespace of this test's own.
struct World {
  asio::io_context loop{1};
  RealTime time;
  std::unique_ptr<Transport> transport;
  std::optional<Client> client;
  std::string space = "it-" + random_uuid();

  World() {
    Result<Config> config = read_kubeconfig(std::getenv("KUBECONFIG"));
    if (!config) FAIL(config.error().text());
    auto made = make_http_transport(loop.get_executor(), time, *config);
    if (!made) FAIL(made.error().text());
    transport = *std::move(made);
    client.emplace(*transport, time);
    must(client->create(namespaces, "", named(space)));
  }
  ~World() {
    auto ignored = fake::run(loop, client->remove(namespaces, {"", space}));
    (void)ignored.has_value();
  }

  static Json named(const std::string& name, JsonObject data = {}) {
    return JsonObject{{"metadata", JsonObject{{"name", name}}}, {"data", std::move(data)}};
  }
  template <class T>
  Result<T> run(Async<Result<T>> call) {
    return fake::run(loop, std::move(call), 120s);
  }
  template <class T>
  T must(Async<Result<T>> call) {
    Result<T> got = run(std::move(call));
    if (!got) FAIL(got.error().text());
    return *std::move(got);
  }
  // The error's code; fails when there is none.
  template <class T>
  boost::system::error_code error(Async<Result<T>> call) {
    Result<T> got = run(std::move(call));
    REQUIRE_FALSE(got.has_value());
    INFO(got.error().text());
    return got.error().code;
  }
  Object make(const std::string& name, JsonObject data = {}) {
    return must(client->create(configmaps, space, named(name, std::move(data))));
  }
};

Async<Result<void>> make_many(Client* client, std::string space, int from, int count) {
  for (int i = from; i < from + count; ++i) {
    Json object = JsonObject{
        {"metadata", JsonObject{{"name", fmt::format("many-{:04}", i)},
                                {"labels", JsonObject{{"even", i % 2 == 0 ? "yes" : "no"}}}}}};
    Result<Object> made = co_await client->create(configmaps, space, std::move(object));
    if (!made) co_return std::move(made).failure();
  }
  co_return ok();
}

const ResourceType definitions{"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                               "CustomResourceDefinition", false};

Json definition_of(const ResourceType& type) {
  Json schema = JsonObject{{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
  Json version = JsonObject{{"name", type.version},
                            {"served", true},
                            {"storage", true},
                            {"schema", JsonObject{{"openAPIV3Schema", schema}}}};
  Json names = JsonObject{{"plural", type.plural}, {"kind", type.kind}};
  return JsonObject{{"metadata", JsonObject{{"name", type.plural + "." + type.group}}},
                    {"spec", JsonObject{{"group", type.group},
                                        {"scope", "Namespaced"},
                                        {"names", names},
                                        {"versions", JsonArray{version}}}}};
}

// Whether lists of a new resource are answered, within 20 s.
Async<Result<bool>> served_at_last(Client* client, Time* time, ResourceType type) {
  for (int i = 0; i < 200; ++i) {
    Result<ListAnswer> listed = co_await client->list(type, "");
    if (listed) co_return true;
    if (listed.error().code != Errc::not_found && !is_retryable(listed.error()))
      co_return std::move(listed).failure();
    co_await time->sleep(100ms);
  }
  co_return false;
}

Async<Result<std::optional<WatchEvent>>> first_event(Client* client, ResourceType type,
                                                     WatchOptions from) {
  auto watch = co_await client->watch(std::move(type), "", std::move(from));
  if (!watch) co_return std::move(watch).failure();
  auto event = co_await (*watch)->next();
  co_return event;
}

}  // namespace

TEST_CASE("an object is made, read, patched and deleted", "[integration][client]") {
  World w;
  Object made = w.make("a", {{"k", "v"}});
  CHECK_FALSE(made.uid().empty());
  CHECK(text_or_empty(made.json(), "kind") == "ConfigMap");
  CHECK(w.error(w.client->create(configmaps, w.space, World::named("a"))) == Errc::already_exists);

  Object read = w.must(w.client->get(configmaps, {w.space, "a"}));
  CHECK(read.version() == made.version());

  Json change = JsonObject{{"data", JsonObject{{"k", nullptr}, {"l", "w"}}}};
  Object patched = w.must(w.client->patch(configmaps, {w.space, "a"}, change));
  CHECK(find(patched.json(), "data/k") == nullptr);
  CHECK(text_or_empty(patched.json(), "data/l") == "w");

  CHECK(w.error(w.client->update(configmaps, {w.space, "a"}, made.json())) == Errc::conflict);

  DeleteOptions other{.uid = random_uuid()};
  auto key = ObjectKey{w.space, "a"};
  CHECK(w.run(w.client->remove(configmaps, key, other)).error().code == Errc::conflict);
  DeleteOptions right{.uid = std::string(made.uid()),
                      .resource_version = std::string(patched.version())};
  CHECK(w.run(w.client->remove(configmaps, key, right)));
  CHECK(w.error(w.client->get(configmaps, key)) == Errc::not_found);
}

TEST_CASE("a JSON patch whose test fails is a conflict, a rejected object is invalid",
          "[integration][client]") {
  World w;
  Object made = w.make("a", {{"k", "v"}});
  auto guarded = [](std::string_view version) -> Json {
    return JsonArray{
        JsonObject{{"op", "test"}, {"path", "/metadata/resourceVersion"}, {"value", version}},
        JsonObject{{"op", "replace"}, {"path", "/data/k"}, {"value", "w"}}};
  };
  PatchOptions json{.kind = PatchKind::json};
  ObjectKey key{w.space, "a"};
  Object patched = w.must(w.client->patch(configmaps, key, guarded(made.version()), json));
  CHECK(text_or_empty(patched.json(), "data/k") == "w");
  CHECK(w.error(w.client->patch(configmaps, key, guarded(made.version()), json)) == Errc::conflict);

  Json wrong = JsonObject{{"metadata", JsonObject{{"labels", JsonObject{{"a", "-bad-"}}}}}};
  CHECK(w.error(w.client->patch(configmaps, key, wrong)) == Errc::invalid);
  CHECK(w.error(w.client->create(configmaps, w.space, World::named("Not_A_Name"))) ==
        Errc::invalid);
}

TEST_CASE("generated names, apply and the status subresource", "[integration][client]") {
  World w;
  Json generated = JsonObject{{"metadata", JsonObject{{"generateName", "gen-"}}}};
  Object made = w.must(w.client->create(configmaps, w.space, generated));
  CHECK(made.name().starts_with("gen-"));
  CHECK(made.name().size() > 4);

  Json wanted = World::named("applied", {{"k", "v"}});
  wanted.get_object()["apiVersion"] = "v1";
  wanted.get_object()["kind"] = "ConfigMap";
  Object applied = w.must(w.client->patch(configmaps, {w.space, "applied"}, wanted,
                                          {.kind = PatchKind::apply, .force = true}));
  CHECK(text_or_empty(applied.json(), "data/k") == "v");

  std::string node = w.space;
  Json bare = JsonObject{{"metadata", JsonObject{{"name", node}}}};
  w.must(w.client->create(nodes, "", bare));
  Json status = JsonObject{{"status", JsonObject{{"phase", "Running"}}}};
  Object changed = w.must(w.client->patch(nodes, {"", node}, status, {.subresource = "status"}));
  CHECK(text_or_empty(changed.json(), "status/phase") == "Running");
  CHECK(w.run(w.client->remove(nodes, {"", node})));
}

TEST_CASE("1200 objects are listed in pages, all of them and once each", "[integration][client]") {
  World w;
  TaskGroup group(w.loop.get_executor());
  for (int worker = 0; worker < 12; ++worker)
    group.spawn("make", make_many(&*w.client, w.space, worker * 100, 100));
  auto join = [](TaskGroup* all) -> Async<Result<void>> {
    Result<void> joined = co_await all->join();
    co_return joined;
  };
  Result<void> joined = w.run(join(&group));
  if (!joined) FAIL(joined.error().text());

  for (int page : {500, 7000}) {
    ListOptions options{.label_selector = "even", .page = page};
    ListAnswer all = w.must(w.client->list(configmaps, w.space, options));
    CHECK(all.items.size() == 1200);
    std::set<std::string> names;
    for (const Object& item : all.items) {
      names.emplace(item.name());
      CHECK(text_or_empty(item.json(), "kind") == "ConfigMap");
    }
    CHECK(names.size() == 1200);
    CHECK_FALSE(all.version.empty());
  }
  ListAnswer even = w.must(w.client->list(configmaps, w.space, {.label_selector = "even=yes"}));
  CHECK(even.items.size() == 600);
  ListAnswer one =
      w.must(w.client->list(configmaps, w.space, {.field_selector = "metadata.name=many-0007"}));
  CHECK(one.items.size() == 1);
}

TEST_CASE("a watch tells what happens after the list, and ends in good order",
          "[integration][client]") {
  World w;
  ListAnswer list = w.must(w.client->list(configmaps, w.space));
  auto watch = w.must(
      w.client->watch(configmaps, w.space, {.resource_version = list.version, .server_limit = 3s}));
  Object made = w.make("a", {{"big", std::string(500'000, 'x')}});
  Json change = JsonObject{{"data", JsonObject{{"k", "v"}}}};
  Object patched = w.must(w.client->patch(configmaps, {w.space, "a"}, change));
  CHECK(w.run(w.client->remove(configmaps, {w.space, "a"})));

  std::vector<std::pair<WatchEvent::Kind, std::string>> seen;
  for (;;) {
    std::optional<WatchEvent> event = w.must(watch->next());
    if (!event) break;
    if (event->kind == WatchEvent::Kind::bookmark) continue;
    CHECK(text_or_empty(event->object.json(), "kind") == "ConfigMap");
    if (event->object.name() != "a") continue;  // a cluster puts its own into each namespace
    seen.emplace_back(event->kind, event->object.name());
  }
  using Kind = WatchEvent::Kind;
  CHECK(seen == std::vector<std::pair<Kind, std::string>>{
                    {Kind::added, "a"}, {Kind::modified, "a"}, {Kind::deleted, "a"}});
}

TEST_CASE("a watch from a version that is too old is gone", "[integration][client]") {
  World w;
  // A server remembers of a new resource only what came after its definition.
  ResourceType things{"it.nvdra.test", "v1", "things" + w.space.substr(3, 8), "Thing"};
  auto made = w.run(w.client->create(definitions, "", definition_of(things)));
  if (!made && made.error().code == Errc::not_found) {
    WARN("this server takes no resource definitions");
    return;
  }
  REQUIRE(made);
  REQUIRE(w.must(served_at_last(&*w.client, &w.time, things)));
  WatchOptions old{.resource_version = "1", .server_limit = 5s};
  CHECK(w.error(first_event(&*w.client, things, old)) == Errc::gone);
  CHECK(w.run(w.client->remove(definitions, {"", things.plural + "." + things.group})));
}

TEST_CASE("leases go over a connection of their own", "[integration][client]") {
  World w;
  Json lease = JsonObject{{"metadata", JsonObject{{"name", "l"}}},
                          {"spec", JsonObject{{"holderIdentity", "me"}}}};
  Object made = w.must(w.client->create_urgent(leases, w.space, lease));
  Object read = w.must(w.client->get_urgent(leases, {w.space, "l"}));
  CHECK(text_or_empty(read.json(), "spec/holderIdentity") == "me");
  Json next = read.json();
  next.get_object()["spec"].get_object()["holderIdentity"] = "you";
  Object updated = w.must(w.client->update(leases, {w.space, "l"}, next, true));
  CHECK(text_or_empty(updated.json(), "spec/holderIdentity") == "you");
  CHECK(w.error(w.client->update(leases, {w.space, "l"}, next, true)) == Errc::conflict);
}

TEST_CASE("the server offers a usable version of resource.k8s.io", "[integration][client]") {
  World w;
  std::string version = w.must(discover_resource_version(*w.client));
  CHECK((version == "v1" || version == "v1beta2" || version == "v1beta1"));
  ResourceType claims{"resource.k8s.io", version, "resourceclaims", "ResourceClaim"};
  CHECK(w.must(w.client->serves(claims)));
  CHECK_FALSE(w.must(w.client->serves({"resource.k8s.io", version, "nonsense", "Nonsense"})));
  CHECK_FALSE(w.must(w.client->serves({"no.such.group", "v1", "things", "Thing"})));
  CHECK(w.must(w.client->group_versions("no.such.group")).empty());
  CHECK(w.must(w.client->group_versions("")) == std::vector<std::string>{"v1"});
}
