#include "sandbox/pod_worker.hpp"

#include "base/backoff.hpp"
#include "base/try.hpp"
#include "base/within.hpp"
#include "sandbox/controllers_base.hpp"
#include "sandbox/pod_cdi.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

namespace nvdra::sandbox {
namespace {

constexpr Backoff::Shape restart_pauses{
    .first = 10s, .cap = 300s, .jitter = 0, .reset_after = 600s};
constexpr std::string_view usual_path =
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

std::vector<std::string> texts(const JsonArray& array) {
  std::vector<std::string> list;
  for (const Json& one : array)
    if (one.is_string()) list.emplace_back(one.get_string());
  return list;
}

Async<Result<void>> until_true(Event* changed, std::function<bool()> condition) {
  for (auto seen = changed->count(); !condition();) seen = co_await changed->wait(seen);
  co_return ok();
}

}  // namespace

PodWorker::Running::Running(const PodPlace& place, const Json& wanted)
    : spec(wanted), process(place.executor, place.time, place.helper) {
  state.name = text_or_empty(spec, "name");
  state.image = text_or_empty(spec, "image");
}

PodWorker::PodWorker(PodPlace place, ItemPtr pod)
    : place_(std::move(place)),
      pod_(std::move(pod)),
      uid_(pod_->uid()),
      first_seen_(rfc3339(place_.time.wall())),
      changed_(place_.executor) {
  for (const Json& spec : array_or_empty(pod_->json(), "spec/containers"))
    containers_.emplace_back(place_, spec);
}

ItemPtr PodWorker::current() const {
  ItemPtr now = place_.registry.find(place_.registry.resource("pods"), pod_->key());
  return now && now->uid() == uid_ ? now : nullptr;
}

bool PodWorker::ending() const {
  const ItemPtr now = current();
  return !now || now->deleting();
}

Container* PodWorker::container(std::string_view name) {
  for (Running& one : containers_)
    if (name.empty() || one.state.name == name) return &one.process;
  return nullptr;
}

void PodWorker::report() {
  const ItemPtr now = current();
  if (!now) return;
  pod_ = now;
  PodReport report{.address = place_.pod_address,
                   .host = place_.node_address,
                   .now = rfc3339(place_.time.wall()),
                   .started = first_seen_,
                   .sandbox = can_start_,
                   .containers = {}};
  for (const Running& one : containers_) report.containers.push_back(one.state);
  put_status(place_.registry, place_.registry.resource("pods"), now,
             with_status(now->json(), report));
}

void PodWorker::tell(std::string_view type, std::string_view reason, std::string_view message) {
  record_event(place_.registry, *pod_, type, reason, message, "kubelet");
}

Duration PodWorker::retry_pause() {
  const double random = static_cast<double>(place_.registry.random() % 1000) / 1000.0;
  return place_.retry +
         std::chrono::duration_cast<Duration>(place_.retry * place_.retry_jitter * random);
}

Async<Result<void>> PodWorker::run() {
  if (!ending()) report();
  TaskGroup group(place_.executor);
  group.spawn("pod", work());
  group.spawn("end", stop_when_asked(&group));
  Result<void> ended = co_await group.join();
  (void)ended;  // told in events
  co_await release();
  report();
  for (auto seen = changed_.count(); !ending();) seen = co_await changed_.wait(seen);
  remove_object();
  co_return ok();
}

// Ends the work once the pod is deleted or has ended for good.
Async<Result<void>> PodWorker::stop_when_asked(TaskGroup* group) {
  for (auto seen = changed_.count(); !ending() && !finished_;) seen = co_await changed_.wait(seen);
  stopping_ = true;
  co_await stop_containers();
  group->stop();
  co_return ok();
}

// Prepares the claims and runs the containers to their end.
Async<Result<void>> PodWorker::work() {
  CO_TRY_VOID(co_await prepare());
  can_start_ = true;
  report();
  TaskGroup group(place_.executor);
  for (Running& container : containers_)
    group.spawn(container.state.name, run_container(&container));
  Result<void> ended = co_await group.join();
  finished_ = true;
  changed_.notify();
  co_return ended;
}

Async<Result<void>> PodWorker::prepare() {
  for (;;) {
    Result<void> prepared = co_await place_.claims.prepare(pod_);
    if (prepared) co_return ok();
    tell("Warning", "FailedPrepareDynamicResources",
         fmt::format("Failed to prepare dynamic resources: {}", prepared.error().text()));
    co_await place_.time.sleep(retry_pause());
    if (const ItemPtr now = current()) pod_ = now;  // its claims may have been made meanwhile
  }
}

Result<ContainerSpec> PodWorker::spec_of(const Running& container) const {
  ContainerSpec spec;
  TRY(spec.edits,
      cdi_edits(place_.cdi_directory, place_.claims.cdi_devices(pod_->json(), container.spec)));
  spec.command = texts(array_or_empty(container.spec, "command"));
  for (std::string& word : texts(array_or_empty(container.spec, "args")))
    spec.command.push_back(std::move(word));
  if (spec.command.empty())
    return refuse(
        fmt::format("no command specified: the sandbox has no images, so container {} "
                    "needs spec.containers[].command",
                    container.state.name));
  spec.environment = {std::string(usual_path), fmt::format("HOSTNAME={}", pod_->name())};
  for (const Json& entry : array_or_empty(container.spec, "env"))
    spec.environment.push_back(
        fmt::format("{}={}", text_or_empty(entry, "name"), text_or_empty(entry, "value")));
  for (const std::string& entry : spec.edits.env) spec.environment.push_back(entry);
  if (std::string_view directory = text_or_empty(container.spec, "workingDir"); !directory.empty())
    spec.directory = directory;
  spec.host_name = pod_->name();
  spec.scratch = fmt::format("{}/{}", place_.scratch, container.state.name);
  std::error_code failed;
  std::filesystem::create_directories(spec.scratch, failed);
  if (failed) return fail(failed, "create " + spec.scratch);
  return spec;
}

bool PodWorker::start_container(Running& container) {
  ContainerState& state = container.state;
  tell("Normal", "Pulled",
       fmt::format("Container image \"{}\" already present on machine", state.image));
  Result<ContainerSpec> spec = spec_of(container);
  if (spec) tell("Normal", "Created", fmt::format("Created container: {}", state.name));
  Result<void> started =
      spec ? container.process.start(*spec) : Result<void>(std::move(spec).failure());
  if (!started) cannot_run(container, started.error().text());
  return started.has_value();
}

void PodWorker::has_begun(Running& container) {
  ContainerState& state = container.state;
  tell("Normal", "Started", fmt::format("Started container {}", state.name));
  state.kind = ContainerState::Kind::running;
  state.reason.clear();
  state.message.clear();
  state.started = rfc3339(place_.time.wall());
  state.id =
      fmt::format("sandbox://{:016x}{:016x}", place_.registry.random(), place_.registry.random());
  report();
}

void PodWorker::cannot_run(Running& container, std::string_view why) {
  container.state.reason = "CreateContainerError";
  container.state.message = why;
  tell("Warning", "Failed", fmt::format("Error: {}", why));
  report();
}

// Starts the container, again and again if need be, and waits for its end.
Async<Result<Exit>> PodWorker::run_once(Running* container) {
  ContainerState& state = container->state;
  Result<Exit> ended = Exit{};
  for (;;) {
    if (start_container(*container)) {
      ended = co_await container->process.wait([this, container] { has_begun(*container); });
      if (stopping_ || state.kind == ContainerState::Kind::running) break;
      const auto& lines = container->process.log()->lines;
      cannot_run(*container, lines.empty() ? "the container has ended" : lines.back().text);
    }
    co_await place_.time.sleep(std::min<Duration>(place_.retry, restart_pauses.first));
  }
  state.kind = ContainerState::Kind::terminated;
  state.finished = rfc3339(place_.time.wall());
  state.exit_code = !ended ? 255 : ended->code ? *ended->code : 128 + ended->signal.value_or(0);
  state.reason = state.exit_code == 0 ? "Completed" : "Error";
  co_return ended;
}

Async<Result<void>> PodWorker::run_container(Running* container) {
  const std::string policy(text_or_empty(pod_->json(), "spec/restartPolicy"));
  Backoff pauses(restart_pauses, [] { return 0.0; });
  for (;;) {
    Result<Exit> ended = co_await run_once(container);
    (void)ended;
    report();
    changed_.notify();
    ContainerState& state = container->state;
    if (stopping_ || !restarts(policy, state.exit_code)) co_return ok();
    state.last = terminated_state(state);
    const Duration pause = state.restarts == 0 ? Duration{} : pauses.next(place_.time.now());
    state.kind = ContainerState::Kind::waiting;
    state.reason = "CrashLoopBackOff";
    state.message = fmt::format("back-off restarting failed container={} pod={}_{}({})", state.name,
                                pod_->name(), pod_->space(), uid_);
    ++state.restarts;
    if (pause > Duration{}) {
      tell("Warning", "BackOff", "Back-off restarting failed container " + state.name);
      report();
      co_await place_.time.sleep(pause);
    }
  }
}

Async<void> PodWorker::stop_containers() {
  const auto stopped = [this] {
    return std::ranges::none_of(containers_, [](const Running& c) { return c.process.alive(); });
  };
  if (stopped()) co_return;
  const ItemPtr now = current();
  const std::int64_t grace =
      now ? int_or(now->json(), "metadata/deletionGracePeriodSeconds", 30) : 0;
  for (Running& container : containers_) {
    if (!container.process.alive()) continue;
    tell("Normal", "Killing", "Stopping container " + container.state.name);
    container.process.signal(SIGTERM);
  }
  Result<void> gone =
      co_await within(place_.time, std::chrono::seconds(std::max<std::int64_t>(grace, 1)),
                      until_true(&changed_, stopped));
  if (gone) co_return;
  for (Running& container : containers_) container.process.signal(SIGKILL);
  gone = co_await within(place_.time, 5s, until_true(&changed_, stopped));
}

Async<void> PodWorker::release() {
  for (;;) {
    Result<void> released = co_await place_.claims.unprepare(pod_);
    if (released) co_return;
    tell("Warning", "FailedUnprepareDynamicResources",
         fmt::format("Failed to unprepare dynamic resources: {}", released.error().text()));
    co_await place_.time.sleep(retry_pause());
  }
}

void PodWorker::remove_object() {
  if (!current()) return;
  const Result<Removal> removal = place_.registry.remove(place_.registry.resource("pods"),
                                                         pod_->key(), {.uid = uid_, .grace = 0});
  (void)removal;  // gone already
}

}  // namespace nvdra::sandbox
