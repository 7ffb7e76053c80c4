// Device nodes that many CDI files have in common: put in order and turned into text once, and
// written as they are (node-side.md 18.3 no. 46).
#pragma once

#include "cdi/spec.hpp"

#include <string>
#include <vector>

namespace nvdra::cdi {

class SharedNodes {
public:
  // In any order, with duplicates; paths are the host's.
  explicit SharedNodes(std::vector<DeviceNode> nodes);

  // In the order of a file, each once.
  const std::vector<DeviceNode>& nodes() const { return nodes_; }
  // The items of `deviceNodes` where a device of a file has them, whole lines.
  const std::string& device_text() const { return device_text_; }
  // Whether a node has a hostPath of its own: it raises the file's version.
  bool with_host_path() const { return with_host_path_; }

private:
  std::vector<DeviceNode> nodes_;
  std::string device_text_;
  bool with_host_path_ = false;
};

}  // namespace nvdra::cdi
