// The controller's working parts against the sandbox's API server, all in one loop. The test plays
// users, plugins and daemons by writing into the registry.
#pragma once

#include "base/log.hpp"
#include "catch.hpp"
#include "fake/captured_log.hpp"
#include "fake/run_loop.hpp"
#include "k8s/http_transport.hpp"
#include "roles/common/names.hpp"
#include "roles/controller/config.hpp"
#include "roles/controller/health.hpp"
#include "roles/controller/reconciler.hpp"
#include "sandbox/api_server.hpp"

#include <fmt/format.h>

namespace nvdra::roles::controller::test {

class Life {
public:
  explicit Life(Settings settings = managed()) : settings_(std::move(settings)) {
    Result<void> added = registry.add_crds(NVDRA_CRDS);
    if (!added) FAIL(added.error().text());
    for (const std::string& space : settings_.spaces)
      make("namespaces", "", {{"metadata", {{"name", space}}}});
    server = *sandbox::ApiServer::listen(loop.get_executor(), registry);
    tasks_.spawn("api server", server->run());
  }
  ~Life() {
    controller_.reset();
    tasks_.stop();
    Result<void> ended = fake::run(loop, tasks_.join());
    (void)ended.has_value();
  }

  static Settings managed() {
    Settings settings;
    settings.resource_version = "v1";
    settings.daemons = {.space = "driver", .image = "driver:1"};
    settings.spaces = {"driver"};
    return settings;
  }

  void start() {
    begin();
    until("the caches are filled", [&] { return controller_->caches.ready(); });
    server->reset_counts();
  }
  void begin() { controller_.emplace(*this); }  // start() without waiting
  void stop() { controller_.reset(); }
  // What /readyz answers.
  k8s::HttpReply readiness() {
    Status status;
    status.caches = &controller_->caches;
    return controller::readiness(status);
  }
  // For the next start.
  Settings& settings() { return settings_; }

  // Runs the loop until the condition holds; fails after 20 s.
  void until(const std::string& what, const std::function<bool()>& holds) {
    Instant deadline = Clock::now() + 20s;
    loop.restart();
    while (!holds() && Clock::now() < deadline) loop.run_one_until(deadline);
    INFO(what);
    REQUIRE(holds());
  }

  sandbox::ItemPtr find(std::string_view type, const std::string& space, const std::string& name) {
    return registry.find(registry.resource(type), {space, name});
  }
  sandbox::ItemPtr make(std::string_view type, const std::string& space, Json object) {
    Result<sandbox::ItemPtr> made =
        registry.create(registry.resource(type), space, std::move(object));
    if (!made) FAIL(made.error().text());
    return *made;
  }
  void change(std::string_view type, const k8s::ObjectKey& key, const Json& patch,
              std::string subresource = "") {
    sandbox::WriteOptions options;
    options.subresource = std::move(subresource);
    auto done =
        registry.patch(registry.resource(type), key, patch, sandbox::PatchForm::merge, options);
    if (!done) FAIL(done.error().text());
  }
  void remove(std::string_view type, const k8s::ObjectKey& key) {
    auto done = registry.remove(registry.resource(type), key);
    if (!done) FAIL(done.error().text());
  }
  std::size_t count(std::string_view type) { return registry.all(registry.resource(type)).size(); }

  std::string create_domain(const std::string& name, int num_nodes = 0,
                            std::string_view mode = "Single") {
    Json channel = {{"resourceClaimTemplate", {{"name", "t-" + name}}}, {"allocationMode", mode}};
    auto made = make("computedomains", "default",
                     {{"metadata", {{"name", name}}},
                      {"spec", {{"numNodes", num_nodes}, {"channel", channel}}}});
    return std::string(text_or_empty(made->json(), "metadata/uid"));
  }
  void label_node(const std::string& name, const Json& uid) {
    if (!find("nodes", "", name)) make("nodes", "", {{"metadata", {{"name", name}}}});
    change("nodes", {"", name}, {{"metadata", {{"labels", {{domain_label, uid}}}}}});
  }
  // A daemon pod that runs on the node and is in the clique.
  void run_daemon(const std::string& uid, const std::string& node,
                  std::string_view its_gates = "ComputeDomainCliques=true,") {
    Json labels = {{domain_label, uid}, {clique_label, clique_id}};
    Json gates = {{"name", "FEATURE_GATES"}, {"value", its_gates}};
    Json container = {{"name", "c"}, {"image", "i"}, {"env", JsonArray{gates}}};
    make("pods", "driver",
         {{"metadata", {{"name", "d-" + node}, {"labels", labels}}},
          {"spec", {{"nodeName", node}, {"containers", JsonArray{container}}}}});
    Json state = {{"running", {{"startedAt", "2026-01-02T03:00:05Z"}}}};
    Json status = {{"name", "c"}, {"state", state}, {"restartCount", 0}};
    change(
        "pods", {"driver", "d-" + node},
        {{"status",
          {{"phase", "Running"}, {"podIP", "10.0.0.1"}, {"containerStatuses", JsonArray{status}}}}},
        "status");
  }
  void set_clique(const std::string& uid, const std::vector<Member>& members) {
    JsonArray daemons;
    for (const Member& member : members)
      daemons.push_back(member_entry(member, MemberList::clique_daemons));
    std::string name = uid + "." + clique_id;
    if (find("computedomaincliques", "driver", name)) {
      change("computedomaincliques", {"driver", name}, {{"daemons", daemons}});
      return;
    }
    Json labels = {{domain_label, uid}, {clique_label, clique_id}};
    make("computedomaincliques", "driver",
         {{"metadata", {{"name", name}, {"labels", labels}}}, {"daemons", daemons}});
  }
  Json status(const std::string& name) {
    auto found = find("computedomains", "default", name);
    const Json* status = found ? nvdra::find(found->json(), "status") : nullptr;
    return status ? *status : Json(JsonObject{});
  }
  // "Ready NoDaemonsNeeded", from status.status and the condition Ready.
  std::string state(const std::string& name) {
    Json now = status(name);
    for (const Json& condition : array_or_empty(now, "conditions"))
      if (text_or_empty(condition, "type") == "Ready")
        return fmt::format("{} {}", text_or_empty(now, "status"),
                           text_or_empty(condition, "reason"));
    return "";
  }
  std::size_t events(std::string_view reason) {
    std::size_t found = 0;
    for (const sandbox::ItemPtr& item : registry.all(registry.resource("events")))
      if (text_or_empty(item->json(), "reason") == reason) ++found;
    return found;
  }
  // "patch nodes 200: 3, …" so far, watches left out.
  std::string asked() {
    std::string text;
    for (const auto& [what, times] : server->counts())
      text += fmt::format("{} {}/{} {}: {}, ", what.verb, what.resource, what.subresource,
                          what.status, times);
    return text;
  }
  // Requests so far, watches left out.
  std::uint64_t requests() {
    std::uint64_t sum = 0;
    for (const auto& [what, times] : server->counts())
      if (what.verb != "watch" && what.verb != "WATCH") sum += times;
    return sum;
  }

  const std::string clique_id = "11111111-2222-3333-4444-555555555555.1";
  asio::io_context loop{1};
  RealTime time;
  sandbox::Registry registry{time};
  std::unique_ptr<sandbox::ApiServer> server;

private:
  struct Controller {
    explicit Controller(Life& life)
        : life_(life),
          transport(*k8s::make_http_transport(
              life.loop.get_executor(), life.time,
              {.host = "127.0.0.1", .port = std::to_string(life.server->port()), .tls = false})),
          client(*transport, life.time),
          caches(life.loop.get_executor(), client, life.time, life.settings_),
          events(life.loop.get_executor(), client, life.time, "controller", "p"),
          reconciler(client, life.time, events, caches, life.settings_),
          queue(life.loop.get_executor(), life.time, real_random(), "domains",
                [this](std::string uid) { return reconciler.reconcile(std::move(uid)); }),
          tasks(life.loop.get_executor()) {
      caches.on_event([this](std::string uid, Pace pace) {
        if (pace == Pace::now)
          queue.add(std::move(uid));
        else
          queue.add_after(std::move(uid), 50ms);
      });
      caches.start(tasks);
      tasks.spawn("events", events.run());
      tasks.spawn("reconcile", work());
    }
    ~Controller() {
      tasks.stop();
      Result<void> ended = fake::run(life_.loop, tasks.join());
      (void)ended.has_value();
    }
    Async<Result<void>> work() {
      co_await caches.wait_ready();
      reconciler.tell_at_start();
      Result<void> ended = co_await queue.run(32);
      co_return ended;
    }

    Life& life_;
    std::unique_ptr<k8s::Transport> transport;
    k8s::Client client;
    Caches caches;
    k8s::EventRecorder events;
    Reconciler reconciler;
    k8s::ReconcileLoop queue;
    TaskGroup tasks;
  };

  Settings settings_;
  TaskGroup tasks_{loop.get_executor()};
  std::optional<Controller> controller_;
};

}  // namespace nvdra::roles::controller::test
