#include "roles/kubelet_plugin/host_gate.hpp"

namespace nvdra::roles::kubelet_plugin {

Async<std::optional<Trouble>> HostGate::closed(DomainUid) {
  imex::HostState state = co_await socket_.probe();
  if (imex::is_ready(state)) co_return std::nullopt;
  co_return retry("host nvidia-imex daemon readiness check failed: " +
                  imex::tell(state, socket_.service()).sentence());
}

Async<Result<void>> HostGate::wait_change(std::uint64_t) {
  Result<void> changed = co_await socket_.wait_change();
  co_return changed;
}

}  // namespace nvdra::roles::kubelet_plugin
