#include "roles/daemon/herald.hpp"

#include "base/log.hpp"
#include "roles/common/names.hpp"

namespace nvdra::roles::daemon {
namespace {

constexpr Duration usual_start = 10s;
constexpr Duration settled_trouble = 3s;
constexpr Duration between_writes = 5s;

// One line of plain text: a child's log may hold anything.
std::string plain(std::string_view text) {
  constexpr std::size_t longest = 500;
  std::string line(text.substr(0, longest));
  for (char& c : line)
    if (c < ' ' || c > '~') c = '?';
  return line;
}

}  // namespace

std::string told(const Verdict& verdict) {
  if (verdict.ready) return {};
  const bool only_word = verdict.reason == "nvidia-imex says " + verdict.state;
  return plain(only_word ? verdict.state : verdict.state + ": " + verdict.reason);
}

Duration patience_with(const Verdict& verdict) {
  const bool trouble = verdict.state == "CRASHING" || verdict.state == "FILES";
  return trouble ? settled_trouble : usual_start;
}

Herald::Herald(asio::any_io_executor executor, k8s::Client& client, Time& time,
               const Config& config)
    : client_(client),
      time_(time),
      config_(config),
      events_(std::move(executor), client, time, "compute-domain-daemon", config.node.value) {}

Async<Result<k8s::Object>> Herald::patch_pod(Json metadata) {
  Result<k8s::Object> patched = co_await client_.patch(
      pods(), {config_.pod_space, config_.pod_name}, Json{{"metadata", std::move(metadata)}}, {});
  co_return patched;
}

Async<Result<void>> Herald::label() {
  Backoff backoff({.first = 200ms, .cap = 10s}, real_random());
  for (;;) {
    JsonObject metadata{{"labels", {{clique_label, config_.clique.value}}}};
    if (!config_.pod_ip.empty())
      metadata["annotations"] = JsonObject{{address_annotation, config_.pod_ip}};
    Result<k8s::Object> pod = co_await patch_pod(std::move(metadata));
    if (pod) {
      written_ = pod->annotation_text(imex_state_annotation);
      co_return ok();
    }
    LOG_WARNING("Cannot label this pod with its clique, retrying", {{"err", pod.error().text()}});
    co_await time_.sleep(backoff.next(time_.now()));
  }
}

Async<Result<void>> Herald::run(Event& news, std::function<Verdict()> verdict) {
  Result<void> labelled = co_await label();
  (void)labelled;  // it returns with success only
  for (;;) co_await follow(&news, verdict);
}

// Until something has been written.
Async<void> Herald::follow(Event* news, std::function<Verdict()> verdict) {
  Verdict held = verdict();
  Instant since = time_.now();
  for (;;) {
    const auto seen = news->count();
    Verdict now = verdict();
    if (now.state != held.state) since = time_.now();
    held = std::move(now);
    if (told(held) == written_) {
      co_await news->wait(seen);
      continue;
    }
    const Duration left = held.ready ? Duration{} : since + patience_with(held) - time_.now();
    if (left <= Duration{}) break;
    co_await news->wait_for(time_, left, seen);
  }
  co_await write(told(held));
  co_await time_.sleep(between_writes);
}

Async<void> Herald::write(std::string reason) {
  if (!reason.empty()) {
    LOG_WARNING("This member is not ready", {{"why", reason}});
    events_.record(k8s::EventType::warning,
                   {"v1", "Pod", {config_.pod_space, config_.pod_name}, config_.pod_uid},
                   "IMEXDaemonNotReady", reason);
  }
  Json value = reason.empty() ? Json(nullptr) : Json(reason);
  Result<k8s::Object> pod =
      co_await patch_pod({{"annotations", {{imex_state_annotation, std::move(value)}}}});
  if (!pod) {
    LOG_INFO(1, "Cannot annotate this pod", {{"err", pod.error().text()}});
    co_return;
  }
  written_ = std::move(reason);
}

}  // namespace nvdra::roles::daemon
