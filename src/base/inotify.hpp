// Waiting for changes in a directory (inotify).
#pragma once

#include "base/async.hpp"
#include "base/fd.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <string>

namespace nvdra {

// Watches one directory for created, deleted, moved, attribute-changed and closed-after-write
// entries. Missing directory: open() fails with errno ENOENT; the caller watches the parent.
class DirectoryWatch {
public:
  static Result<DirectoryWatch> open(asio::any_io_executor executor, const std::string& directory);
  // Returns when something changed since the last call (bursts are one change). An error means
  // that the directory itself is gone, and every later call gives it again.
  Async<Result<void>> changed();

private:
  DirectoryWatch(asio::posix::stream_descriptor stream, std::string directory)
      : stream_(std::move(stream)), directory_(std::move(directory)) {}
  asio::posix::stream_descriptor stream_;
  std::string directory_;
  bool gone_ = false;
};

}  // namespace nvdra
