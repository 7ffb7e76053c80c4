// The directory of CDI files that container runtimes read ("CDI root", /var/run/cdi).
#pragma once

#include "base/fd.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "cdi/spec.hpp"

#include <string>
#include <vector>

namespace nvdra::cdi {

// Files are replaced as a whole (draft "spec.*", fsync, rename) and have mode 0600. Errors name
// the file's full path. Blocks for the disk, never longer. A directory that somebody has removed
// or replaced meanwhile is made or opened anew by whatever comes next.
class SpecDir {
public:
  // Creates the directory (0750) if it is missing; something else in its place is an error.
  static Result<SpecDir> open(const std::string& path);

  const std::string& path() const { return path_; }

  Result<void> put(const std::string& file, const Spec& spec);
  // A missing file is a success.
  Result<void> remove(const std::string& file);
  // ENOENT when it is missing.
  Result<Spec> get(const std::string& file) const;
  // Whether the file has exactly the bytes that put() would write. Quicker than get().
  bool holds(const std::string& file, const Spec& spec) const;
  // The claims that have a file here, sorted.
  Result<std::vector<ClaimUid>> claims() const;

private:
  SpecDir(std::string path, Fd directory)
      : path_(std::move(path)), directory_(std::move(directory)) {}
  // The directory that `path_` names now.
  Result<int> directory() const;

  std::string path_;
  mutable Fd directory_;
};

}  // namespace nvdra::cdi
