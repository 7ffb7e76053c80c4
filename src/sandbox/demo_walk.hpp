// What the demonstrations have in common: steps, expectations, and waiting for nodes and workloads.
#pragma once

#include "base/try.hpp"
#include "sandbox/demo_kubectl.hpp"
#include "sandbox/demo_stage.hpp"

#include <boost/asio/this_coro.hpp>

namespace nvdra::sandbox {

inline constexpr Duration demo_limit = std::chrono::seconds(20);  // of one thing to come about

class Walk {
public:
  Walk(Cluster& cluster, DemoKubectl& kubectl);

  // The error of `work` names the step.
  static Async<Result<void>> in_step(std::string step, Async<Result<void>> work);
  // An error that says what was expected, unless it holds.
  static Result<void> expect(bool holds, std::string_view what);

  // The title, what is simulated, and the wait for the nodes' devices and labels.
  Async<Result<void>> begin(std::string title);
  // After a failure: shows pods, warnings, and what the daemons have said.
  Async<void> explain();
  // Shows a command that must succeed; its output must hold `wanted`.
  Async<Result<void>> shows(std::string command, std::string wanted = {});
  // Shows a query that must find nothing.
  Async<Result<void>> shows_nothing(std::string command);
  // Waits until the pod has all its containers ready.
  Async<Result<void>> until_ready(std::string pod, std::string space = "default");
  // What keeps a pod from that, or "".
  Async<std::string> missing_of(std::string pod, std::string space = "default");
  // A field of an object, not shown: object_field("pod/x", "{.metadata.uid}").
  Async<std::string> field(std::string object, std::string path, std::string space = "default");

  Cluster& cluster;
  Stage stage;
  DemoKubectl& kubectl;

private:
  Async<std::string> nodes_missing();
};

// Plays a demonstration: `Demo(cluster, kubectl)`, then its play().
template <class Demo>
Async<Result<void>> play(Cluster& cluster) {
  auto executor = co_await asio::this_coro::executor;
  CO_TRY(auto kubectl, DemoKubectl::connect(executor, cluster.time(), cluster.registry(),
                                            cluster.server(), cluster.pods()));
  Demo demo(cluster, *kubectl);
  Result<void> played = co_await demo.play();
  co_return played;
}

// The guide's section "Validate host-managed IMEX", steps 1 to 5. The error names the step and what
// was expected.
Async<Result<void>> play_host_managed(Cluster& cluster);
// The guide's default mode with a domain of two nodes; then nvidia-imex is killed on one, a
// daemon's pod is deleted by force, and everything is taken down.
Async<Result<void>> play_driver_managed(Cluster& cluster);

}  // namespace nvdra::sandbox
