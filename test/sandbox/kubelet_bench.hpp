// A kubelet with a registry and a DRA driver of the test's own, all on one loop and in real time.
#pragma once

#include "cdi/names.hpp"
#include "cdi/spec_dir.hpp"
#include "dra/server.hpp"
#include "fake/run_loop.hpp"
#include "fake/temp_dir.hpp"
#include "sandbox/kubelet_node.hpp"

#include <boost/asio/io_context.hpp>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace nvdra::sandbox {

// Gives every claim channel0 of the usual major, and can be told to fail or never to answer.
class TestDriver final : public dra::Plugin {
public:
  TestDriver(Time& time, std::string cdi) : time_(time), cdi_(std::move(cdi)) {}

  Async<Result<dra::Prepared>> prepare(dra::ClaimRef claim, dra::Deadline deadline) override {
    (void)deadline;
    calls.push_back("prepare " + claim.name);
    if (silent) co_await time_.sleep(1h);
    if (!refusal.empty()) co_return refuse(refusal);
    auto directory = cdi::SpecDir::open(cdi_);
    if (!directory) co_return std::move(directory).failure();
    cdi::Spec spec{.kind = std::string(cdi::claim_kind),
                   .devices = {{.name = cdi::claim_device(claim.uid, "channel-0"),
                                .edits = {.device_nodes = {{.path = channel, .major = 236}}}}}};
    const Result<void> put = directory->put(cdi::claim_file(claim.uid), spec);
    if (!put) co_return put.failure();
    co_return dra::Prepared{
        {{"channel"}, "node-1", "channel-0", {cdi::claim_device_id(claim.uid, "channel-0")}}};
  }

  Async<Result<void>> unprepare(dra::ClaimRef claim, dra::Deadline deadline) override {
    (void)deadline;
    calls.push_back("unprepare " + claim.name);
    co_return ok();
  }

  static constexpr const char* channel = "/dev/nvidia-caps-imex-channels/channel0";
  std::vector<std::string> calls;
  std::string refusal;
  bool silent = false;

private:
  Time& time_;
  std::string cdi_;
};

struct BenchOptions {
  Duration call_limit = 45s;
  bool network = false;  // of the pods' own, where that is possible
  PodImages images = {};
};

class KubeletBench {
public:
  KubeletBench() : KubeletBench(BenchOptions{}) {}
  explicit KubeletBench(const BenchOptions& options);
  ~KubeletBench();

  void start_plugin();
  void stop_plugin();
  // Runs the loop until `condition` holds; false after `limit`.
  bool becomes(const std::function<bool()>& condition, Duration limit = 15s);

  // A pod of one container on this node that runs `script` in a shell; with `claim` it has a
  // claim of that name.
  void make_pod(const std::string& name, const std::string& script,
                const std::string& policy = "Always", const std::string& claim = {});
  // The same without claim; `more` is merged into the container.
  void make_pod_with(const std::string& name, const std::string& script, const Json& more);
  void delete_pod(const std::string& name, std::int64_t grace = 5);
  ItemPtr pod(const std::string& name);  // nullptr when it has gone
  std::string phase(const std::string& name);
  bool ready(const std::string& name);
  std::string log(const std::string& name);
  Result<int> exec(const std::string& name, std::vector<std::string> command);
  // Messages of the pod's events of this reason.
  std::vector<std::string> events(std::string_view reason);
  int event_count(std::string_view reason);

  asio::io_context loop{1};
  RealTime time;
  fake::TempDir folder;
  Registry registry{time};
  std::unique_ptr<PodNetwork> network;
  Kubelet kubelet;
  TestDriver driver;

private:
  void put_pod(const std::string& name, Json container, JsonObject spec, const std::string& claim);
  void make_claim(const std::string& name, const Item& pod);

  std::optional<dra::Server> server_;
  TaskGroup group_{loop.get_executor()};
};

}  // namespace nvdra::sandbox
