// Folders of this machine as a container's image: read-only, but with room for files that are
// mounted into them.
#pragma once

#include "base/result.hpp"

#include <string>
#include <vector>

namespace nvdra::sandbox {

// Makes `root`/`name` show this machine's /`name`. `targets` are absolute paths, all of them below
// /`name`, at which something will be mounted: their folders become folders of links to the
// machine's files (which are under `root`/.host), so that new entries can be made there.
// Without targets it is a plain bind mount.
Result<void> mirror(const std::string& root, const std::string& name,
                    const std::vector<std::string>& targets);

// Where a path leads when this machine's links between folders are followed: "/lib/x" may be
// "/usr/lib/x". The last component may be missing.
std::string real_target(const std::string& path);

}  // namespace nvdra::sandbox
