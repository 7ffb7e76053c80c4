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

std::vector<pid_t> PodWorker::processes() const {
  std::vector<pid_t> found;
  for (const Running& one : containers_)
    if (const auto pid = one.process.pid()) found.push_back(*pid);
  return found;
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
  PodReport report{.address = port_.address,
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
  detach();
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
  while (!attached()) co_await place_.time.sleep(retry_pause());
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

// Gives the pod its address. False when that did not work; the pod's event says why.
bool PodWorker::attached() {
  if (!place_.network || bool_or(pod_->json(), "spec/hostNetwork", false)) {
    port_.address = place_.node_address;
    return true;
  }
  Result<PodPort> port = place_.network->attach(place_.node_number);
  if (port) {
    port_ = *std::move(port);
    attached_ = true;
    return true;
  }
  tell("Warning", "FailedCreatePodSandBox",
       fmt::format("Failed to create pod sandbox: {}", port.error().text()));
  return false;
}

void PodWorker::detach() {
  if (std::exchange(attached_, false)) place_.network->detach(place_.node_number, port_.address);
  port_.space.reset();
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
