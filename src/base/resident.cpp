#include "base/resident.hpp"

#include "base/files.hpp"

#include <malloc.h>
#include <sys/mman.h>

#include <charconv>
#include <optional>

namespace nvdra {
namespace {

std::optional<std::uintptr_t> hexadecimal(std::string_view text) {
  std::uintptr_t number = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (text.empty() || bad != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// "5555-6666 r-xp 00001000 08:01 1234    /usr/bin/program": of a file, and not writable.
std::optional<CodeRange> heading(std::string_view line) {
  const auto blank = line.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const auto dash = line.substr(0, blank).find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto begin = hexadecimal(line.substr(0, dash));
  const auto end = hexadecimal(line.substr(dash + 1, blank - dash - 1));
  if (!begin || !end) return std::nullopt;
  const std::string_view rights = line.substr(blank + 1, 4);
  const bool usable =
      rights.starts_with("r-") && rights.ends_with('p') && line.find(" /") != line.npos;
  return usable ? CodeRange{*begin, *end} : CodeRange{};
}

}  // namespace

std::vector<CodeRange> clean_file_mappings(std::string_view smaps) {
  std::vector<CodeRange> clean;
  CodeRange current;
  while (!smaps.empty()) {
    const auto end = smaps.find('\n');
    const std::string_view line = smaps.substr(0, end);
    smaps.remove_prefix(end == std::string_view::npos ? smaps.size() : end + 1);
    if (const auto range = heading(line)) current = *range;
    constexpr std::string_view own = "Anonymous:";
    if (!line.starts_with(own) || current.end == 0) continue;
    const auto digit = line.find_first_not_of(' ', own.size());
    if (digit != std::string_view::npos && line.substr(digit) == "0 kB") clean.push_back(current);
  }
  return clean;
}

void give_back_code() {
  const Result<std::string> smaps = read_file("/proc/self/smaps");
  if (!smaps) return;
  for (const CodeRange& range : clean_file_mappings(*smaps))
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel has told the address as text
    ::madvise(reinterpret_cast<void*>(range.begin), range.end - range.begin, MADV_DONTNEED);
}

Async<Result<void>> stay_small(Time& time) {
  for (Duration pause = 30s;; pause = 1min) {
    co_await time.sleep(pause);
    ::malloc_trim(0);
    give_back_code();
  }
}

}  // namespace nvdra
