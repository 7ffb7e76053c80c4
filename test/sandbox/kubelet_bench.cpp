#include "kubelet_bench.hpp"

#include "sandbox/controllers_base.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace nvdra::sandbox {
namespace {

constexpr const char* driver_name = "test.example.com";

// Keeps what a pod prints.
class Kept final : public PodOutput {
public:
  Async<Result<void>> write_out(std::string bytes) override {
    text += bytes;
    co_return ok();
  }
  Async<Result<void>> write_err(std::string bytes) override {
    text += bytes;
    co_return ok();
  }
  Async<Result<std::string>> read_in() override { co_return std::string(); }
  std::string text;
};

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text());
  return *std::move(result);
}

KubeletOptions kubelet_options(const fake::TempDir& folder, const BenchOptions& wanted,
                               PodNetwork* network) {
  return {.node = "node-1",
          .folder = folder.path(),
          .address = "127.0.0.1",
          .helper = {NVDRA_SANDBOX},
          .network = network,
          .images = wanted.images,
          .call_limit = wanted.call_limit,
          .retry = 200ms};
}

Json shell_container(const std::string& script) {
  return JsonObject{{"name", "app"},
                    {"image", "some/image:1"},
                    {"command", JsonArray{"sh", "-c"}},
                    {"args", JsonArray{Json(script)}},
                    {"env", JsonArray{JsonObject{{"name", "GREETING"}, {"value", "hello"}}}}};
}

}  // namespace

KubeletBench::KubeletBench(const BenchOptions& options)
    : network(options.network ? PodNetwork::make() : nullptr),
      kubelet(loop.get_executor(), time, registry, kubelet_options(folder, options, network.get())),
      driver(time, folder.path("cdi")) {
  std::filesystem::create_directories(folder.path("plugins/test.example.com"));
  std::filesystem::create_directories(folder.path("plugins_registry"));
  group_.spawn("kubelet", kubelet.run());
}

KubeletBench::~KubeletBench() {
  stop_plugin();
  group_.stop();
  (void)fake::run(loop, group_.join()).has_value();
}

void KubeletBench::start_plugin() {
  server_.emplace(loop, time, driver,
                  dra::ServerConfig{.driver = driver_name,
                                    .plugin_directory = folder.path("plugins/test.example.com"),
                                    .registrar_directory = folder.path("plugins_registry")});
  const Result<void> started = fake::run(loop, server_->start());
  if (!started) throw std::runtime_error(started.error().text());
  if (!becomes([&] { return kubelet.plugins().find(driver_name) != nullptr; }))
    throw std::runtime_error("the plugin was not registered");
}

void KubeletBench::stop_plugin() {
  if (!server_) return;
  const auto stop = [](dra::Server* server) -> Async<Result<void>> {
    co_await server->stop(0s);
    co_return ok();
  };
  (void)fake::run(loop, stop(&*server_)).has_value();
  server_.reset();
}

bool KubeletBench::becomes(const std::function<bool()>& condition, Duration limit) {
  loop.restart();
  for (const Instant end = time.now() + limit; time.now() < end;) {
    if (condition()) return true;
    loop.run_one_for(10ms);
  }
  return condition();
}

void KubeletBench::make_claim(const std::string& name, const Item& pod) {
  const Resource& claims = registry.resource("resourceclaims.resource.k8s.io");
  const Json request = JsonObject{
      {"name", "channel"},
      {"exactly",
       JsonObject{{"deviceClassName", "c"}, {"allocationMode", "ExactCount"}, {"count", 1}}}};
  const ItemPtr made = must(registry.create(
      claims, "default",
      JsonObject{{"metadata", JsonObject{{"name", name}}},
                 {"spec", JsonObject{{"devices", JsonObject{{"requests", JsonArray{request}}}}}}}));
  const Json result = JsonObject{
      {"request", "channel"}, {"driver", driver_name}, {"pool", "node-1"}, {"device", "channel-0"}};
  Json object = made->json();
  object.get_object()["status"] = JsonObject{
      {"allocation", JsonObject{{"devices", JsonObject{{"results", JsonArray{result}}}}}},
      {"reservedFor",
       JsonArray{JsonObject{{"resource", "pods"}, {"name", pod.name()}, {"uid", pod.uid()}}}}};
  put_status(registry, claims, made, std::move(object));
}

void KubeletBench::make_pod(const std::string& name, const std::string& script,
                            const std::string& policy, const std::string& claim) {
  Json container = shell_container(script);
  JsonObject spec{{"restartPolicy", policy}};
  if (!claim.empty()) {
    container.get_object()["resources"] =
        JsonObject{{"claims", JsonArray{JsonObject{{"name", "c"}}}}};
    spec["resourceClaims"] = JsonArray{JsonObject{{"name", "c"}, {"resourceClaimName", claim}}};
  }
  put_pod(name, std::move(container), std::move(spec), claim);
}

void KubeletBench::make_pod_with(const std::string& name, const std::string& script,
                                 const Json& more) {
  Json container = shell_container(script);
  merge_patch(container, more);
  put_pod(name, std::move(container), {}, {});
}

void KubeletBench::put_pod(const std::string& name, Json container, JsonObject spec,
                           const std::string& claim) {
  spec["containers"] = JsonArray{std::move(container)};
  const ItemPtr made =
      must(registry.create(registry.resource("pods"), "default",
                           JsonObject{{"metadata", JsonObject{{"name", name}}}, {"spec", spec}}));
  if (!claim.empty()) make_claim(claim, *made);
  must(registry.bind({"default", name}, "node-1"));
}

void KubeletBench::delete_pod(const std::string& name, std::int64_t grace) {
  must(registry.remove(registry.resource("pods"), {"default", name}, {.grace = grace}));
}

ItemPtr KubeletBench::pod(const std::string& name) {
  return registry.find(registry.resource("pods"), {"default", name});
}

std::string KubeletBench::phase(const std::string& name) {
  const ItemPtr found = pod(name);
  return found ? std::string(text_or_empty(found->json(), "status/phase")) : "";
}

bool KubeletBench::ready(const std::string& name) {
  const ItemPtr found = pod(name);
  return found && is_ready(found->json());
}

std::string KubeletBench::log(const std::string& name) {
  Kept kept;
  const ItemPtr found = pod(name);
  if (!found) return {};
  (void)fake::run(loop, kubelet.logs(found, LogQuery{.container = {}}, kept)).has_value();
  return kept.text;
}

Result<int> KubeletBench::exec(const std::string& name, std::vector<std::string> command) {
  Kept kept;
  return fake::run(loop,
                   kubelet.exec(pod(name), ExecQuery{.container = {}, .command = command}, kept));
}

std::vector<std::string> KubeletBench::events(std::string_view reason) {
  std::vector<std::string> messages;
  for (const ItemPtr& event : registry.all(registry.resource("events")))
    if (text_or_empty(event->json(), "reason") == reason)
      messages.emplace_back(text_or_empty(event->json(), "message"));
  return messages;
}

int KubeletBench::event_count(std::string_view reason) {
  std::int64_t count = 0;
  for (const ItemPtr& event : registry.all(registry.resource("events")))
    if (text_or_empty(event->json(), "reason") == reason)
      count += int_or(event->json(), "count", 1);
  return static_cast<int>(count);
}

}  // namespace nvdra::sandbox
