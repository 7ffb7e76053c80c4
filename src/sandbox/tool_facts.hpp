// What a simulated GPU node is, and what is wrong with it: two optional JSON files of its driver
// root. The tools read them anew whenever they need them, so a change works at once.
//
// /etc/nvdra-sandbox/node.json: what the node is.
//   {"driverVersion": "580.95.05",       default: the version of the root's libnvidia-ml.so.VERSION
//    "imexVersion": "580.95.05",         default: driverVersion
//    "gpus": 2, "gpuName": "NVIDIA GB200", "gpuUuids": ["GPU-…", …],
//    "fabric": {"state": "Completed", "status": "Success",
//               "cliqueId": 32766, "clusterUuid": "…"}}
//
// /etc/nvdra-sandbox/faults.json: what is wrong. All keys are optional, unknown ones are refused.
//   {"fabric": "none" | "notStarted" | "inProgress" | "failed",
//    "driver": false,                    nvidia-smi cannot reach the driver
//    "nvidia-smi":      {"delay": seconds, "hang": true, "exit": status, "stdout": "…",
//                        "stderr": "…", "garbage": true},
//    "nvidia-imex-ctl": {…the same…},
//    "nvidia-imex": {"slowStart": seconds until READY, "state": "INIT_GPU" (never gets further),
//                    "hang": true (accepts commands, never answers), "answer": "…" (to -q),
//                    "exitAtStart": status, "crashAfter": seconds from start, "exit": its status,
//                    "driverVersion": "570.00" (another one than the tool was built for),
//                    "inUse": true (another daemon has the GPUs), "ignoreTerm": true,
//                    "unconnected": true (-N shows no connection to any peer)}}
#pragma once

#include "base/result.hpp"
#include "imex/gpu.hpp"

#include <optional>
#include <string>
#include <vector>

namespace nvdra::sandbox {

struct NodeFacts {
  std::string driver_version;
  std::string imex_version;
  std::vector<imex::Gpu> gpus = {};
};

struct ToolFaults {
  double delay = 0;
  bool hang = false;
  std::optional<int> exit;
  std::optional<std::string> out;
  std::optional<std::string> err;
};

struct ImexFaults {
  double slow_start = 0;
  std::string state = {};
  bool hang = false;
  std::string answer = {};
  std::optional<int> exit_at_start = {};
  std::optional<double> crash_after = {};
  int exit = 1;
  std::string driver_version = {};
  bool in_use = false;
  bool ignore_term = false;
  bool unconnected = false;
};

struct NodeFaults {
  std::string fabric;
  bool driver = true;
  ToolFaults smi;
  ToolFaults ctl;
  ImexFaults imex;
};

// The driver root that this program lies in: the nearest directory above its own file that has
// etc/nvdra-sandbox; "" (which is "/") when there is none, as inside a chroot or a container.
std::string own_root();

// `root` as own_root() gives it. Errors name the file and the key.
Result<NodeFacts> read_facts(const std::string& root);
Result<NodeFaults> read_faults(const std::string& root);
// The GPUs as the fault "fabric" makes them.
void put_fabric_fault(const std::string& fault, std::vector<imex::Gpu>& gpus);

// What `faults` says instead of the tool's own answer: the exit status; nothing = go on. Sleeps the
// delay, and for ever when it hangs.
std::optional<int> play_faults(const ToolFaults& faults);

}  // namespace nvdra::sandbox
