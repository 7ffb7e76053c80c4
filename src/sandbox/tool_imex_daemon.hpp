// The running daemon: its state, its connections and its command service. One loop.
#pragma once

#include "base/event.hpp"
#include "base/task_group.hpp"
#include "sandbox/tool_domain.hpp"
#include "sandbox/tool_facts.hpp"
#include "sandbox/tool_imex_config.hpp"
#include "sandbox/tool_imex_log.hpp"
#include "sandbox/tool_members.hpp"
#include "sandbox/tool_socket.hpp"

#include <boost/asio/io_context.hpp>

#include <deque>
#include <set>

namespace nvdra::sandbox {

// What is fixed when the daemon starts.
struct ImexSetup {
  ImexConfig config;
  std::vector<std::string> nodes;
  Self self;
  NodeFacts facts;
  std::string root;
  std::string version;  // as peers and nvidia-imex-ctl show it
};

struct ImexListeners {
  Fd peers;
  std::vector<Fd> commands;
};

// The word of -q, `since_start` after the start. Pure.
std::string imex_state(Duration since_start, const ImexFaults& faults);

class ImexDaemon {
public:
  ImexDaemon(asio::io_context& loop, Time& time, ImexLog& log, ImexSetup setup);

  // Until SIGTERM, SIGINT or SIGQUIT.
  Async<Result<void>> run(ImexListeners listeners);

private:
  // The connection to one other member, and what it says about itself.
  struct Link {
    Link(asio::any_io_executor executor, std::size_t to) : index(to), pause(std::move(executor)) {}
    std::size_t index;
    asio::steady_timer pause;
    std::shared_ptr<LineSocket> socket = {};
    char letter = 'N';
    Member said = {};
    int times = 0;
    bool again = false;  // SIGUSR1: at once, and the letter stays until the outcome is known
  };
  using Tried = Async<Result<std::shared_ptr<LineSocket>>>;

  Async<Result<void>> keep_link(Link* link);
  Async<Result<void>> use_link(Link* link, std::string address);
  Tried greet(Link* link, std::string address);
  bool accept_welcome(Link& link, const Json& welcome);
  void lost(Link& link, bool told);
  Async<Result<void>> watch_state();
  Async<Result<void>> accept_peers(Fd listening);
  Async<Result<void>> serve_peer(std::shared_ptr<LineSocket> socket);
  Async<Result<void>> accept_commands(Fd listening);
  Async<Result<void>> serve_command(std::shared_ptr<LineSocket> socket);
  Async<Result<void>> signals();
  void say_good_bye();
  void connect_again();

  Json greeting() const;
  Json news() const;
  void tell_peers();
  std::string own_row() const;
  DomainView view() const;
  ImexFaults faults();
  void enter(const std::string& state);
  void maybe_crash(const ImexFaults& faults);

  asio::io_context& loop_;
  Time& time_;
  ImexLog& log_;
  ImexSetup setup_;
  TaskGroup tasks_;
  std::deque<Link> links_;
  std::set<std::shared_ptr<LineSocket>> peers_;  // they connected to us
  std::string state_ = "INITIALIZING";
  std::string host_name_;
  ImexFaults last_faults_;
  Instant began_;
  Instant connected_again_;
  bool stopping_ = false;
};

}  // namespace nvdra::sandbox
