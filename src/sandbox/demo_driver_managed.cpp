#include "base/try.hpp"
#include "imex/text.hpp"
#include "sandbox/demo_manifests.hpp"
#include "sandbox/demo_walk.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::sandbox {
namespace {

constexpr std::string_view space = driver_namespace;
constexpr std::string_view channel = "/dev/nvidia-caps-imex-channels/channel0";
constexpr std::string_view of_domain = "-l \"resource.nvidia.com/computeDomain=${CD_UID}\"";
const std::string workloads[] = {"my-workload", "my-workload-2"};

class DriverManaged {
public:
  DriverManaged(Cluster& cluster, DemoKubectl& kubectl)
      : walk_(cluster, kubectl), stage_(walk_.stage), kubectl_(kubectl) {}

  Async<Result<void>> play() {
    Result<void> played = co_await steps();
    if (!played) co_await walk_.explain();
    co_return played;
  }

private:
  Async<Result<void>> steps() {
    CO_TRY_VOID(
        co_await walk_.begin("A ComputeDomain of two nodes (driver-managed), in a sandbox"));
    CO_TRY_VOID(co_await Walk::in_step("step 1", domain_is_made()));
    CO_TRY_VOID(co_await Walk::in_step("step 2", workloads_start()));
    CO_TRY_VOID(co_await Walk::in_step("step 3", domain_is_whole()));
    CO_TRY_VOID(co_await Walk::in_step("step 4", killed_process_heals()));
    CO_TRY_VOID(co_await Walk::in_step("step 5", killed_pod_heals()));
    CO_TRY_VOID(co_await Walk::in_step("step 6", everything_goes()));
    stage_.heading(
        fmt::format("All six steps went as the guide says, in {:.1f} s.", stage_.seconds()));
    co_return ok();
  }

  Async<Result<void>> domain_is_made() {
    stage_.heading("1. The ComputeDomain: a claim template for workloads, a DaemonSet that waits");
    stage_.manifest("my-compute-domain.yaml", compute_domain_manifest);
    CO_TRY_VOID(co_await walk_.shows("kubectl apply -f my-compute-domain.yaml", "created"));
    uid_ = co_await stage_.set(
        "CD_UID", "kubectl get computedomain my-compute-domain -o jsonpath='{.metadata.uid}'");
    CO_TRY_VOID(Walk::expect(!uid_.empty(), "a UID"));
    CO_TRY_VOID(co_await stage_.until("the ComputeDomain's objects are there", demo_limit,
                                      [this] { return objects_missing(); }));
    CO_TRY_VOID(
        co_await walk_.shows("kubectl get resourceclaimtemplate imex-channel-0", "imex-channel-0"));
    Result<void> last = co_await walk_.shows(
        fmt::format("kubectl get daemonset --all-namespaces \\\n      {}", of_domain),
        "computedomain-daemon-" + uid_);
    co_return last;
  }

  Async<std::string> objects_missing() {
    KubectlAnswer made = co_await kubectl_.run(
        {"get", "daemonset", "computedomain-daemon-" + uid_, "-n", std::string(space)});
    if (made.status != 0) co_return made.err;
    made = co_await kubectl_.run({"get", "resourceclaimtemplate", "imex-channel-0"});
    co_return made.err;
  }

  Async<Result<void>> workloads_start() {
    stage_.heading("2. A workload on each node; daemons come to where they are");
    stage_.manifest("my-workload.yaml", workload_manifest);
    CO_TRY_VOID(co_await walk_.shows("kubectl apply -f my-workload.yaml", "created"));
    stage_.say("The same with the name my-workload-2: one channel per node, so it gets the other.");
    kubectl_.files["my-workload-2.yaml"] = workload_named(workloads[1]);
    CO_TRY_VOID(co_await walk_.shows("kubectl apply -f my-workload-2.yaml", "created"));
    for (const std::string& name : workloads) {
      CO_TRY_VOID(co_await walk_.until_ready(name));
    }
    CO_TRY_VOID(co_await walk_.shows("kubectl get pods --all-namespaces -o wide", "my-workload-2"));
    CO_TRY_VOID(co_await channels_are_there());
    Result<void> last =
        co_await walk_.shows("kubectl logs my-workload", "IMEX channel0 is available");
    co_return last;
  }

  Async<Result<void>> channels_are_there() {
    for (const std::string& name : workloads) {
      CO_TRY_VOID(
          co_await walk_.shows(fmt::format("kubectl exec {} -- test -c {}", name, channel)));
    }
    stage_.say("exit status 0: channel0 is a character device in both");
    co_return ok();
  }

  Async<Result<void>> domain_is_whole() {
    stage_.heading("3. The domain: its status, its members, and what IMEX says");
    CO_TRY_VOID(co_await stage_.until("the ComputeDomain is Ready on both nodes", demo_limit,
                                      [this] { return domain_missing(); }));
    CO_TRY_VOID(co_await walk_.shows("kubectl get computedomain my-compute-domain -o yaml",
                                     "status: Ready"));
    CO_TRY_VOID(
        co_await walk_.shows(fmt::format("kubectl get computedomainclique -n {}", space), uid_));
    const std::vector<std::string> pods = co_await daemons();
    CO_TRY_VOID(Walk::expect(pods.size() == 2, "two daemon pods"));
    for (const std::string& pod : pods) {
      CO_TRY_VOID(co_await until_connected(pod));
    }
    Result<void> last = co_await walk_.shows(imex_query(pods[0]), "READY");
    co_return last;
  }

  // The names of the domain's daemon pods, by node.
  Async<std::vector<std::string>> daemons() {
    KubectlAnswer told =
        co_await kubectl_.run({"get", "pods", "-n", std::string(space), "-l",
                               "resource.nvidia.com/computeDomain=" + uid_, "-o", "wide"});
    std::vector<std::pair<std::string, std::string>> rows;  // node, pod
    std::string_view text = told.out;
    (void)imex::next_line(text);
    while (const auto line = imex::next_line(text)) {
      if (line->find("Terminating") != std::string_view::npos) continue;
      const std::string_view row = imex::trim(*line);
      rows.emplace_back(row.substr(row.rfind(' ') + 1), row.substr(0, row.find(' ')));
    }
    std::ranges::sort(rows);
    std::vector<std::string> names;
    for (const auto& [node, pod] : rows) names.push_back(pod);
    co_return names;
  }

  Async<std::string> domain_missing() {
    const std::string status = co_await walk_.field("computedomain/my-compute-domain", "{.status}");
    const auto parsed = parse_json(status.empty() ? "{}" : status);
    if (!parsed) co_return status;
    std::size_t ready = 0;
    for (const Json& node : array_or_empty(*parsed, "nodes"))
      if (text_or_empty(node, "status") == "Ready") ++ready;
    if (text_or_empty(*parsed, "status") == "Ready" && ready == 2) co_return std::string();
    co_return fmt::format("its status is \"{}\", {} nodes are Ready",
                          text_or_empty(*parsed, "status"), ready);
  }

  static std::string imex_query(const std::string& pod) {
    return fmt::format(
        "kubectl exec -n {} {} \\\n      -- nvidia-imex-ctl -c /imexd/imexd.cfg -N | grep READY",
        space, pod);
  }

  // Until the daemon of this pod is connected with the other one: each C of the two members'.
  Async<Result<void>> until_connected(std::string pod) {
    const auto state = [this, pod]() -> Async<std::string> {
      KubectlAnswer told =
          co_await kubectl_.run({"exec", "-n", std::string(space), pod, "--", "nvidia-imex-ctl",
                                 "-c", "/imexd/imexd.cfg", "-N", "-j"});
      const auto count = [&](std::string_view what) {
        std::size_t times = 0;
        for (auto at = told.out.find(what); at != std::string::npos;
             at = told.out.find(what, at + 1))
          ++times;
        return times;
      };
      const std::size_t connected = count("\"status\": \"CONNECTED\"");
      if (connected == 4) co_return std::string();
      co_return fmt::format("{} of 4 connections ({})", connected, imex::excerpt(told.err));
    };
    Result<void> done =
        co_await stage_.until(pod + " is connected with its peer", demo_limit, state);
    co_return done;
  }

  Async<Result<void>> killed_process_heals() {
    stage_.heading("4. nvidia-imex dies on one node: the daemon starts it again");
    const std::string node = co_await walk_.field("pod/my-workload", "{.spec.nodeName}");
    CO_TRY(Output before, co_await stage_.on(node, "sudo pgrep -x nvidia-imex"));
    CO_TRY(Output killed, co_await stage_.on(node, "sudo pkill -KILL -x nvidia-imex"));
    CO_TRY_VOID(Walk::expect(killed.exit.success(), "nvidia-imex is killed"));
    CO_TRY_VOID(
        co_await stage_.until("another nvidia-imex runs", demo_limit,
                              [this, node, before]() { return imex_missing(node, before.out); }));
    CO_TRY(Output after, co_await stage_.on(node, "sudo pgrep -x nvidia-imex"));
    CO_TRY_VOID(Walk::expect(after.out != before.out, "another process"));
    Result<void> last = co_await is_whole_again();
    co_return last;
  }

  Async<std::string> imex_missing(std::string node, std::string old) {
    Cluster::Node* place = walk_.cluster.node(node);
    Result<Output> now = co_await place->shell.run({"pgrep", "-x", "nvidia-imex"});
    if (!now || !now->exit.success()) co_return "nvidia-imex does not run";
    co_return now->out == old ? "nvidia-imex has not ended yet" : "";
  }

  Async<Result<void>> is_whole_again() {
    CO_TRY_VOID(co_await stage_.until("the ComputeDomain is Ready on both nodes", demo_limit,
                                      [this] { return domain_missing(); }));
    const std::vector<std::string> pods = co_await daemons();
    CO_TRY_VOID(Walk::expect(pods.size() == 2, "two daemon pods"));
    for (const std::string& pod : pods) {
      CO_TRY_VOID(co_await until_connected(pod));
    }
    co_return ok();
  }

  Async<Result<void>> killed_pod_heals() {
    stage_.heading("5. A daemon's pod is deleted by force: another one takes its place");
    const std::vector<std::string> before = co_await daemons();
    const std::string uid = co_await walk_.field("pod/my-workload", "{.metadata.uid}");
    const std::string victim = before.back();
    CO_TRY_VOID(co_await walk_.shows(
        fmt::format("kubectl delete pod -n {} {} --force --grace-period=0", space, victim)));
    CO_TRY_VOID(co_await stage_.until("another daemon pod is Ready", demo_limit,
                                      [this, before]() { return successor_missing(before); }));
    CO_TRY_VOID(co_await is_whole_again());
    CO_TRY_VOID(
        co_await walk_.shows(fmt::format("kubectl get pods -n {} {}", space, of_domain), "1/1"));
    CO_TRY_VOID(co_await channels_are_there());
    const std::string now = co_await walk_.field("pod/my-workload", "{.metadata.uid}");
    co_return Walk::expect(now == uid, "the workloads were not disturbed");
  }

  Async<std::string> successor_missing(std::vector<std::string> before) {
    const std::vector<std::string> now = co_await daemons();
    for (const std::string& pod : now) {
      if (std::ranges::find(before, pod) != before.end()) continue;
      std::string missing = co_await walk_.missing_of(pod, std::string(space));
      co_return missing;
    }
    co_return "there is no new daemon pod";
  }

  Async<Result<void>> everything_goes() {
    stage_.heading("6. Workloads and ComputeDomain go, and everything with them");
    CO_TRY_VOID(co_await walk_.shows("kubectl delete pod my-workload my-workload-2", "deleted"));
    CO_TRY_VOID(co_await walk_.shows("kubectl delete computedomain my-compute-domain", "deleted"));
    CO_TRY_VOID(co_await stage_.until("the daemons' pods have gone", demo_limit,
                                      [this] { return pods_left(); }));
    CO_TRY_VOID(co_await walk_.shows_nothing("kubectl get daemonset --all-namespaces"));
    CO_TRY_VOID(co_await walk_.shows_nothing("kubectl get resourceclaimtemplate --all-namespaces"));
    CO_TRY_VOID(co_await walk_.shows_nothing("kubectl get resourceclaim --all-namespaces"));
    CO_TRY_VOID(co_await walk_.shows_nothing("kubectl get computedomainclique --all-namespaces"));
    Result<void> last =
        co_await walk_.shows_nothing("kubectl get nodes -l resource.nvidia.com/computeDomain");
    co_return last;
  }

  Async<std::string> pods_left() {
    for (const char* type : {"pods", "computedomaincliques", "resourceclaims"}) {
      KubectlAnswer left = co_await kubectl_.run({"get", type, "--all-namespaces"});
      const auto row = left.out.find('\n');
      if (row != std::string::npos)
        co_return fmt::format("{}: {}", type, imex::excerpt(left.out.substr(row + 1)));
    }
    co_return std::string();
  }

  Walk walk_;
  Stage& stage_;
  DemoKubectl& kubectl_;
  std::string uid_;
};

}  // namespace

Async<Result<void>> play_driver_managed(Cluster& cluster) {
  Result<void> played = co_await play<DriverManaged>(cluster);
  co_return played;
}

}  // namespace nvdra::sandbox
