// Small text files that somebody else replaces: kubeconfigs, tokens, certificates. Unlike
// base/files.hpp it follows symbolic links: a service account folder is made of them.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>

namespace nvdra::k8s {

// At most 4 MiB. Directories are refused (errno EISDIR). The error does not name the path.
Result<std::string> read_text_file(const std::string& path);

// Changes whenever the file behind the path is replaced or rewritten.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;
  std::int64_t size = -1;
  bool operator==(const FileStamp&) const = default;
};
Result<FileStamp> stamp_of(const std::string& path);

}  // namespace nvdra::k8s
