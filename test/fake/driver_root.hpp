// The driver root of a node in a temporary directory: files, played tools and real sockets.
#pragma once

#include "base/fd.hpp"
#include "catch.hpp"
#include "fake/temp_dir.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace nvdra::fake {

// Paths are absolute within the root: path("/usr/bin/x").
class TempRoot {
public:
  const std::string& path() const { return directory_.path(); }
  std::string path(const std::string& inside) const { return path() + inside; }

  void directory(const std::string& inside) const {
    std::filesystem::create_directories(path(inside));
  }
  void file(const std::string& inside, const std::string& content = "", mode_t mode = 0644) const {
    std::filesystem::create_directories(std::filesystem::path(path(inside)).parent_path());
    std::ofstream(path(inside), std::ios::binary) << content;
    ::chmod(path(inside).c_str(), mode);
  }
  void link(const std::string& inside, const std::string& target) const {
    std::filesystem::create_directories(std::filesystem::path(path(inside)).parent_path());
    std::filesystem::create_symlink(target, path(inside));
  }

private:
  TempDir directory_;
};

// Played tools run in a changed root, which root may do, and anybody in a user namespace of his
// own.
inline bool must_skip_root_tests() {
  static const bool may = [] {
    if (::geteuid() == 0) return true;
    const auto uid = std::to_string(::getuid());
    const auto gid = std::to_string(::getgid());
    if (::unshare(CLONE_NEWUSER) != 0) return false;
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << "0 " << uid << " 1";
    std::ofstream("/proc/self/gid_map") << "0 " << gid << " 1";
    return ::geteuid() == 0;
  }();
  if (!may) WARN("skipped: needs root or user namespaces");
  return !may;
}

class FakeNode : public TempRoot {
public:
  FakeNode() { directory("/dev"); }

  // Installs FAKE_TOOL (a macro of the test's build); `does` is a script for it
  // (test/fake/tool.cpp).
  void tool(const std::string& inside, const std::string& does,
            const char* program = FAKE_TOOL) const {
    std::filesystem::create_directories(std::filesystem::path(path(inside)).parent_path());
    std::filesystem::copy_file(program, path(inside),
                               std::filesystem::copy_options::overwrite_existing);
    file(inside + ".does", does);
  }

  // "<pid> <arguments>" of every start.
  std::vector<std::string> asked(const std::string& inside) const {
    std::ifstream file(path(inside + ".asked"));
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  // A bound socket; with `backlog` it listens too.
  Fd socket(const std::string& inside, int backlog = 8) const {
    const std::filesystem::path place = path(inside);
    std::filesystem::create_directories(place.parent_path());
    std::filesystem::remove(place);
    Fd server(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const Fd parent(::open(place.parent_path().c_str(), O_PATH | O_CLOEXEC));
    std::ostringstream name;
    name << "/proc/self/fd/" << parent.get() << "/" << place.filename().string();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.str().copy(address.sun_path, sizeof(address.sun_path) - 1);
    if (::bind(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
      throw std::runtime_error("bind " + place.string());
    if (backlog > 0 && ::listen(server.get(), backlog) != 0) throw std::runtime_error("listen");
    return server;
  }
};

}  // namespace nvdra::fake
