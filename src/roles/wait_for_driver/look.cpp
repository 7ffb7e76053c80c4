#include "roles/wait_for_driver/look.hpp"

#include "base/files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace nvdra::roles::wait_for_driver {
namespace {

constexpr std::string_view operator_root = "/run/nvidia/driver";

std::string place(const std::optional<imex::Found>& found) {
  return found ? "'" + found->real + "'" : "not found";
}

std::optional<imex::Found> value(Result<imex::Found> found) {
  if (!found) return std::nullopt;
  return *std::move(found);
}

std::string content_of(const Look& look) {
  constexpr std::size_t most = 40;
  const auto count = std::min(look.content.size(), most);
  std::string names =
      fmt::format("{}", fmt::join(look.content.begin(),
                                  look.content.begin() + static_cast<std::ptrdiff_t>(count), ", "));
  if (count < look.content.size())
    names += fmt::format(", and {} more", look.content.size() - count);
  return names;
}

std::string absent(const Look& look) {
  if (look.smi) return fmt::format("{} was", library);
  if (look.nvml) return fmt::format("{} was", tool);
  return fmt::format("{} and {} were", tool, library);
}

}  // namespace

Look look(const imex::DriverRoot& root) {
  Look look{.root = root,
            .smi = value(imex::find_binary(root, tool)),
            .nvml = value(imex::find_library(root, library)),
            .root_exists = imex::exists(root),
            .content = {}};
  if (const Result<Fd> directory = open_directory(root.here + "/."))
    if (const auto entries = list_directory(directory->get()))
      for (const Entry& entry : *entries) look.content.push_back(entry.name);
  if (root.host == "/")
    look.operator_driver =
        imex::resolve_in_root(root.here, fmt::format("{}/usr/bin/{}", operator_root, tool))
            .has_value();
  return look;
}

std::string describe(const Look& look) {
  return fmt::format("{} ({} on the host): {}: {}, {}: {}, current contents: [{}]", look.root.here,
                     look.root.host, tool, place(look.smi), library, place(look.nvml),
                     content_of(look));
}

std::vector<std::string> hints(const Look& look) {
  std::vector<std::string> lines = {fmt::format(
      "The NVIDIA GPU driver is expected below {} on this node; the Helm value nvidiaDriverRoot "
      "says where. Both {} and {} must be there before the kubelet plugin starts.",
      look.root.host, tool, library)};
  if (!look.root_exists)
    lines.push_back(fmt::format("Hint: {} does not exist on this node.", look.root.host));
  else if (look.content.empty())
    lines.push_back(fmt::format("Hint: {} is an empty directory on this node.", look.root.host));
  else if (!look.complete())
    lines.push_back(fmt::format(
        "Hint: {} is not empty but {} not found: the driver is not installed there, or not "
        "completely.",
        look.root.host, absent(look)));
  if (look.operator_driver)
    lines.push_back(fmt::format(
        "Hint: {0}/usr/bin/{1} exists: the driver seems to be managed by the GPU Operator. Install "
        "the chart with --set nvidiaDriverRoot={0}.",
        operator_root, tool));
  if (look.root.host == operator_root)
    lines.push_back(fmt::format(
        "Hint: {} is where the NVIDIA GPU Operator puts the driver: check that its driver pod runs "
        "on this node and is ready.",
        operator_root));
  return lines;
}

}  // namespace nvdra::roles::wait_for_driver
