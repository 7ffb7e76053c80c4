#include "base/try.hpp"
#include "imex/text.hpp"
#include "sandbox/demo_manifests.hpp"
#include "sandbox/demo_walk.hpp"

#include <fmt/format.h>

namespace nvdra::sandbox {
namespace {

constexpr std::string_view service = "sudo systemctl {} nvidia-imex.service";
constexpr std::string_view query =
    "sudo /usr/bin/nvidia-imex-ctl -q --u=/etc/nvidia-imex/imex_ctrl.sock";
constexpr std::string_view test_channel =
    "kubectl exec my-workload -- test -c /dev/nvidia-caps-imex-channels/channel0";
class HostManaged {
public:
  HostManaged(Cluster& cluster, DemoKubectl& kubectl)
      : walk_(cluster, kubectl), cluster_(cluster), stage_(walk_.stage), kubectl_(kubectl) {}

  Async<Result<void>> play() {
    Result<void> played = co_await steps();
    if (!played) co_await walk_.explain();
    co_return played;
  }

private:
  Async<Result<void>> steps() {
    CO_TRY_VOID(co_await walk_.begin("Validate host-managed IMEX, in a sandbox"));
    CO_TRY_VOID(co_await Walk::in_step("step 1", service_is_ready()));
    CO_TRY_VOID(co_await Walk::in_step("step 2", only_the_template()));
    CO_TRY_VOID(co_await Walk::in_step("step 3", workload_has_its_channel()));
    CO_TRY_VOID(co_await Walk::in_step("step 4", failure_is_told()));
    CO_TRY_VOID(co_await Walk::in_step("step 4", recovery_is_seen()));
    CO_TRY_VOID(co_await Walk::in_step("step 5", everything_goes()));
    stage_.heading(
        fmt::format("All five steps went as the guide says, in {:.1f} s.", stage_.seconds()));
    co_return ok();
  }

  Async<Result<void>> service_is_ready() {
    stage_.heading("1. The administrator-managed service and its command socket, on every node");
    for (const Cluster::Node& node : cluster_.nodes()) {
      const std::string& name = node.layout.name;
      CO_TRY(Output active,
             co_await stage_.on(name, fmt::format(fmt::runtime(service), "is-active")));
      CO_TRY_VOID(Walk::expect(active.out == "active\n", "active"));
      CO_TRY_VOID(co_await ready_on(name));
    }
    co_return ok();
  }

  // The second command of step 1; waits while the service starts.
  Async<Result<void>> ready_on(std::string name) {
    Cluster::Node* node = cluster_.node(name);
    const std::vector<std::string> words = shell_words(query, {});
    const auto state = [node, words]() -> Async<std::string> {
      Result<Output> told = co_await node->shell.run(words);
      const bool ready = told && told->exit.success() && told->out == "READY\n";
      if (ready) co_return std::string();
      co_return told ? std::string(imex::trim(told->out + told->err)) : told.error().text();
    };
    CO_TRY_VOID(co_await stage_.until(name + ": nvidia-imex is ready", demo_limit, state));
    CO_TRY(Output told, co_await stage_.on(name, std::string(query)));
    co_return Walk::expect(told.out == "READY\n", "READY");
  }

  Async<Result<void>> only_the_template() {
    stage_.heading("2. The ComputeDomain, for which only the workload claim template is created");
    stage_.manifest("my-compute-domain.yaml", compute_domain_manifest);
    KubectlAnswer done = co_await stage_.kubectl("kubectl apply -f my-compute-domain.yaml");
    CO_TRY_VOID(Walk::expect(done.status == 0, "the ComputeDomain is created"));
    const std::string uid = co_await stage_.set(
        "CD_UID", "kubectl get computedomain my-compute-domain -o jsonpath='{.metadata.uid}'");
    CO_TRY_VOID(Walk::expect(!uid.empty(), "a UID"));
    CO_TRY_VOID(co_await stage_.until("the ComputeDomain is Ready", demo_limit,
                                      [this] { return domain_missing(); }));
    done = co_await stage_.kubectl("kubectl get resourceclaimtemplate imex-channel-0");
    CO_TRY_VOID(
        Walk::expect(done.out.find("imex-channel-0") != std::string::npos, "imex-channel-0"));
    done = co_await stage_.kubectl(
        "kubectl get daemonset --all-namespaces \\\n"
        "      -l \"resource.nvidia.com/computeDomain=${CD_UID}\"");
    CO_TRY_VOID(Walk::expect(done.err == "No resources found\n", "no DaemonSet"));
    done = co_await stage_.kubectl(
        "kubectl get resourceclaimtemplate --all-namespaces \\\n"
        "      -l \"resource.nvidia.com/computeDomain=${CD_UID},"
        "resource.nvidia.com/computeDomainTarget=Daemon\"");
    co_return Walk::expect(done.err == "No resources found\n", "no daemon template");
  }

  Async<std::string> domain_missing() {
    KubectlAnswer status = co_await kubectl_.run(
        {"get", "computedomain", "my-compute-domain", "-o", "jsonpath={.status.status}"});
    co_return status.out == "Ready" ? "" : fmt::format("its status is \"{}\"", status.out);
  }

  // What keeps the workload from being Ready, or "".
  Async<std::string> workload_missing() { return walk_.missing_of("my-workload"); }

  Async<Result<void>> workload_has_its_channel() {
    stage_.heading("3. The workload, and the device test that counts");
    stage_.manifest("my-workload.yaml", workload_manifest);
    KubectlAnswer done = co_await stage_.kubectl("kubectl apply -f my-workload.yaml");
    CO_TRY_VOID(Walk::expect(done.status == 0, "the pod is created"));
    CO_TRY_VOID(co_await stage_.until("my-workload is Ready", demo_limit,
                                      [this] { return workload_missing(); }));
    done = co_await stage_.kubectl("kubectl get pod my-workload");
    done = co_await stage_.kubectl(std::string(test_channel));
    CO_TRY_VOID(Walk::expect(done.status == 0, "channel0 is a character device"));
    stage_.say("exit status 0: channel0 is a character device");
    done = co_await stage_.kubectl("kubectl logs my-workload");
    co_return Walk::expect(done.out.find("IMEX channel0 is available") != std::string::npos,
                           "the log says IMEX channel0 is available");
  }

  Async<Result<void>> failure_is_told() {
    stage_.heading("4. The service fails: a new pod waits, and says why");
    node_ = co_await stage_.set("TEST_NODE",
                                "kubectl get pod my-workload -o jsonpath='{.spec.nodeName}'");
    KubectlAnswer done = co_await stage_.kubectl("kubectl delete -f my-workload.yaml");
    CO_TRY_VOID(Walk::expect(done.status == 0, "the pod is deleted"));
    stage_.manifest("my-workload.yaml", workload_on(node_));
    CO_TRY(Output stopped, co_await stage_.on(node_, fmt::format(fmt::runtime(service), "stop")));
    CO_TRY_VOID(Walk::expect(stopped.exit.success(), "the service stops"));
    done = co_await stage_.kubectl("kubectl apply -f my-workload.yaml");
    CO_TRY_VOID(Walk::expect(done.status == 0, "the pod is created"));
    CO_TRY_VOID(co_await stage_.until("the pod's event tells the reason", demo_limit,
                                      [this] { return event_missing(); }));
    done = co_await stage_.kubectl("kubectl describe pod my-workload");
    CO_TRY_VOID(Walk::expect(done.out.find("imex_ctrl.sock") != std::string::npos,
                             "the event names the command socket"));
    done = co_await stage_.kubectl(
        "kubectl get events --field-selector reason=FailedPrepareDynamicResources \\\n"
        "      --sort-by=.lastTimestamp");
    CO_TRY_VOID(Walk::expect(done.out.find("FailedPrepareDynamicResources") != std::string::npos,
                             "an event FailedPrepareDynamicResources"));
    const std::string waiting = co_await workload_missing();
    co_return Walk::expect(!waiting.empty(), "the pod does not start while the service is down");
  }

  Async<std::string> event_missing() {
    KubectlAnswer events = co_await kubectl_.run(
        {"get", "events", "--field-selector",
         "reason=FailedPrepareDynamicResources,involvedObject.name=my-workload"});
    if (!events.out.empty()) co_return std::string();
    std::string state = co_await workload_missing();
    co_return "no event yet; " + state;
  }

  Async<Result<void>> recovery_is_seen() {
    stage_.heading("   The service is back: the same pod and claim proceed");
    const std::string before = co_await pod_uid();
    CO_TRY(Output started, co_await stage_.on(node_, fmt::format(fmt::runtime(service), "start")));
    CO_TRY_VOID(Walk::expect(started.exit.success(), "the service starts"));
    CO_TRY_VOID(co_await ready_on(node_));
    CO_TRY_VOID(co_await stage_.until("my-workload is Ready", demo_limit,
                                      [this] { return workload_missing(); }));
    KubectlAnswer done =
        co_await stage_.kubectl("kubectl wait --for=condition=Ready pod/my-workload --timeout=5m");
    CO_TRY_VOID(Walk::expect(done.status == 0, "the pod is Ready"));
    const std::string after = co_await pod_uid();
    CO_TRY_VOID(Walk::expect(before == after, "the same pod, not a new one"));
    done = co_await stage_.kubectl(std::string(test_channel));
    CO_TRY_VOID(Walk::expect(done.status == 0, "channel0 is a character device"));
    stage_.say("exit status 0: channel0 is a character device");
    co_return ok();
  }

  Async<std::string> pod_uid() {
    KubectlAnswer uid =
        co_await kubectl_.run({"get", "pod", "my-workload", "-o", "jsonpath={.metadata.uid}"});
    co_return uid.out;
  }

  Async<Result<void>> everything_goes() {
    stage_.heading("5. Workload and ComputeDomain go, the service stays");
    KubectlAnswer done = co_await stage_.kubectl("kubectl delete pod my-workload");
    CO_TRY_VOID(Walk::expect(done.status == 0, "the pod is deleted"));
    done = co_await stage_.kubectl("kubectl delete computedomain my-compute-domain");
    CO_TRY_VOID(Walk::expect(done.status == 0, "the ComputeDomain is deleted"));
    done = co_await stage_.kubectl("kubectl get resourceclaimtemplate");
    CO_TRY_VOID(Walk::expect(done.out.find("imex-channel-0") == std::string::npos,
                             "the workload claim template is gone"));
    CO_TRY(Output active,
           co_await stage_.on(node_, fmt::format(fmt::runtime(service), "is-active")));
    co_return Walk::expect(active.out == "active\n", "active");
  }

  Walk walk_;
  Cluster& cluster_;
  Stage& stage_;
  DemoKubectl& kubectl_;
  std::string node_;
};

}  // namespace

Async<Result<void>> play_host_managed(Cluster& cluster) {
  Result<void> played = co_await play<HostManaged>(cluster);
  co_return played;
}

}  // namespace nvdra::sandbox
