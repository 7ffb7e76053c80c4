// Files on local disks, relative to a directory descriptor (AT_FDCWD allowed).
// A file is either the old one or the new one: replace_file writes a draft in the same directory,
// fsyncs it, renames it and fsyncs the directory. Nothing here follows a symbolic link in the last
// component, but for the forms that take a path alone: an operator named those, and mounted tokens
// and ConfigMaps are links. Reading anything but a regular file is an error.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace nvdra {

// At most `limit` bytes; a longer file is an error.
Result<std::string> read_file(int directory, const std::string& path,
                              std::size_t limit = 64u << 20);
Result<std::string> read_file(const std::string& path, std::size_t limit = 64u << 20);

// Draft names start with `draft_prefix` (default "."), so listings can skip them.
// `mode` is exact, whatever the umask. `path` may lead through directories that exist.
Result<void> replace_file(int directory, const std::string& path, std::string_view content,
                          mode_t mode, std::string_view draft_prefix = ".");

Result<Fd> open_directory(const std::string& path);
Result<Fd> open_directory(int parent, const std::string& name);
// Creates the missing ones, each with exactly `mode`; an existing non-directory is an error that
// names it.
Result<void> make_directories(const std::string& path, mode_t mode);
// A missing file is a success.
Result<void> remove_file(int directory, const std::string& name);
// Removes a tree below `directory`, never following links or crossing out of it. Missing = success.
// `name` is one component. A mount point in the tree is an error, and its content stays.
Result<void> remove_tree(int directory, const std::string& name);

struct Entry {
  std::string name;
  bool is_directory;
};
// Sorted by name, without "." and "..".
Result<std::vector<Entry>> list_directory(int directory, const std::string& path = ".");

// flock(2), exclusive, without waiting. errc::resource_unavailable_try_again when held elsewhere.
// Released by closing. Created with mode 0644.
Result<Fd> try_lock_file(int directory, const std::string& name);

}  // namespace nvdra
