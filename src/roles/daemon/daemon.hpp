// One node's member of one domain, from its start to its farewell: the parts and how they know of
// each other.
//
//   list of members ──► Arrangement ──► files, nvidia-imex (Supervisor, Refresher)
//         ▲                                        │
//         └── Membership ◄── judge() ◄── ChildState, Connections, log lines
//
// Start: status socket first, so that the probes are answered; then everything at once. Stop: the
// parts end; then the entry is removed while nvidia-imex is told to end, both within limits.
#pragma once

#include "imex/child_state.hpp"
#include "imex/connections.hpp"
#include "imex/refresh.hpp"
#include "imex/supervisor.hpp"
#include "k8s/http_endpoint.hpp"
#include "roles/common/main_loop.hpp"
#include "roles/daemon/arrangement.hpp"
#include "roles/daemon/config.hpp"
#include "roles/daemon/herald.hpp"
#include "roles/daemon/membership.hpp"
#include "roles/daemon/verdict.hpp"

namespace nvdra::roles::daemon {

struct Tools {
  Command imex;
  Command question;
  Command domain;
};

class Daemon {
public:
  // `config` and `client` outlive it.
  Daemon(World world, const Config& config, k8s::Client& client, Tools tools, Random random);

  // Until cancelled, farewell included; never throws cancellation.
  Async<Result<void>> run();

  Verdict verdict() const;
  // Its id in nvidia-imex, while it is READY but for its connections, and has peers that can be
  // asked. They do not reach a loopback address (report 95).
  std::optional<std::int64_t> id_with_peers() const;
  k8s::HttpReply page(std::string_view path) const;
  const imex::Supervisor& supervisor() const { return supervisor_; }
  const imex::Refresher& refresher() const { return refresher_; }

private:
  Facts facts(const Circle& members) const;  // without the connections
  Circle circle() const;
  void note_connections();
  Async<Result<void>> run_tasks(TaskGroup& tasks);
  Async<Result<void>> be_thrifty();
  Async<void> say_farewell();
  Async<Result<void>> leave();
  Async<Result<void>> stop_child();
  void hear(std::string_view line);
  void tell(const imex::Turn& turn);
  std::string metrics() const;

  World world_;
  const Config& config_;
  k8s::Client& client_;
  Event news_;
  imex::Supervisor supervisor_;
  imex::Refresher refresher_;
  imex::ChildState state_;
  Membership membership_;
  Arrangement arrangement_;
  Herald herald_;
  imex::Connections connections_;

  std::string child_end_;
  std::string child_trouble_;
  std::optional<std::int64_t> identified_;
  std::uint64_t starts_ = 0;
  std::uint64_t crashes_ = 0;
  std::uint64_t notices_ = 0;
};

Self self_of(const Config& config);
// Where the members of the domain stand, by the gates.
Place place_of(const Config& config);

}  // namespace nvdra::roles::daemon
