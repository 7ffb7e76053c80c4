#include "roles/daemon/daemon.hpp"

#include "base/log.hpp"
#include "base/resident.hpp"
#include "base/task_group.hpp"
#include "base/try.hpp"
#include "imex/imex_log.hpp"
#include "roles/common/names.hpp"
#include "roles/daemon/status_socket.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/this_coro.hpp>

#include <fmt/format.h>
#include <unistd.h>

namespace nvdra::roles::daemon {
namespace {

constexpr Duration farewell_limit = 8s;
constexpr Duration start_over = 5s;
constexpr Duration domain_limit = 10s;  // of nvidia-imex-ctl -N, which asks all peers

// One write a line, with the name of who says it.
void pass_on(std::string_view line) {
  if (line.empty()) return;
  const std::string text = fmt::format("nvidia-imex: {}\n", line);
  [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
}

bool is_loopback(const std::string& address) {
  boost::system::error_code failed;
  const auto parsed = asio::ip::make_address(address, failed);
  return !failed && parsed.is_loopback();
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
      herald_(world.loop.get_executor(), client, world.time, config),
      connections_({.time = world.time,
                    .news = news_,
                    .ask =
                        [this, command = std::move(tools.domain)] {
                          return imex::ask_domain({.command = command, .limit = domain_limit},
                                                  world_.time);
                        },
                    .own = [this] { return id_with_peers(); },
                    .changed = [this] { note_connections(); }}) {}

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
  tasks.spawn("connections", connections_.run());
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

Circle Daemon::circle() const {
  const k8s::ObjectPtr object = membership_.object();
  return object ? circle_of(*object, membership_.place().list, config_.clique) : Circle{};
}

Facts Daemon::facts(const Circle& members) const {
  Facts facts;
  facts.membership_trouble = membership_.trouble();
  facts.files_trouble = arrangement_.trouble();
  const Member* own = members.own(membership_.self());
  if (own && own->ip == config_.pod_ip) facts.index = own->index;
  facts.applied = arrangement_.applied();
  const imex::Standing& standing = supervisor_.standing();
  facts.child_up = supervisor_.up() && standing.edition == supervisor_.wished().edition;
  facts.crashes = standing.crashes;
  facts.child_end = child_end_;
  facts.child_trouble = child_trouble_;
  facts.identified = config_.names() ? identified_ : std::nullopt;
  facts.answer = state_.answer();
  return facts;
}

Verdict Daemon::verdict() const {
  const Circle members = circle();
  Facts known = facts(members);
  known.unconnected = connection_trouble(connections_.faults(), members);
  return judge(known);
}

std::optional<std::int64_t> Daemon::id_with_peers() const {
  const Circle members = circle();
  if (members.members.size() < 2 || is_loopback(config_.pod_ip)) return std::nullopt;
  const Facts known = facts(members);
  if (!judge(known).ready) return std::nullopt;
  if (identified_) return identified_;
  return config_.names() ? known.index : std::nullopt;
}

// To resolve the peers again is all that can be done without harm.
void Daemon::note_connections() {
  if (!connections_.faults().empty()) {
    LOG_WARNING("nvidia-imex is READY but not connected with READY peers",
                {{"why", connection_trouble(connections_.faults(), circle())}});
    refresher_.want();
  }
  news_.notify();
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

}  // namespace nvdra::roles::daemon
