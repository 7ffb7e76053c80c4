// hostManaged: the gate is this node's own IMEX service, asked through its command socket
// (node-side.md 10).
#pragma once

#include "imex/host_socket.hpp"
#include "roles/kubelet_plugin/gate.hpp"

namespace nvdra::roles::kubelet_plugin {

class HostGate final : public Gate {
public:
  explicit HostGate(imex::HostSocket& socket) : socket_(socket) {}

  Async<std::optional<Trouble>> closed(DomainUid domain) override;
  Async<Result<void>> wait_change(std::uint64_t seen) override;

private:
  imex::HostSocket& socket_;
};

}  // namespace nvdra::roles::kubelet_plugin
