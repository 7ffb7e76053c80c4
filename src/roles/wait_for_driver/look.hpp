// One look at a driver root, and what people are told about it.
#pragma once

#include "imex/driver_root.hpp"

#include <optional>
#include <string>
#include <vector>

namespace nvdra::roles::wait_for_driver {

inline constexpr std::string_view tool = "nvidia-smi";
inline constexpr std::string_view library = "libnvidia-ml.so.1";

struct Look {
  imex::DriverRoot root;
  std::optional<imex::Found> smi;
  std::optional<imex::Found> nvml;
  bool root_exists = false;
  std::vector<std::string> content;  // names in the root, sorted
  // With root "/": the GPU Operator's driver lies in /run/nvidia/driver.
  bool operator_driver = false;

  bool complete() const { return smi && nvml; }
};

Look look(const imex::DriverRoot& root);

// "nvidia-smi: '/driver-root/usr/bin/nvidia-smi', libnvidia-ml.so.1: not found, current contents:
// [bin, etc]". Pure.
std::string describe(const Look& look);

// What the administrator may have to do, one sentence each. Pure.
std::vector<std::string> hints(const Look& look);

}  // namespace nvdra::roles::wait_for_driver
