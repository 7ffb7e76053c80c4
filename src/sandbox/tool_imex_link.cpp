// The connections between the daemons of a domain.
//
// A daemon connects to each other member and greets with a line of JSON: its id, version, the key
// of its nodes file. It is answered in the same way, and from then on told the other's state and
// row of connections whenever they change. A last line {"bye": id} announces an orderly end.
#include "base/within.hpp"
#include "sandbox/tool_imex_daemon.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fmt/format.h>

namespace nvdra::sandbox {
namespace {

constexpr Duration first_pause = 500ms;
constexpr Duration longest_pause = 3s;
constexpr Duration greeting_limit = 3s;
constexpr int complain_every = 20;  // tries: about once a minute

Async<Result<std::string>> ask(std::shared_ptr<LineSocket> socket, std::string text) {
  socket->send(text);
  auto line = co_await socket->line();
  co_return line;
}

}  // namespace

Async<Result<void>> ImexDaemon::keep_link(Link* link) {
  const std::string& node = setup_.nodes[link->index];
  Duration pause = first_pause;
  for (int attempt = 1;; ++attempt) {
    const std::string address = address_of_host(node, setup_.root);
    const int times = link->times;
    link->again = false;
    if (!address.empty()) {
      auto used = co_await use_link(link, address);
      (void)used;
    }
    if (link->letter == 'V' || link->letter == 'M') co_return ok();
    if (link->times != times) {
      pause = first_pause;
      attempt = 0;
    }
    if (link->again) continue;
    if (link->letter == 'C') lost(*link, false);
    if (attempt % complain_every == 1)
      log_.info(fmt::format("Attempting connection for target node {} - {}:{}, attempt #{}",
                            link->index, node, setup_.config.server_port, attempt));
    link->pause.expires_after(pause);
    auto [woken] = co_await link->pause.async_wait(asio::as_tuple(asio::use_awaitable));
    (void)woken;
    pause = std::min(pause * 2, longest_pause);
  }
}

// One connection, from the greeting to its end.
Async<Result<void>> ImexDaemon::use_link(Link* link, std::string address) {
  auto greeted = co_await greet(link, address);
  if (!greeted) co_return std::move(greeted).failure();
  auto socket = *greeted;
  link->socket = socket;
  ++link->times;
  link->letter = 'C';
  log_.info(
      fmt::format("Connection established to node {} with ip address {}. Number of times "
                  "connected: {}",
                  link->index, address, link->times));
  tell_peers();
  for (bool told = false;;) {
    auto line = co_await socket->line();
    if (!line) {
      link->socket.reset();
      if (!link->again) lost(*link, told);
      co_return ok();
    }
    const Result<Json> news = parse_json(*line);
    if (!news) continue;
    if (find(*news, "bye")) {
      told = true;
      log_.info(fmt::format("Received notification of shutdown from node {} - {}", link->index,
                            setup_.nodes[link->index]));
      continue;
    }
    link->said.state = text_or_empty(*news, "state");
    link->said.row = text_or_empty(*news, "row");
  }
}

ImexDaemon::Tried ImexDaemon::greet(Link* link, std::string address) {
  auto connected = co_await within(time_, greeting_limit,
                                   LineSocket::connect(address, setup_.config.server_port));
  if (!connected) co_return connected;
  auto answer = co_await within(time_, greeting_limit, ask(*connected, to_text(greeting())));
  if (!answer) co_return std::move(answer).failure();
  const Result<Json> welcome = parse_json(*answer);
  if (!welcome || !accept_welcome(*link, *welcome)) co_return errno_failure("greet", EPROTO);
  co_return connected;
}

bool ImexDaemon::accept_welcome(Link& link, const Json& welcome) {
  const char before = link.letter;
  link.said = {};
  link.said.version = text_or_empty(welcome, "version");
  link.said.host_name = text_or_empty(welcome, "hostName");
  if (text_or_empty(welcome, "nodes") != nodes_key(setup_.nodes)) {
    link.letter = 'M';
    log_.write(ImexLevel::error,
               fmt::format("Node configuration mapping mismatch with node {} - {}", link.index,
                           setup_.nodes[link.index]));
  } else if (link.said.version != setup_.version) {
    link.letter = 'V';
    log_.write(ImexLevel::error,
               fmt::format("Version mismatch with node {} - {}: {}, this node has {}", link.index,
                           setup_.nodes[link.index], link.said.version, setup_.version));
  } else {
    return int_or(welcome, "id", -1) == static_cast<std::int64_t>(link.index);
  }
  if (before != link.letter) tell_peers();
  return false;
}

// The connection is gone, or a renewed one did not come about.
void ImexDaemon::lost(Link& link, bool told) {
  link.letter = told || setup_.config.grace_seconds == 0 ? 'D' : 'R';
  link.said = {};
  if (!told)
    log_.write(ImexLevel::error,
               fmt::format("Node disconnect event detected for node {} with address {}, attempting "
                           "to reconnect",
                           link.index, setup_.nodes[link.index]));
  tell_peers();
}

Async<Result<void>> ImexDaemon::accept_peers(Fd listening) {
  asio::posix::stream_descriptor socket(loop_, listening.release());
  for (;;) {
    auto accepted = co_await accept_on(socket);
    if (accepted) tasks_.spawn("peer", serve_peer(*accepted));
  }
}

Async<Result<void>> ImexDaemon::serve_peer(std::shared_ptr<LineSocket> socket) {
  auto greeted = co_await within(time_, greeting_limit, socket->line());
  if (!greeted) co_return ok();
  const Result<Json> hello = parse_json(*greeted);
  if (!hello) co_return ok();
  socket->send(to_text(greeting()));
  if (text_or_empty(*hello, "nodes") == nodes_key(setup_.nodes)) {
    peers_.insert(socket);
    socket->send(to_text(news()));
  }
  auto gone = co_await socket->line();
  (void)gone;
  peers_.erase(socket);
  co_return ok();
}

}  // namespace nvdra::sandbox
