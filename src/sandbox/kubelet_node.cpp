#include "sandbox/kubelet_node.hpp"

#include "base/files.hpp"
#include "base/try.hpp"
#include "sandbox/controllers_base.hpp"
#include "sandbox/store_error.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

namespace nvdra::sandbox {
namespace {

constexpr std::string_view architecture() {
#if defined(__aarch64__)
  return "arm64";
#else
  return "amd64";
#endif
}

Json condition(std::string_view type, bool holds, std::string_view reason, std::string_view message,
               std::string_view now) {
  return JsonObject{
      {"type", type},       {"status", holds ? "True" : "False"}, {"reason", reason},
      {"message", message}, {"lastHeartbeatTime", now},           {"lastTransitionTime", now}};
}

JsonArray conditions(std::string_view now) {
  return {condition("MemoryPressure", false, "KubeletHasSufficientMemory",
                    "kubelet has sufficient memory available", now),
          condition("DiskPressure", false, "KubeletHasNoDiskPressure",
                    "kubelet has no disk pressure", now),
          condition("PIDPressure", false, "KubeletHasSufficientPID",
                    "kubelet has sufficient PID available", now),
          condition("Ready", true, "KubeletReady", "kubelet is posting ready status", now)};
}

Json node_info(const std::string& version) {
  utsname machine{};
  (void)::uname(&machine);
  return JsonObject{{"architecture", architecture()},
                    {"bootID", random_uuid()},
                    {"containerRuntimeVersion", "sandbox://1"},
                    {"kernelVersion", machine.release},
                    {"kubeletVersion", version},
                    {"operatingSystem", "linux"},
                    {"osImage", "nvdra sandbox"}};
}

}  // namespace

Kubelet::Kubelet(asio::any_io_executor executor, Time& time, Registry& registry,
                 KubeletOptions options)
    : executor_(executor),
      time_(time),
      registry_(registry),
      options_(std::move(options)),
      plugins_(executor, time, options_.folder + "/plugins_registry"),
      claims_(registry, plugins_, options_.call_limit),
      changed_(executor),
      pods_(executor) {}

Kubelet::~Kubelet() = default;

Result<void> Kubelet::make_directories() {
  for (const char* name : {"plugins_registry", "plugins", "cdi", "pods", "logs"}) {
    TRY_VOID(nvdra::make_directories(options_.folder + "/" + name, 0755));
  }
  return ok();
}

void Kubelet::put_node() {
  JsonObject labels{{"kubernetes.io/hostname", options_.node},
                    {"kubernetes.io/os", "linux"},
                    {"kubernetes.io/arch", architecture()}};
  for (const auto& [key, value] : options_.labels) labels[key] = value;
  const Json amounts = JsonObject{{"cpu", "2"}, {"memory", "8Gi"}, {"pods", "110"}};
  Json node = JsonObject{{"metadata", JsonObject{{"name", options_.node}, {"labels", labels}}},
                         {"spec", JsonObject{}}};
  const Resource& nodes = registry_.resource("nodes");
  Result<ItemPtr> made = registry_.create(nodes, "", node);
  Json status = JsonObject{
      {"capacity", amounts},
      {"allocatable", amounts},
      {"addresses", JsonArray{JsonObject{{"type", "InternalIP"}, {"address", options_.address}},
                              JsonObject{{"type", "Hostname"}, {"address", options_.node}}}},
      {"conditions", conditions(rfc3339(time_.wall()))},
      {"nodeInfo", node_info(options_.version)}};
  made = registry_.patch(nodes, {"", options_.node}, JsonObject{{"status", std::move(status)}},
                         PatchForm::merge, {.subresource = "status"});
}

Async<Result<void>> Kubelet::run() {
  CO_TRY_VOID(make_directories());
  put_node();
  handler_ = registry_.feed().on_change([this](const ChangePtr& change) {
    if (!is(*change, "pods")) return;
    const Item& pod = *subject(*change);
    if (text_or_empty(pod.json(), "spec/nodeName") != options_.node) return;
    if (const auto worker = workers_.find(std::string(pod.uid())); worker != workers_.end())
      worker->second->touch();
    else
      changed_.notify();
  });
  pods_.spawn("plugins", plugins_.run());
  TaskGroup group(executor_);
  const auto take_up = [](Kubelet* self) -> Async<Result<void>> {
    for (std::uint64_t seen = self->changed_.count();; seen = co_await self->changed_.wait(seen))
      self->take_up_pods();
  };
  group.spawn("take up pods", take_up(this));
  group.spawn("pods", pods_.join());
  Result<void> ended = co_await group.join();
  co_return ended;
}

void Kubelet::take_up_pods() {
  for (const ItemPtr& pod : registry_.all(registry_.resource("pods"))) {
    if (text_or_empty(pod->json(), "spec/nodeName") != options_.node) continue;
    const std::string uid(pod->uid());
    if (workers_.contains(uid) || is_terminal(pod->json())) continue;
    PodPlace place{.executor = executor_,
                   .time = time_,
                   .registry = registry_,
                   .claims = claims_,
                   .node_address = options_.address,
                   .node_number = options_.number,
                   .network = options_.network,
                   .api = options_.api,
                   .images = options_.images,
                   .cdi_directory = options_.folder + "/cdi",
                   .scratch = fmt::format("{}/pods/{}", options_.folder, uid),
                   .logs = options_.folder + "/logs",
                   .helper = options_.helper,
                   .retry = options_.retry,
                   .retry_jitter = 0.5};
    workers_[uid] = std::make_unique<PodWorker>(std::move(place), pod);
    pods_.spawn("pod " + std::string(pod->name()), serve_pod(uid));
  }
}

Async<Result<void>> Kubelet::serve_pod(std::string uid) {
  Result<void> ended = co_await workers_.at(uid)->run();
  workers_.erase(uid);
  const Result<Fd> pods = open_directory(options_.folder + "/pods");
  if (pods) (void)remove_tree(pods->get(), uid).has_value();
  co_return ended;
}

std::vector<pid_t> Kubelet::processes() const {
  std::vector<pid_t> all;
  for (const auto& [uid, worker] : workers_)
    for (const pid_t pid : worker->processes()) all.push_back(pid);
  return all;
}

Result<Container*> Kubelet::container_of(const Item& pod, const std::string& name) {
  const auto worker = workers_.find(std::string(pod.uid()));
  Container* container = worker == workers_.end() ? nullptr : worker->second->container(name);
  if (container) return container;
  return deny(Reason::bad_request,
              fmt::format("container {} is not valid for pod {}", name, pod.name()));
}

Async<Result<void>> Kubelet::logs(ItemPtr pod, LogQuery query, PodOutput& output) {
  CO_TRY(Container * container, container_of(*pod, query.container));
  const auto log = query.previous ? container->log_before() : container->log();
  if (!log)
    co_return deny(Reason::bad_request,
                   fmt::format("container \"{}\" in pod \"{}\" is waiting to start: "
                               "ContainerCreating",
                               query.container, pod->name()));
  std::size_t next = log->dropped;
  if (query.tail_lines) {
    const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(*query.tail_lines, 0));
    if (log->lines.size() > wanted) next += log->lines.size() - wanted;
  }
  for (;;) {
    const std::uint64_t seen = log->changed.count();
    std::string text;
    for (; next < log->dropped + log->lines.size(); ++next) {
      const LogLine& line = log->lines[next - std::min(next, log->dropped)];
      if (query.timestamps) text += line.time + " ";
      text += line.text + "\n";
    }
    const bool last = !query.follow || log->ended;
    CO_TRY_VOID(co_await output.write_out(std::move(text)));
    if (last) co_return ok();
    co_await log->changed.wait(seen);
  }
}

Async<Result<int>> Kubelet::exec(ItemPtr pod, ExecQuery query, PodOutput& output) {
  CO_TRY(Container * container, container_of(*pod, query.container));
  if (!container->running())
    co_return deny(Reason::bad_request,
                   fmt::format("container of pod {} is not running", pod->name()));
  constexpr Duration limit = std::chrono::hours(1);
  CO_TRY(Output done, co_await container->exec(query.command, limit));
  if (!done.out.empty()) {
    CO_TRY_VOID(co_await output.write_out(std::move(done.out)));
  }
  if (!done.err.empty()) {
    CO_TRY_VOID(co_await output.write_err(std::move(done.err)));
  }
  co_return done.exit.code ? *done.exit.code : 128 + done.exit.signal.value_or(0);
}

Result<Kubelet*> Kubelets::of(const Item& pod) const {
  const auto found = kubelets_.find(std::string(text_or_empty(pod.json(), "spec/nodeName")));
  if (found != kubelets_.end()) return found->second;
  return deny(Reason::unavailable, fmt::format("the node of pod {} has no kubelet", pod.name()));
}

Async<Result<void>> Kubelets::logs(ItemPtr pod, LogQuery query, PodOutput& output) {
  CO_TRY(Kubelet * kubelet, of(*pod));
  Result<void> ended = co_await kubelet->logs(pod, std::move(query), output);
  co_return ended;
}

Async<Result<int>> Kubelets::exec(ItemPtr pod, ExecQuery query, PodOutput& output) {
  CO_TRY(Kubelet * kubelet, of(*pod));
  Result<int> ended = co_await kubelet->exec(pod, std::move(query), output);
  co_return ended;
}

}  // namespace nvdra::sandbox
