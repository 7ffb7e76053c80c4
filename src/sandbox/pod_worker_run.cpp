// A container of a pod: started, watched by its probes, restarted.
#include "base/backoff.hpp"
#include "base/files.hpp"
#include "base/try.hpp"
#include "imex/text.hpp"
#include "sandbox/pod_cdi.hpp"
#include "sandbox/pod_environment.hpp"
#include "sandbox/pod_worker.hpp"

#include <fmt/format.h>

#include <csignal>

namespace nvdra::sandbox {
namespace {

constexpr Backoff::Shape restart_pauses{
    .first = 10s, .cap = 300s, .jitter = 0, .reset_after = 600s};
constexpr std::string_view usual_path =
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// What a probe's event says about an answer that is no success.
std::string complaint(const Result<Output>& answer, const Probe& probe) {
  if (answer) return std::string(imex::trim(answer->out + answer->err));
  if (answer.error().code != boost::system::errc::timed_out) return answer.error().text();
  return fmt::format("command timed out after {} s",
                     std::chrono::duration_cast<std::chrono::seconds>(probe.timeout).count());
}

}  // namespace

Result<ContainerSpec> PodWorker::spec_of(const Running& container) const {
  ContainerSpec spec;
  const Json& pod = pod_->json();
  TRY(spec.edits, cdi_edits(place_.cdi_directory, place_.claims.cdi_devices(pod, container.spec)));
  spec.environment = {std::string(usual_path), fmt::format("HOSTNAME={}", pod_->name())};
  for (std::string& entry : api_environment(place_.api)) spec.environment.push_back(entry);
  TRY(const auto own, environment_of(pod, container.spec, {port_.address, place_.node_address}));
  spec.environment.insert(spec.environment.end(), own.begin(), own.end());
  const KnownVariables known = variables_of(own);
  spec.command = expanded(array_or_empty(container.spec, "command"), known);
  for (std::string& word : expanded(array_or_empty(container.spec, "args"), known))
    spec.command.push_back(std::move(word));
  if (spec.command.empty())
    return refuse(
        fmt::format("no command specified: the sandbox has no images, so container {} "
                    "needs spec.containers[].command",
                    container.state.name));
  for (const std::string& entry : spec.edits.env) spec.environment.push_back(entry);
  if (std::string_view directory = text_or_empty(container.spec, "workingDir"); !directory.empty())
    spec.directory = directory;
  spec.host_name = pod_->name();
  if (port_.space) spec.network = fmt::format("/proc/{}/fd/{}", ::getpid(), port_.space.get());
  std::vector<cdi::Mount>& mounts = spec.edits.mounts;
  if (const auto image = place_.images.find(container.state.image); image != place_.images.end())
    mounts.insert(mounts.end(), image->second.begin(), image->second.end());
  TRY(const auto files, put_pod_files(place_.scratch + "/.files", pod, port_.address, place_.api));
  mounts.insert(mounts.end(), files.begin(), files.end());
  TRY(const auto volumes, put_volumes(place_.scratch + "/.volumes", pod, container.spec));
  mounts.insert(mounts.end(), volumes.begin(), volumes.end());
  spec.scratch = fmt::format("{}/{}", place_.scratch, container.state.name);
  TRY_VOID(make_directories(spec.scratch, 0755));
  return spec;
}

bool PodWorker::start_container(Running& container) {
  ContainerState& state = container.state;
  tell("Normal", "Pulled",
       fmt::format("Container image \"{}\" already present on machine", state.image));
  Result<ContainerSpec> spec = spec_of(container);
  if (spec) tell("Normal", "Created", fmt::format("Created container: {}", state.name));
  const std::string log =
      fmt::format("{}/{}_{}_{}.log", place_.logs, pod_->space(), pod_->name(), state.name);
  Result<void> started =
      spec ? container.process.start(*spec, log) : Result<void>(std::move(spec).failure());
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
  state.has_started = !has_probe(container.spec, ProbeKind::startup);
  state.ready = state.has_started && !has_probe(container.spec, ProbeKind::readiness);
  report();
}

void PodWorker::cannot_run(Running& container, std::string_view why) {
  container.state.reason = "CreateContainerError";
  container.state.message = why;
  tell("Warning", "Failed", fmt::format("Error: {}", why));
  report();
}

// What an answer means for the container. False: it is to end.
bool PodWorker::judge(Running& container, const Probe& probe, ProbeCount::Verdict verdict) {
  ContainerState& state = container.state;
  if (verdict == ProbeCount::Verdict::undecided) return true;
  const bool good = verdict == ProbeCount::Verdict::good;
  if (probe.kind != ProbeKind::readiness && !good) return false;
  const ContainerState before = state;
  if (probe.kind == ProbeKind::readiness) state.ready = good;
  if (probe.kind == ProbeKind::startup) {
    state.has_started = true;
    state.ready = !has_probe(container.spec, ProbeKind::readiness);
  }
  if (before.ready != state.ready || before.has_started != state.has_started) {
    report();
    changed_.notify();
  }
  return true;
}

// Until the container ends. The startup probe ends with its first success.
Async<Result<void>> PodWorker::keep_probing(Running* container, Probe probe) {
  const ContainerState& state = container->state;
  const bool startup = probe.kind == ProbeKind::startup;
  for (auto seen = changed_.count(); !startup && !state.has_started;)
    seen = co_await changed_.wait(seen);
  co_await place_.time.sleep(probe.initial_delay);
  ProbeCount count(probe);
  for (; !startup || !state.has_started; co_await place_.time.sleep(probe.period)) {
    bool success = probe.command.empty();
    if (!success) {
      Result<Output> answer = co_await container->process.exec(probe.command, probe.timeout);
      success = answer && answer->exit.success();
      if (!container->process.running()) co_return ok();
      if (!success)
        tell("Warning", "Unhealthy",
             fmt::format("{} probe failed: {}", probe_word(probe.kind), complaint(answer, probe)));
    }
    if (judge(*container, probe, count.after(success))) continue;
    Result<void> ended = co_await end_unhealthy(container, probe.kind);
    co_return ended;
  }
  co_return ok();
}

Async<Result<void>> PodWorker::end_unhealthy(Running* container, ProbeKind kind) {
  tell("Normal", "Killing",
       fmt::format("Container {} failed {} probe, will be restarted", container->state.name,
                   kind == ProbeKind::startup ? "startup" : "liveness"));
  container->process.signal(SIGTERM);
  const std::int64_t grace = int_or(pod_->json(), "spec/terminationGracePeriodSeconds", 30);
  co_await place_.time.sleep(std::chrono::seconds(grace));
  container->process.signal(SIGKILL);
  co_return ok();
}

// The process to its end, with its probes while it runs.
Async<Result<void>> PodWorker::watch_process(Running* container, Result<Exit>* ended,
                                             TaskGroup* group) {
  const auto begun = [this, container, group] {
    has_begun(*container);
    for (Probe& probe : probes_of(container->spec))
      group->spawn("probe", keep_probing(container, std::move(probe)));
  };
  *ended = co_await container->process.wait(begun);
  group->stop();
  co_return ok();
}

// Starts the container, again and again if need be, and waits for its end.
Async<Result<Exit>> PodWorker::run_once(Running* container) {
  ContainerState& state = container->state;
  Result<Exit> ended = Exit{};
  for (;;) {
    if (start_container(*container)) {
      TaskGroup group(place_.executor);
      group.spawn("container", watch_process(container, &ended, &group));
      Result<void> joined = co_await group.join();
      (void)joined;
      if (stopping_ || state.kind == ContainerState::Kind::running) break;
      const auto& lines = container->process.log()->lines;
      cannot_run(*container, lines.empty() ? "the container has ended" : lines.back().text);
    }
    co_await place_.time.sleep(std::min<Duration>(place_.retry, restart_pauses.first));
  }
  state.kind = ContainerState::Kind::terminated;
  state.ready = false;
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

}  // namespace nvdra::sandbox
