#include "sandbox/pod_root.hpp"

#include "base/fd.hpp"
#include "base/try.hpp"
#include "sandbox/pod_mirror.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace nvdra::sandbox {
namespace {

namespace fs = std::filesystem;

// What a container sees of this machine.
constexpr const char* shown[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr",
                                 "etc", "opt",  "nix", "gnu",   "proc",  "sys"};
constexpr const char* own[] = {"tmp", "run", "var", "dev", "root", "home"};
constexpr const char* usual_devices[] = {"null", "zero", "full", "random", "urandom", "tty"};

Result<void> mount_step(const char* source, const std::string& target, const char* type,
                        unsigned long flags) {
  if (::mount(source, target.c_str(), type, flags, nullptr) == 0) return ok();
  return errno_failure("mount " + target);
}

Result<void> make_folders(const std::string& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  if (failed) return fail(failed, "create " + path);
  return ok();
}

Result<void> make_file(const std::string& path) {
  TRY_VOID(make_folders(fs::path(path).parent_path()));
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!file) return errno_failure("create " + path);
  return ok();
}

// /`name` of this machine, with room for the mounts below it.
Result<void> show(const std::string& root, const std::string& name, const ContainerSpec& spec) {
  const std::string source = "/" + name;
  const std::string target = root + "/" + name;
  struct stat status{};
  if (::lstat(source.c_str(), &status) != 0) return ok();
  if (S_ISLNK(status.st_mode)) {
    std::error_code failed;
    fs::copy_symlink(source, target, failed);
    if (failed) return fail(failed, "link " + target);
    return ok();
  }
  std::vector<std::string> targets;
  for (const cdi::Mount& mount : spec.edits.mounts)
    if (std::string at = real_target(mount.container_path); at.starts_with(source + "/"))
      targets.push_back(std::move(at));
  return mirror(root, name, targets);
}

// A character device: a node, or another device in its place.
Result<void> make_device(const std::string& path, dev_t number, mode_t mode, const char* stand_in) {
  TRY_VOID(make_folders(fs::path(path).parent_path()));
  ::unlink(path.c_str());
  if (::mknod(path.c_str(), S_IFCHR | mode, number) == 0) {
    if (::chmod(path.c_str(), mode) == 0) return ok();
    return errno_failure("chmod " + path);
  }
  if (errno != EPERM) return errno_failure("mknod " + path);
  TRY_VOID(make_file(path));
  return mount_step(stand_in, path, nullptr, MS_BIND);
}

Result<void> make_devices(const std::string& root, const ContainerSpec& spec) {
  for (const char* name : usual_devices) {
    const std::string here = std::string("/dev/") + name;
    struct stat status{};
    if (::stat(here.c_str(), &status) != 0) continue;
    TRY_VOID(make_device(root + here, status.st_rdev, 0666, here.c_str()));
  }
  for (const auto& [link, target] :
       {std::pair{"/dev/fd", "/proc/self/fd"}, std::pair{"/dev/stdin", "/proc/self/fd/0"},
        std::pair{"/dev/stdout", "/proc/self/fd/1"}, std::pair{"/dev/stderr", "/proc/self/fd/2"}})
    if (::symlink(target, (root + link).c_str()) != 0) return errno_failure("link " + root + link);
  TRY_VOID(make_folders(root + "/dev/shm"));
  for (const cdi::DeviceNode& node : spec.edits.device_nodes) {
    const mode_t mode = node.file_mode.value_or(0666) & 07777;
    TRY_VOID(make_device(root + node.path, ::makedev(node.major, node.minor), mode, "/dev/null"));
  }
  return ok();
}

Result<void> make_mounts(const std::string& root, const ContainerSpec& spec) {
  for (const cdi::Mount& mount : spec.edits.mounts) {
    const std::string target = root + real_target(mount.container_path);
    std::error_code failed;
    if (fs::is_directory(mount.host_path, failed)) {
      TRY_VOID(make_folders(target));
    } else {
      TRY_VOID(make_file(target));
    }
    TRY_VOID(mount_step(mount.host_path.c_str(), target, nullptr, MS_BIND | MS_REC));
    if (std::ranges::find(mount.options, "ro") != mount.options.end())
      (void)::mount(nullptr, target.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr);
  }
  return ok();
}

// The pod's, which all its containers share.
Result<void> enter_network(const std::string& network) {
  if (network.empty()) return ok();
  const Fd space(::open(network.c_str(), O_RDONLY | O_CLOEXEC));
  if (!space) return errno_failure("open the pod's network " + network);
  if (::setns(space.get(), CLONE_NEWNET) != 0) return errno_failure("enter the pod's network");
  return ok();
}

Result<void> enter_namespaces() {
  constexpr int wanted = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC;
  if (::unshare(wanted) != 0) {
    if (errno != EPERM) return errno_failure("unshare");
    TRY_VOID(become_root_of_namespace());
    if (::unshare(CLONE_NEWUTS | CLONE_NEWIPC) != 0) return errno_failure("unshare");
  }
  return mount_step(nullptr, "/", nullptr, MS_REC | MS_PRIVATE);
}

bool write_text(const char* path, const std::string& text) {
  const Fd file(::open(path, O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

Result<void> join(pid_t process, const char* kind, int type) {
  const std::string theirs = fmt::format("/proc/{}/ns/{}", process, kind);
  const std::string ours = fmt::format("/proc/self/ns/{}", kind);
  struct stat a{};
  struct stat b{};
  if (::stat(theirs.c_str(), &a) != 0) return errno_failure(theirs);
  if (::stat(ours.c_str(), &b) != 0) return errno_failure(ours);
  if (a.st_ino == b.st_ino) return ok();
  const Fd space(::open(theirs.c_str(), O_RDONLY | O_CLOEXEC));
  if (!space) return errno_failure(theirs);
  if (::setns(space.get(), type) != 0) return errno_failure("enter " + theirs);
  return ok();
}

}  // namespace

Result<void> enter_own_root(const ContainerSpec& spec) {
  TRY_VOID(enter_network(spec.network));
  TRY_VOID(enter_namespaces());
  if (!spec.host_name.empty())
    (void)::sethostname(spec.host_name.data(), std::min<std::size_t>(spec.host_name.size(), 63));
  const std::string& root = spec.scratch;
  TRY_VOID(mount_step("tmpfs", root, "tmpfs", 0));
  for (const char* name : own) {
    TRY_VOID(make_folders(root + "/" + name));
  }
  ::chmod((root + "/tmp").c_str(), 01777);
  TRY_VOID(make_folders(root + "/var/log"));
  if (::symlink("../run", (root + "/var/run").c_str()) != 0) return errno_failure("link /var/run");
  for (const char* name : shown) {
    TRY_VOID(show(root, name, spec));
  }
  TRY_VOID(make_devices(root, spec));
  TRY_VOID(make_mounts(root, spec));
  if (::chdir(root.c_str()) != 0) return errno_failure("chdir " + root);
  TRY_VOID(mount_step(".", "/", nullptr, MS_MOVE));
  if (::chroot(".") != 0) return errno_failure("chroot");
  return ok();
}

Result<void> enter_root_of(pid_t process) {
  const std::string path = fmt::format("/proc/{}/root", process);
  const Fd root(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) return errno_failure(path);
  TRY_VOID(join(process, "user", CLONE_NEWUSER));
  TRY_VOID(join(process, "net", CLONE_NEWNET));
  TRY_VOID(join(process, "uts", CLONE_NEWUTS));
  TRY_VOID(join(process, "ipc", CLONE_NEWIPC));
  // The namespace that its children are in, which is the container's.
  TRY_VOID(join(process, "pid_for_children", CLONE_NEWPID));
  TRY_VOID(join(process, "mnt", CLONE_NEWNS));
  if (::fchdir(root.get()) != 0) return errno_failure("chdir to the container's root");
  if (::chroot(".") != 0) return errno_failure("chroot");
  return ok();
}

Result<void> become_root_of_namespace() {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
    return refuse(fmt::format(
        "this machine does not let an ordinary user make a user namespace ({}; in a chroot "
        "nobody may): run as root, or allow it (sysctl kernel.unprivileged_userns_clone=1, "
        "kernel.apparmor_restrict_unprivileged_userns=0, user.max_user_namespaces)",
        boost::system::error_code(errno, boost::system::system_category()).message()));
  const bool mapped = write_text("/proc/self/setgroups", "deny") &&
                      write_text("/proc/self/uid_map", fmt::format("0 {} 1", user)) &&
                      write_text("/proc/self/gid_map", fmt::format("0 {} 1", group));
  if (!mapped) return errno_failure("map the user in its own user namespace");
  return mount_step(nullptr, "/", nullptr, MS_REC | MS_PRIVATE);
}

}  // namespace nvdra::sandbox
