#include "sandbox/node_layout.hpp"

#include "base/fd.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/try.hpp"
#include "sandbox/tool_install.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>

namespace nvdra::sandbox {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view driver_version = "580.95.05";

struct Device {
  const char* name;
  unsigned major;
  unsigned minor;
};
constexpr Device devices[] = {
    {"nvidia0", 195, 0}, {"nvidia1", 195, 1}, {"nvidiactl", 195, 255}, {"nvidia-uvm", 510, 0}};

constexpr std::string_view proc_devices =
    "Character devices:\n"
    "  1 mem\n"
    "  5 /dev/tty\n"
    " 10 misc\n"
    "195 nvidia\n"
    "195 nvidiactl\n"
    "235 nvidia-caps\n"
    "236 nvidia-caps-imex-channels\n"
    "510 nvidia-uvm\n"
    "\n"
    "Block devices:\n"
    "  7 loop\n"
    "259 blkext\n";

Result<void> put(const std::string& path, std::string_view text) {
  TRY_VOID(make_directories(fs::path(path).parent_path(), 0755));
  return replace_file(AT_FDCWD, path, text, 0644);
}

Result<void> put_device(const std::string& path, const Device& device) {
  if (::mknod(path.c_str(), S_IFCHR | 0666, ::makedev(device.major, device.minor)) == 0)
    return ok();
  if (errno != EPERM) return errno_failure("mknod " + path);
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!file) return errno_failure("create " + path);
  if (::mount("/dev/null", path.c_str(), nullptr, MS_BIND, nullptr) != 0)
    return errno_failure("bind /dev/null to " + path);
  return ok();
}

Result<void> put_devices(const std::string& root) {
  TRY_VOID(make_directories(root + "/dev", 0755));
  for (const Device& device : devices) {
    TRY_VOID(put_device(root + "/dev/" + device.name, device));
  }
  return ok();
}

Result<void> put_driver(const NodeLayout& node) {
  const std::string root = node.driver_root();
  TRY_VOID(install_tools(root + "/usr/bin", node.program));
  const std::string libraries = root + "/usr/lib/x86_64-linux-gnu";
  const std::string library = fmt::format("libnvidia-ml.so.{}", driver_version);
  TRY_VOID(put(libraries + "/" + library, ""));
  for (const char* folder : {"/tmp", "/var/log", "/run/nvidia-imex"}) {
    TRY_VOID(make_directories(root + folder, 0755));
  }
  std::error_code failed;
  fs::create_symlink(library, libraries + "/libnvidia-ml.so.1", failed);
  if (!failed) fs::create_symlink("../run", root + "/var/run", failed);
  if (failed) return fail(failed, "link in " + root);
  TRY_VOID(put(root + "/proc/driver/nvidia/capabilities/fabric-imex-mgmt",
               "DeviceFileMinor: 4323\nDeviceFileMode: 256\n"));
  TRY_VOID(
      put(root + "/proc/driver/nvidia/params", "ImexChannelCount: 2048\nCreateImexChannel0: 0\n"));
  return put_devices(root);
}

std::string facts(const NodeLayout& node) {
  JsonArray uuids;
  for (unsigned gpu = 1; gpu <= 2; ++gpu)
    uuids.emplace_back(
        fmt::format("GPU-{:08x}-0000-4000-8000-{:012x}", node.number, node.number * 16 + gpu));
  return to_text(Json(JsonObject{{"driverVersion", driver_version},
                                 {"gpuUuids", std::move(uuids)},
                                 {"fabric", JsonObject{{"state", "Completed"},
                                                       {"status", "Success"},
                                                       {"cliqueId", node.clique},
                                                       {"clusterUuid", node.cluster_uuid}}}}));
}

std::string imex_configuration(const NodeLayout& node) {
  return fmt::format(
      "# The administrator's service; command socket as nvdra's --imex-host-socket-path.\n"
      "LOG_LEVEL=4\n"
      "LOG_FILE_NAME=/var/log/nvidia-imex.log\n"
      "DAEMONIZE=0\n"
      "BIND_INTERFACE_IP={}\n"
      "SERVER_PORT=50000\n"
      "IMEX_NODE_CONFIG_FILE=/etc/nvidia-imex/nodes_config.cfg\n"
      "IMEX_WAIT_FOR_QUORUM=RECOVERY\n"
      "IMEX_CMD_ENABLED=1\n"
      "IMEX_CMD_UNIX_DOMAIN_PATH={}\n",
      node.address, imex_socket);
}

}  // namespace

Result<void> lay_out(const NodeLayout& node) {
  TRY_VOID(make_directories(node.folder, 0755));
  TRY_VOID(put_driver(node));
  const std::string root = node.driver_root();
  TRY_VOID(put(root + "/etc/nvdra-sandbox/node.json", facts(node)));
  TRY_VOID(put(root + "/etc/nvidia-imex/config.cfg", imex_configuration(node)));
  TRY_VOID(put(root + "/etc/nvidia-imex/nodes_config.cfg",
               fmt::format("{}\n", fmt::join(node.peers, "\n"))));
  return put(node.proc_devices(), proc_devices);
}

void remove_node_mounts(const NodeLayout& node) {
  for (const Device& device : devices)
    (void)::umount2((node.driver_root() + "/dev/" + device.name).c_str(), MNT_DETACH);
}

}  // namespace nvdra::sandbox
