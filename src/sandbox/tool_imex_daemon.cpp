#include "sandbox/tool_imex_daemon.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <csignal>

namespace nvdra::sandbox {
namespace {

constexpr Duration usual_start = 100ms;
constexpr Duration while_starting = 20ms;
constexpr Duration look_again = 250ms;  // faults may change
constexpr Duration between_reconnects = 5s;

std::string own_host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  (void)::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

std::string imex_state(Duration since_start, const ImexFaults& faults) {
  if (!faults.state.empty()) return faults.state;
  const std::chrono::duration<double> slow(faults.slow_start);
  const Duration length = std::max(usual_start, std::chrono::duration_cast<Duration>(slow));
  if (since_start < length / 2) return "INITIALIZING";
  return since_start < length ? "INIT_GPU" : "READY";
}

ImexDaemon::ImexDaemon(asio::io_context& loop, Time& time, ImexLog& log, ImexSetup setup)
    : loop_(loop),
      time_(time),
      log_(log),
      setup_(std::move(setup)),
      tasks_(loop.get_executor()),
      host_name_(own_host_name()),
      began_(time.now()),
      connected_again_(time.now() - between_reconnects) {
  for (std::size_t i = 0; i < setup_.nodes.size(); ++i)
    if (i != setup_.self.index) links_.emplace_back(loop.get_executor(), i);
}

Async<Result<void>> ImexDaemon::run(ImexListeners listeners) {
  log_.info("Started processing of incoming messages.");
  tasks_.spawn("peers", accept_peers(std::move(listeners.peers)));
  for (Fd& fd : listeners.commands) tasks_.spawn("commands", accept_commands(std::move(fd)));
  log_.info(fmt::format("Creating gRPC channels to all peers (nPeers = {}).", setup_.nodes.size()));
  for (Link& link : links_) tasks_.spawn("link", keep_link(&link));
  if (setup_.config.quorum != "FULL")
    log_.info(
        "IMEX_WAIT_FOR_QUORUM != FULL, continuing initialization without waiting for connections "
        "to all nodes.");
  log_.info("GPU event successfully subscribed");
  tasks_.spawn("state", watch_state());
  tasks_.spawn("signals", signals());
  Result<void> ended = co_await tasks_.join();
  co_return ended;
}

// The faults as the file says now; while it cannot be read, as it said last.
ImexFaults ImexDaemon::faults() {
  Result<NodeFaults> read = read_faults(setup_.root);
  if (!read)
    log_.write(ImexLevel::error, read.error().text());
  else
    last_faults_ = read->imex;
  return last_faults_;
}

void ImexDaemon::maybe_crash(const ImexFaults& faults) {
  if (!faults.crash_after) return;
  if (time_.now() - began_ < std::chrono::duration<double>(*faults.crash_after)) return;
  log_.write(ImexLevel::critical, "Unexpected error, the daemon ends");
  ::_exit(faults.exit);
}

void ImexDaemon::enter(const std::string& state) {
  if (state == state_) return;
  state_ = state;
  if (state == "READY")
    for (const imex::Gpu& gpu : setup_.facts.gpus)
      log_.info(fmt::format("GPU id: {}, UUID: {}", 590080 + gpu.index, gpu.uuid));
  tell_peers();
}

Async<Result<void>> ImexDaemon::watch_state() {
  for (;;) {
    const ImexFaults now = faults();
    maybe_crash(now);
    std::string state = imex_state(time_.now() - began_, now);
    const bool complete =
        std::ranges::all_of(links_, [](const Link& l) { return l.letter == 'C'; });
    if (state == "READY" && setup_.config.quorum == "FULL" && !complete)
      state = "WAITING_FOR_PEERS";
    if (!stopping_) enter(state);
    co_await time_.sleep(state_ == "READY" ? look_again : while_starting);
  }
}

std::string ImexDaemon::own_row() const {
  std::string row(setup_.nodes.size(), 'C');
  for (const Link& link : links_) row[link.index] = link.letter;
  return row;
}

DomainView ImexDaemon::view() const {
  DomainView view = absent_domain(setup_.nodes);
  view.asked = setup_.self.index;
  Member& own = view.members[setup_.self.index];
  own = {own.host, host_name_, state_, setup_.version, own_row()};
  if (last_faults_.unconnected)
    for (const Link& link : links_) own.row[link.index] = 'N';
  for (const Link& link : links_) {
    if (link.letter != 'C' || link.said.row.size() != setup_.nodes.size()) continue;
    const std::string host = view.members[link.index].host;
    view.members[link.index] = link.said;
    view.members[link.index].host = host;
  }
  return view;
}

Json ImexDaemon::greeting() const {
  return JsonObject{{"id", setup_.self.index},
                    {"version", setup_.version},
                    {"nodes", nodes_key(setup_.nodes)},
                    {"hostName", host_name_}};
}

Json ImexDaemon::news() const {
  return JsonObject{{"state", state_}, {"row", own_row()}};
}

void ImexDaemon::tell_peers() {
  const std::string text = to_text(news());
  for (const auto& peer : peers_) peer->send(text);
}

Async<Result<void>> ImexDaemon::accept_commands(Fd listening) {
  asio::posix::stream_descriptor socket(loop_, listening.release());
  for (;;) {
    auto accepted = co_await accept_on(socket);
    if (accepted) tasks_.spawn("command", serve_command(*accepted));
  }
}

Async<Result<void>> ImexDaemon::serve_command(std::shared_ptr<LineSocket> socket) {
  auto asked = co_await socket->line();
  if (!asked) co_return ok();
  const ImexFaults now = faults();
  if (now.hang) {
    auto gone = co_await socket->line();
    (void)gone;
    co_return ok();
  }
  if (*asked == "DOMAIN")
    socket->send(to_text(to_json(view())));
  else
    socket->send(now.answer.empty() ? state_ : now.answer);
  co_return ok();
}

Async<Result<void>> ImexDaemon::signals() {
  asio::signal_set set(loop_, SIGTERM, SIGINT, SIGQUIT);
  set.add(SIGUSR1);
  set.add(SIGHUP);
  for (;;) {
    auto [failed, number] = co_await set.async_wait(asio::as_tuple(asio::use_awaitable));
    if (failed) continue;
    if (number == SIGUSR1) {
      connect_again();
    } else if (number == SIGHUP) {
      log_.info(fmt::format("In-memory log: state {}, connections {}", state_, own_row()));
    } else if (!faults().ignore_term) {
      say_good_bye();
      tasks_.stop();
    }
  }
}

void ImexDaemon::say_good_bye() {
  stopping_ = true;
  state_ = "SHUTTING_DOWN";
  log_.info("Shutting down, telling the peers");
  const std::string text = to_text(JsonObject{{"bye", setup_.self.index}});
  for (const auto& peer : peers_) peer->send(text);
  if (!setup_.config.command_socket.empty()) ::unlink(setup_.config.command_socket.c_str());
}

void ImexDaemon::connect_again() {
  if (time_.now() - connected_again_ < between_reconnects) return;
  connected_again_ = time_.now();
  log_.info("Restarting the connections to all peers");
  for (Link& link : links_) {
    link.again = true;
    if (link.socket) link.socket->end();
    link.pause.cancel();
  }
}

}  // namespace nvdra::sandbox
