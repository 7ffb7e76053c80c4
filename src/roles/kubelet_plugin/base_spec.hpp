// The CDI file that every daemon claim refers to: the driver, as the daemon's container sees it
// (node-side.md 8.2 without NVML and hooks; design.md 12).
#pragma once

#include "cdi/spec.hpp"
#include "cdi/spec_dir.hpp"
#include "roles/kubelet_plugin/devices.hpp"
#include "roles/kubelet_plugin/driver_files.hpp"

namespace nvdra::roles::kubelet_plugin {

// The directories of the libraries that nvidia-imex needs, in the container, separated by ':'. The
// daemon makes it its child's LD_LIBRARY_PATH.
inline constexpr std::string_view library_path_variable = "NVDRA_IMEX_LIBRARY_PATH";

// Kind .../device with the one device "all". Pure.
cdi::Spec base_spec(const DriverFiles& files, const Roots& roots);

// Keeps the file as the driver root is.
class BaseSpec {
public:
  // `cdi` outlives it.
  BaseSpec(cdi::SpecDir& cdi, Roots roots) : cdi_(cdi), roots_(std::move(roots)) {}

  // Looks at the driver root and writes the file if it is missing or differs. `version`: of the
  // running driver, "" = unknown. With `complete`, an error when nvidia-imex could not start in the
  // container: it names every file that is missing. Without, what is there is written.
  Result<void> refresh(std::string_view version, bool complete);

private:
  cdi::SpecDir& cdi_;
  Roots roots_;
};

}  // namespace nvdra::roles::kubelet_plugin
