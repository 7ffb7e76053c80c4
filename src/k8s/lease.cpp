#include "k8s/lease.hpp"

#include "base/log.hpp"
#include "base/task_group.hpp"
#include "base/within.hpp"

#include <boost/asio/this_coro.hpp>

#include <fmt/format.h>

namespace nvdra::k8s {
namespace {

constexpr double acquire_jitter = 1.2;

ResourceType lease_type() {
  return {.group = "coordination.k8s.io", .version = "v1", .plural = "leases", .kind = "Lease"};
}

std::string seconds_text(Duration length) {
  return fmt::format("{}s", std::chrono::duration<double>(length).count());
}

Async<Result<void>> run_work(std::function<Async<Result<void>>()> work, Result<void>* ended,
                             TaskGroup* group) {
  *ended = co_await work();
  group->stop();
  co_return ok();
}

}  // namespace

LeaseRecord record_of(const Json& lease) {
  return {.holder = std::string(text_or_empty(lease, "spec/holderIdentity")),
          .duration = std::chrono::seconds(int_or(lease, "spec/leaseDurationSeconds", 0)),
          .acquire_time = std::string(text_or_empty(lease, "spec/acquireTime")),
          .renew_time = std::string(text_or_empty(lease, "spec/renewTime")),
          .transitions = int_or(lease, "spec/leaseTransitions", 0)};
}

void set_record(Json& lease, const LeaseRecord& record) {
  Json& spec = lease.as_object()["spec"];
  if (!spec.is_object()) spec = JsonObject{};
  JsonObject& fields = spec.get_object();
  fields["holderIdentity"] = record.holder;
  fields["leaseDurationSeconds"] = record.duration.count();
  fields["acquireTime"] = record.acquire_time;
  fields["renewTime"] = record.renew_time;
  fields["leaseTransitions"] = record.transitions;
}

Move next_move(const Observed& observed, std::string_view identity, Instant now) {
  const LeaseRecord& record = observed.record;
  if (record.holder == identity) return Move::renew;
  if (record.holder.empty()) return Move::take;
  return now - observed.since >= record.duration ? Move::take : Move::wait;
}

Result<void> check(const LeaseConfig& config) {
  if (config.retry_period <= Duration::zero())
    return refuse(fmt::format("the lease's retry period is {}, it must be more than 0",
                              seconds_text(config.retry_period)));
  if (config.renew_deadline * 10 <= config.retry_period * 12)
    return refuse(fmt::format(
        "the lease's renew deadline is {}, it must be more than 1.2 times its retry period of {}",
        seconds_text(config.renew_deadline), seconds_text(config.retry_period)));
  if (config.duration <= config.renew_deadline)
    return refuse(
        fmt::format("the lease's duration is {}, it must be longer than its renew deadline of {}",
                    seconds_text(config.duration), seconds_text(config.renew_deadline)));
  if (config.duration < 1s)
    return refuse(fmt::format("the lease's duration is {}, it must be at least 1s",
                              seconds_text(config.duration)));
  return ok();
}

LeaderElection::LeaderElection(Client& client, Time& time, Random random, LeaseConfig config)
    : client_(client), time_(time), random_(std::move(random)), config_(std::move(config)) {}

Async<Result<void>> LeaderElection::run(std::function<Async<Result<void>>()> work) {
  std::exception_ptr thrown;
  Result<void> ended;
  try {
    co_await acquire();
    co_await lead(std::move(work), ended);
  } catch (...) {
    thrown = std::current_exception();
  }
  leading_ = false;
  // A coroutine that has been cancelled may not await; but the lease must not be left to run out.
  auto state = co_await asio::this_coro::cancellation_state;
  bool cancelled = state.cancelled() != asio::cancellation_type::none;
  if (cancelled) co_await asio::this_coro::reset_cancellation_state();
  if (maybe_ours_) co_await give_back();
  if (thrown) std::rethrow_exception(thrown);
  if (cancelled) throw boost::system::system_error(asio::error::operation_aborted);
  if (lost_) co_return *lost_;
  co_return ended;
}

Async<void> LeaderElection::acquire() {
  LOG_INFO(1, "Waiting for leadership",
           {{"lease", config_.key.text()}, {"identity", config_.identity}});
  for (;;) {
    std::string holder_before = holder();
    Result<Tried> tried = co_await within(time_, config_.renew_deadline, try_once());
    if (tried && *tried == Tried::ours) break;
    if (!tried) complain(tried.error());
    if (tried && holder_before != holder())
      LOG_INFO(1, "Another replica leads", {{"lease", config_.key.text()}, {"holder", holder()}});
    auto jitter = config_.retry_period * (acquire_jitter * random_());
    co_await time_.sleep(config_.retry_period + std::chrono::duration_cast<Duration>(jitter));
  }
}

// Returns when `work` has ended, for whatever reason.
Async<void> LeaderElection::lead(std::function<Async<Result<void>>()> work, Result<void>& ended) {
  leading_ = true;
  trouble_.clear();
  LOG_INFO(1, "Became leader", {{"lease", config_.key.text()}, {"identity", config_.identity}});
  auto executor = co_await asio::this_coro::executor;
  TaskGroup group(executor);
  group.spawn("work", run_work(std::move(work), &ended, &group));
  group.spawn("lease", renew_until_lost());
  Result<void> joined = co_await group.join();
  (void)joined;  // the loss is in lost_, the work's own end in `ended`
}

Async<Result<void>> LeaderElection::renew_until_lost() {
  for (;;) {
    co_await time_.sleep(config_.retry_period);
    Result<void> renewed = co_await within(time_, config_.renew_deadline, renew_once());
    if (renewed) continue;
    bool late = renewed.error().code == boost::system::errc::timed_out;
    auto unheard = fmt::format("not renewed for {}{}{}", seconds_text(config_.renew_deadline),
                               trouble_.empty() ? "" : ": ", trouble_);
    lost_ = refuse(fmt::format("lost the lease {}: {}", config_.key.text(),
                               late ? unheard : renewed.error().text()));
    leading_ = false;
    LOG_INFO(1, "Lost leadership, stopping the work",
             {{"lease", config_.key.text()}, {"err", lost_->error.text()}});
    co_return *lost_;
  }
}

// Tries until the lease has been renewed. The only error: another one holds it.
Async<Result<void>> LeaderElection::renew_once() {
  for (;;) {
    Result<Tried> tried = co_await within(time_, config_.renew_deadline / 2, try_once());
    if (tried && *tried == Tried::ours) break;
    if (tried) co_return refuse(fmt::format("{} holds it now", holder()));
    complain(tried.error());
    co_await time_.sleep(config_.retry_period);
  }
  trouble_.clear();
  co_return ok();
}

Async<Result<LeaderElection::Tried>> LeaderElection::try_once() {
  bool sure = leading_ && holder() == config_.identity &&
              time_.now() - observed_.since < observed_.record.duration;
  if (sure) {
    Result<void> renewed = co_await write(ours());
    if (renewed) co_return Tried::ours;
    LOG_INFO(4, "Cannot renew the lease without reading it first",
             {{"err", renewed.error().text()}});
  }
  Result<void> got = co_await read();
  bool absent = !got && got.error().code == Errc::not_found;
  if (!got && !absent) co_return std::move(got).failure();
  if (!absent && next_move(observed_, config_.identity, time_.now()) == Move::wait)
    co_return Tried::held_by_another;
  Result<void> written = co_await (absent ? create() : write(ours()));
  if (!written) co_return std::move(written).failure();
  co_return Tried::ours;
}

LeaseRecord LeaderElection::ours() const {
  std::string now = rfc3339_micro(time_.wall());
  LeaseRecord next{.holder = config_.identity,
                   .duration = std::chrono::floor<std::chrono::seconds>(config_.duration),
                   .acquire_time = now,
                   .renew_time = now,
                   .transitions = observed_.record.transitions};
  if (holder() == config_.identity) {
    next.acquire_time = observed_.record.acquire_time;
  } else {
    ++next.transitions;
  }
  return next;
}

Async<Result<void>> LeaderElection::create() {
  LeaseRecord record = ours();
  record.acquire_time = record.renew_time;
  record.transitions = 0;
  Json lease{{"metadata", {{"name", config_.key.name}, {"namespace", config_.key.space}}}};
  set_record(lease, record);
  maybe_ours_ = true;
  auto created = co_await client_.create_urgent(lease_type(), config_.key.space, std::move(lease));
  if (!created) co_return std::move(created).failure();
  observe(*created);
  co_return ok();
}

Async<Result<void>> LeaderElection::write(LeaseRecord record) {
  Json lease = lease_;
  set_record(lease, record);
  maybe_ours_ = true;
  auto updated = co_await client_.update(lease_type(), config_.key, std::move(lease), true);
  if (!updated) co_return std::move(updated).failure();
  observe(*updated);
  co_return ok();
}

Async<Result<void>> LeaderElection::read() {
  Result<Object> lease = co_await client_.get_urgent(lease_type(), config_.key);
  if (!lease) co_return std::move(lease).failure();
  observe(*lease);
  co_return ok();
}

Async<void> LeaderElection::give_back() {
  Result<void> released = co_await within(time_, config_.renew_deadline, release());
  if (released) {
    LOG_INFO(1, "Gave up the lease", {{"lease", config_.key.text()}});
  } else {
    LOG_WARNING("Cannot release the lease, it will run out",
                {{"lease", config_.key.text()}, {"err", released.error().text()}});
  }
}

// The version may have been overtaken by a renewal of ours that was given up: then once more.
Async<Result<void>> LeaderElection::release() {
  for (int tries = 2;; --tries) {
    Result<void> got = co_await read();
    bool absent = !got && got.error().code == Errc::not_found;
    if (absent || (got && holder() != config_.identity)) co_return ok();
    if (!got) co_return got;
    std::string now = rfc3339_micro(time_.wall());
    Result<void> written = co_await write({.holder = "",
                                           .duration = 1s,
                                           .acquire_time = now,
                                           .renew_time = now,
                                           .transitions = observed_.record.transitions});
    if (written || tries == 1 || written.error().code != Errc::conflict) co_return written;
  }
}

void LeaderElection::observe(const Object& lease) {
  lease_ = lease.json();
  LeaseRecord record = record_of(lease_);
  if (record != observed_.record) observed_ = {std::move(record), time_.now()};
}

void LeaderElection::complain(const Error& error) {
  // The same trouble every few seconds is told once.
  if (error.text() == trouble_) return;
  trouble_ = error.text();
  LOG_WARNING("Cannot get or renew the lease, retrying",
              {{"lease", config_.key.text()}, {"err", trouble_}});
}

}  // namespace nvdra::k8s
