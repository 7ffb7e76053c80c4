// The life of one pod on its node.
//
// Claims are prepared first; while that fails, the pod's event says why, and it is tried again 60
// to 90 s later, as a kubelet does (docs/pitfalls.md). Then the pod gets its address and the
// containers run, watched by their probes; those that end are restarted by the pod's policy (after
// 10 s, doubling, up to 5 min). When the pod is deleted its
// containers get SIGTERM, after its grace period SIGKILL; its claims are released, and only then
// its object goes. A pod whose containers have ended for good releases its claims as well, and its
// object stays. A deletion interrupts everything at once, also a call to a plugin that is under
// way.
#pragma once

#include "base/task_group.hpp"
#include "sandbox/kubelet_claims.hpp"
#include "sandbox/pod_container.hpp"
#include "sandbox/pod_files.hpp"
#include "sandbox/pod_network.hpp"
#include "sandbox/pod_probes.hpp"
#include "sandbox/pod_status.hpp"

#include <deque>

namespace nvdra::sandbox {

// What an image adds to this machine's files, by its name.
using PodImages = std::map<std::string, std::vector<cdi::Mount>>;

// What a worker needs of its node.
struct PodPlace {
  asio::any_io_executor executor;
  Time& time;
  Registry& registry;
  NodeClaims& claims;
  std::string node_address;
  unsigned node_number;
  PodNetwork* network;  // nullptr: pods have their node's address
  PodApi api;
  const PodImages& images;
  std::string cdi_directory;
  std::string scratch;  // a directory for the pod's containers; it goes with the pod
  std::string logs;     // an existing directory for their logs, which stay
  ContainerHelper helper;
  Duration retry;       // after a claim that was not prepared
  double retry_jitter;  // times a random number in [0, 1) is added
};

class PodWorker {
public:
  PodWorker(PodPlace place, ItemPtr pod);

  // Until the pod has gone or has ended for good and is deleted.
  Async<Result<void>> run();
  // Something about the pod has changed.
  void touch() { changed_.notify(); }

  const std::string& uid() const { return uid_; }
  // Of the containers that run.
  std::vector<pid_t> processes() const;
  // nullptr when there is none of that name; "" = the first.
  Container* container(std::string_view name);

private:
  struct Running {
    Running(const PodPlace& place, const Json& spec);
    Json spec;
    ContainerState state;
    Container process;
  };

  ItemPtr current() const;  // nullptr when it has gone or was replaced
  bool ending() const;
  void report();
  void tell(std::string_view type, std::string_view reason, std::string_view message);
  Duration retry_pause();

  Async<Result<void>> work();
  Async<Result<void>> stop_when_asked(TaskGroup* group);
  Async<Result<void>> prepare();
  Async<Result<void>> run_container(Running* container);
  Async<Result<Exit>> run_once(Running* container);
  Async<Result<void>> watch_process(Running* container, Result<Exit>* ended, TaskGroup* group);
  Async<Result<void>> keep_probing(Running* container, Probe probe);
  Async<Result<void>> end_unhealthy(Running* container, ProbeKind kind);
  bool judge(Running& container, const Probe& probe, ProbeCount::Verdict verdict);
  bool start_container(Running& container);
  void has_begun(Running& container);
  void cannot_run(Running& container, std::string_view why);
  Result<ContainerSpec> spec_of(const Running& container) const;
  bool attached();
  void detach();
  Async<void> stop_containers();
  Async<void> release();
  void remove_object();

  PodPlace place_;
  ItemPtr pod_;  // as it was last
  std::string uid_;
  std::string first_seen_;
  Event changed_;
  std::deque<Running> containers_;
  PodPort port_;
  bool attached_ = false;
  bool can_start_ = false;
  bool stopping_ = false;
  bool finished_ = false;
};

}  // namespace nvdra::sandbox
