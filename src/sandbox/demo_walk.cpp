#include "sandbox/demo_walk.hpp"

#include "base/try.hpp"
#include "imex/text.hpp"
#include "sandbox/demo_namespace.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::sandbox {

Walk::Walk(Cluster& cluster_of, DemoKubectl& kubectl_of)
    : cluster(cluster_of), stage(cluster_of, kubectl_of), kubectl(kubectl_of) {}

Async<Result<void>> Walk::in_step(std::string step, Async<Result<void>> work) {
  Result<void> done = co_await std::move(work);
  if (!done) co_return std::move(done).failure().during(step);
  co_return ok();
}

Result<void> Walk::expect(bool holds, std::string_view what) {
  if (holds) return ok();
  return refuse(fmt::format("expected: {}", what));
}

Async<Result<void>> Walk::begin(std::string title) {
  stage.heading(title);
  stage.say(fmt::format("{} simulated GPU nodes; nvdra is real: controller, kubelet-plugin{}.",
                        cluster.nodes().size(),
                        cluster.options().mode == ImexMode::driver_managed ? ", daemon" : ""));
  stage.say(fmt::format("Logs and files: {}", cluster.options().folder));
  if (!makes_device_nodes())
    stage.say("Not root: /dev/null stands in for device nodes inside the pods.");
  if (!cluster.network().separate())
    stage.say(fmt::format("Pods have addresses of the loopback interface ({}).",
                          cluster.network().why()));
  CO_TRY_VOID(co_await stage.until("the nodes publish their devices", demo_limit,
                                   [this] { return nodes_missing(); }));
  co_return ok();
}

Async<std::string> Walk::nodes_missing() {
  Result<void> ready = co_await cluster.wait_ready(Duration{});
  if (!ready)
    co_return std::string(ready.error().text().substr(0, ready.error().text().find('\n')));
  KubectlAnswer nodes = co_await kubectl.run({"get", "nodes", "-l", "nvidia.com/gpu.clique"});
  const auto lines = static_cast<std::size_t>(std::ranges::count(nodes.out, '\n'));
  co_return lines == cluster.nodes().size() + 1 ? "" : "a node has no label nvidia.com/gpu.clique";
}

Async<void> Walk::explain() {
  stage.heading("It went wrong. What there is:");
  KubectlAnswer told = co_await stage.kubectl("kubectl get pods --all-namespaces -o wide");
  told = co_await stage.kubectl(
      "kubectl get events --all-namespaces --field-selector type=Warning --sort-by=.lastTimestamp");
  for (const ItemPtr& pod :
       cluster.registry().all(cluster.registry().resource("pods"), std::string(driver_namespace)))
    told = co_await stage.kubectl(
        fmt::format("kubectl logs -n {} {} --tail=20", pod->space(), pod->name()));
}

Async<Result<void>> Walk::shows(std::string command, std::string wanted) {
  KubectlAnswer done = co_await stage.kubectl(command);
  CO_TRY_VOID(expect(done.status == 0, "the command succeeds"));
  co_return expect(done.out.find(wanted) != std::string::npos, wanted);
}

Async<Result<void>> Walk::shows_nothing(std::string command) {
  KubectlAnswer done = co_await stage.kubectl(command);
  co_return expect(done.err.starts_with("No resources found"), "No resources found");
}

Async<Result<void>> Walk::until_ready(std::string pod, std::string space) {
  Result<void> ready = co_await stage.until(pod + " is Ready", demo_limit,
                                            [this, pod, space] { return missing_of(pod, space); });
  co_return ready;
}

Async<std::string> Walk::missing_of(std::string pod, std::string space) {
  KubectlAnswer told = co_await kubectl.run({"get", "pod", pod, "-n", space});
  const auto row = told.out.find('\n');
  if (told.status != 0 || row == std::string::npos)
    co_return fmt::format("there is no pod {}", pod);
  if (told.out.find("1/1 ", row) != std::string::npos) co_return std::string();
  co_return std::string(imex::trim(std::string_view(told.out).substr(row)));
}

Async<std::string> Walk::field(std::string object, std::string path, std::string space) {
  const auto slash = object.find('/');
  KubectlAnswer told =
      co_await kubectl.run({"get", object.substr(0, slash), object.substr(slash + 1), "-n", space,
                            "-o", "jsonpath=" + path});
  co_return told.out;
}

}  // namespace nvdra::sandbox
