#include "imex/nvlink.hpp"

#include "base/files.hpp"
#include "base/try.hpp"

namespace nvdra::imex {
namespace {

bool is_missing(const Error& error) {
  return error.code == boost::system::errc::no_such_file_or_directory ||
         error.code == boost::system::errc::not_a_directory;
}

// Empty when there is no such directory.
Result<std::vector<Entry>> entries(const DriverRoot& root, const std::string& path) {
  Result<std::string> real = resolve_in_root(root.here, path);
  if (!real && is_missing(real.error())) return std::vector<Entry>{};
  if (!real) return std::move(real).failure();
  Result<Fd> directory = open_directory(*real);
  if (!directory && is_missing(directory.error())) return std::vector<Entry>{};
  if (!directory) return std::move(directory).failure();
  return list_directory(directory->get());
}

Result<bool> file_contains(const DriverRoot& root, const std::string& path,
                           std::string_view bytes) {
  Result<std::string> real = resolve_in_root(root.here, path);
  if (!real && is_missing(real.error())) return false;
  if (!real) return std::move(real).failure();
  Result<std::string> content = read_file(*real);
  if (!content && is_missing(content.error())) return false;
  if (!content) return std::move(content).failure();
  return content->find(bytes) != std::string::npos;
}

}  // namespace

Result<bool> single_node_nvlink(const DriverRoot& dev_root) {
  TRY(const std::vector<Entry> switches, entries(dev_root, "/proc/driver/nvidia-nvswitch/devices"));
  if (!switches.empty()) return true;

  const std::string adapters = "/sys/class/infiniband";
  TRY(const std::vector<Entry> found, entries(dev_root, adapters));
  for (const Entry& adapter : found) {
    TRY(const bool manages,
        file_contains(dev_root, adapters + "/" + adapter.name + "/device/vpd", "SW_MNG"));
    if (manages) return true;
  }
  return false;
}

}  // namespace nvdra::imex
