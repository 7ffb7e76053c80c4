// TempDir: a directory that is removed, with everything below it, at the end of its life.
#pragma once

#include "base/fd.hpp"

#include <fcntl.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

namespace nvdra::fake {

class TempDir {
public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "nvdra-test-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("mkdtemp " + name);
    path_ = name;
    directory_.reset(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string path(std::string_view name) const { return path_ + "/" + std::string(name); }
  int fd() const { return directory_.get(); }

  // Creates missing directories on the way.
  void write(std::string_view name, std::string_view content) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << content;
  }
  // "" when there is none.
  std::string read(std::string_view name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool exists(std::string_view name) const {
    return std::filesystem::exists(std::filesystem::symlink_status(path(name)));
  }

private:
  std::string path_;
  Fd directory_;
};

}  // namespace nvdra::fake
