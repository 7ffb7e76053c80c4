#include "cdi/names.hpp"

#include <fmt/format.h>

namespace nvdra::cdi {
namespace {

constexpr std::string_view claim_prefix = "k8s.compute-domain.nvidia.com-claim_";
constexpr std::string_view extension = ".yaml";

}  // namespace

std::string claim_file(const ClaimUid& claim) {
  return fmt::format("{}{}{}", claim_prefix, claim.value, extension);
}

std::optional<ClaimUid> claim_of_file(std::string_view file) {
  if (!file.starts_with(claim_prefix) || !file.ends_with(extension)) return std::nullopt;
  if (file.size() <= claim_prefix.size() + extension.size()) return std::nullopt;
  file.remove_prefix(claim_prefix.size());
  file.remove_suffix(extension.size());
  return ClaimUid(std::string(file));
}

std::string base_file() {
  return fmt::format("k8s.compute-domain.nvidia.com-device_base{}", extension);
}

std::string claim_device(const ClaimUid& claim, std::string_view device) {
  return fmt::format("{}-{}", claim.value, device);
}

std::string claim_device_id(const ClaimUid& claim, std::string_view device) {
  return fmt::format("{}={}", claim_kind, claim_device(claim, device));
}

std::string base_device_id() {
  return fmt::format("{}=all", device_kind);
}

}  // namespace nvdra::cdi
