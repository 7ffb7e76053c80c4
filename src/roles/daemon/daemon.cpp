#include "roles/daemon/daemon.hpp"

#include "base/log.hpp"
#include "base/metrics.hpp"
#include "base/resident.hpp"
#include "base/task_group.hpp"
#include "base/try.hpp"
#include "imex/imex_log.hpp"
#include "roles/common/names.hpp"
#include "roles/daemon/status_socket.hpp"

#include <boost/asio/this_coro.hpp>

#include <fmt/format.h>
#include <unistd.h>

namespace nvdra::roles::daemon {
namespace {

constexpr Duration farewell_limit = 8s;
constexpr Duration start_over = 5s;

// One write a line, with the name of who says it.
void pass_on(std::string_view line) {
  if (line.empty()) return;
  const std::string text = fmt::format("nvidia-imex: {}\n", line);
  [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
}

double seconds(Duration length) {
  return std::chrono::duration<double>(length).count();
}

}  // namespace

Self self_of(const Config& config) {
  return {.domain = config.domain,
          .clique = config.clique,
          .node = config.node,
          .address = config.pod_ip,
          .pod_name = config.pod_name,
          .pod_uid = config.pod_uid,
          .pod_space = config.pod_space,
          .slots = config.slots};
}

Place place_of(const Config& config) {
  if (config.cliques())
    return {MemberList::clique_daemons,
            cliques(),
            {config.pod_space, clique_object_name(config.domain, config.clique)}};
  return {MemberList::domain_nodes, compute_domains(), {config.domain_space, config.domain_name}};
}

Daemon::Daemon(World world, const Config& config, k8s::Client& client, Tools tools, Random random)
    : world_(world),
      config_(config),
      client_(client),
      news_(world.loop.get_executor()),
      supervisor_(world.loop.get_executor(), world.time,
                  {.command = std::move(tools.imex),
                   .line = [this](std::string_view line) { hear(line); },
                   .story = [this](const imex::Turn& turn) { tell(turn); }}),
      refresher_(world.loop.get_executor(), world.time, supervisor_),
      state_(world.loop.get_executor(), world.time, supervisor_,
             {.command = std::move(tools.question)}, [this] { news_.notify(); }),
      membership_({.executor = world.loop.get_executor(),
                   .client = client,
                   .time = world.time,
                   .random = std::move(random),
                   .news = news_,
                   .ready = [this] { return verdict().ready; }},
                  place_of(config), self_of(config)),
      arrangement_({.executor = world.loop.get_executor(),
                    .time = world.time,
                    .news = news_,
                    .supervisor = supervisor_,
                    .refresher = refresher_,
                    .object = [this] { return membership_.object(); }},
                   {.list = membership_.place().list,
                    .names = config.names(),
                    .hosts_file = config.hosts_file,
                    .nodes_file = config.nodes_file()},
                   self_of(config)),
      herald_(world.loop.get_executor(), client, world.time, config) {}

Async<Result<void>> Daemon::run() {
  TaskGroup tasks(world_.loop.get_executor());
  Result<void> ended = co_await run_tasks(tasks);
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  co_await say_farewell();
  co_return ended;
}

// Does not throw: cancellation is an ordinary end here, because the farewell follows.
Async<Result<void>> Daemon::run_tasks(TaskGroup& tasks) try {
  auto executor = world_.loop.get_executor();
  tasks.spawn("status socket", serve_status(executor, world_.time, config_.status_socket,
                                            [this](std::string_view path) { return page(path); }));
  tasks.spawn("membership", membership_.run());
  tasks.spawn("arrangement", arrangement_.run());
  tasks.spawn("nvidia-imex", supervisor_.run());
  tasks.spawn("IMEX state", state_.run());
  tasks.spawn("refresh", refresher_.run());
  tasks.spawn("pod", herald_.run(news_, [this] { return verdict(); }));
  tasks.spawn("events", herald_.send_events());
  tasks.spawn("thrift", be_thrifty());
  Result<void> ended = co_await tasks.join();
  co_return ended;
} catch (const boost::system::system_error& thrown) {
  if (thrown.code() != asio::error::operation_aborted) throw;
  co_return ok();
}

// The start is over once this member has been ready for a while.
Async<Result<void>> Daemon::be_thrifty() {
  while (!verdict().ready) {
    const auto count = co_await news_.wait(news_.count());
    (void)count;
  }
  co_await world_.time.sleep(start_over);
  give_back_code();
  co_return ok();
}

Async<void> Daemon::say_farewell() {
  TaskGroup tasks(world_.loop.get_executor());
  tasks.spawn("leave", leave());
  tasks.spawn("stop nvidia-imex", stop_child());
  Result<void> done = co_await tasks.join();
  (void)done;  // both have told what went wrong
}

Async<Result<void>> Daemon::leave() {
  Result<bool> gone = co_await membership_.leave(farewell_limit);
  if (!gone) {
    LOG_ERROR("Cannot leave the domain", {{"err", gone.error().text()}});
  } else if (*gone) {
    LOG_INFO(0, log::Plain{fmt::format(
                    "Successfully removed daemon with IP {} from {} {} (from ComputeDomain {}/{})",
                    config_.pod_ip, config_.cliques() ? "CDClique" : "status of",
                    membership_.place().key.name, config_.domain_space, config_.domain_name)});
  }
  co_return ok();
}

Async<Result<void>> Daemon::stop_child() {
  co_await supervisor_.stop();
  co_return ok();
}

Verdict Daemon::verdict() const {
  Facts facts;
  const k8s::ObjectPtr object = membership_.object();
  facts.membership_trouble = membership_.trouble();
  facts.files_trouble = arrangement_.trouble();
  if (object) {
    const Circle circle = circle_of(*object, membership_.place().list, config_.clique);
    const Member* own = circle.own(membership_.self());
    if (own && own->ip == config_.pod_ip) facts.index = own->index;
  }
  facts.applied = arrangement_.applied();
  const imex::Standing& standing = supervisor_.standing();
  facts.child_up = supervisor_.up() && standing.edition == supervisor_.wished().edition;
  facts.crashes = standing.crashes;
  facts.child_end = child_end_;
  facts.child_trouble = child_trouble_;
  facts.identified = config_.names() ? identified_ : std::nullopt;
  facts.answer = state_.answer();
  return judge(facts);
}

void Daemon::hear(std::string_view line) {
  pass_on(line);
  const imex::LineMeaning meaning = imex::read_log_line(line);
  if (meaning.identified) identified_ = meaning.identified;
  if (!meaning.trouble.empty()) {
    if (meaning.trouble != child_trouble_)
      LOG_ERROR("nvidia-imex is in trouble", {{"why", meaning.trouble}});
    child_trouble_ = meaning.trouble;
  }
  if (!meaning.notice.empty()) {
    ++notices_;
    LOG_WARNING("nvidia-imex warns", {{"why", meaning.notice}});
  }
  // While it is READY only what is out of the ordinary makes us ask.
  const imex::Answer* answer = state_.answer();
  const bool ordinary = line.find("[INFO]") != std::string_view::npos;
  if (!answer || !answer->ready || !ordinary) state_.stir();
}

void Daemon::tell(const imex::Turn& turn) {
  using What = imex::Turn::What;
  switch (turn.what) {
    case What::started:
      ++starts_;
      identified_.reset();
      child_trouble_.clear();
      LOG_INFO(0, "Started nvidia-imex", {{"pid", turn.pid}});
      break;
    case What::not_started:
      ++crashes_;
      child_end_ = turn.why;
      LOG_ERROR("Cannot start nvidia-imex, retrying",
                {{"err", turn.why}, {"pauseSeconds", seconds(turn.pause)}});
      break;
    case What::crashed:
      ++crashes_;
      child_end_ = turn.exit.text();
      LOG_WARNING("nvidia-imex ended by itself, starting it again",
                  {{"pid", turn.pid},
                   {"end", turn.exit.text()},
                   {"livedSeconds", seconds(turn.lived)},
                   {"pauseSeconds", seconds(turn.pause)}});
      break;
    case What::ended:
      LOG_INFO(0, "nvidia-imex has ended", {{"pid", turn.pid}, {"end", turn.exit.text()}});
      break;
    case What::told_to_end: LOG_INFO(1, "Telling nvidia-imex to end", {{"pid", turn.pid}}); break;
    case What::killed:
      LOG_WARNING("nvidia-imex does not end, killing it", {{"pid", turn.pid}});
      break;
  }
  state_.stir();
  news_.notify();
}

k8s::HttpReply Daemon::page(std::string_view path) const {
  if (path == "/metrics") return {200, "text/plain; version=0.0.4; charset=utf-8", metrics()};
  if (path == "/healthz") return {.body = "ok\n"};
  if (path != "/check" && path != "/readyz") return {.status = 404, .body = "404 page not found\n"};
  const Verdict now = verdict();
  if (now.ready) return {.body = now.state + "\n"};
  return {.status = 503, .body = now.state + ": " + now.reason + "\n"};
}

std::string Daemon::metrics() const {
  Metrics metrics;
  const Verdict now = verdict();
  metrics
      .gauge("nvdra_imex_ready", "1 while this member of its domain is ready, by state.",
             {{"state", now.state}})
      .set(now.ready ? 1 : 0);
  const auto count = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    metrics.counter(name, help).add(static_cast<double>(value));
  };
  count("nvdra_imex_starts_total", "Starts of nvidia-imex.", starts_);
  count("nvdra_imex_crashes_total", "Ends of nvidia-imex that nobody wanted.", crashes_);
  count("nvdra_imex_refreshes_total", "Signals to nvidia-imex to resolve its peers again.",
        refresher_.sent());
  count("nvdra_imex_queries_total", "Questions to nvidia-imex-ctl.", state_.questions());
  count("nvdra_imex_mismatches_total", "Times a peer had another nodes file.", notices_);
  count("nvdra_membership_refusals_total", "Writes of the list of members that came too late.",
        membership_.refused());
  client_.add_counts(metrics);
  return metrics.text();
}

}  // namespace nvdra::roles::daemon
