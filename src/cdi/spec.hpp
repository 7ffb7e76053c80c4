// A container device interface (CDI) file as plain values: what we write and read back.
// Fields stand in the order in which they are written.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nvdra::cdi {

struct DeviceNode {
  std::string path;
  std::string host_path = {};  // "" = like path
  std::string type = "c";
  std::uint32_t major = 0;  // 0 is left out
  std::uint32_t minor = 0;  // 0 is left out
  std::optional<mode_t> file_mode = {};
  std::string permissions = {};  // "" = left out; runtimes then allow rwm
  std::optional<std::uint32_t> uid = {};
  std::optional<std::uint32_t> gid = {};
  auto operator<=>(const DeviceNode&) const = default;
};

struct Hook {
  std::string hook_name;  // "createContainer", …
  std::string path;
  std::vector<std::string> args = {};
  std::vector<std::string> env = {};
  auto operator<=>(const Hook&) const = default;
};

struct Mount {
  std::string host_path;
  std::string container_path;
  std::vector<std::string> options = {};
  auto operator<=>(const Mount&) const = default;
};

class SharedNodes;

struct ContainerEdits {
  std::vector<std::string> env = {};
  std::vector<DeviceNode> device_nodes = {};
  std::vector<Hook> hooks = {};
  std::vector<Mount> mounts = {};
  std::vector<std::uint32_t> additional_gids = {};
  // Further device nodes, nullptr = none; the same list is the same pointer. Only for writing: what
  // is read from a file stands in device_nodes.
  std::shared_ptr<const SharedNodes> shared_nodes = {};
  auto operator<=>(const ContainerEdits&) const = default;
  bool empty() const { return *this == ContainerEdits{}; }
};

struct Device {
  std::string name;
  ContainerEdits edits = {};
  auto operator<=>(const Device&) const = default;
};

struct Spec {
  std::string kind;  // "vendor/class"
  std::vector<Device> devices = {};
  ContainerEdits edits = {};  // for every device of the file
  auto operator<=>(const Spec&) const = default;
};

}  // namespace nvdra::cdi
