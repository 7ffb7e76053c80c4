// Giving back the memory of the start.
#pragma once

#include "base/time.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace nvdra {

// A range of this process's addresses, as /proc/self/smaps writes them.
struct CodeRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool operator==(const CodeRange&) const = default;
};

// From the text of /proc/PID/smaps: the mappings of files that nobody writes to and of which no
// page has become the process's own. Their pages can be dropped at any time: the file still has
// them.
std::vector<CodeRange> clean_file_mappings(std::string_view smaps);

// Drops the pages of program code and constants that only the start has needed. The kernel maps
// them in generous pieces; what is needed again comes back from its cache. For a process that is
// idle for most of its life, once its start is over.
void give_back_code();

// Gives back code and freed memory after half a minute, and then every minute: some milliseconds
// each. Until cancelled.
Async<Result<void>> stay_small(Time& time);

}  // namespace nvdra
