// A fuzz target is one file with `void fuzz(std::string_view text)`: it feeds `text` to a parser of
// ours and breaks off with require() when a promise of the parser's header does not hold. The
// sanitizers find the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

void fuzz(std::string_view text);

inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

// libFuzzer's entry. The name is libFuzzer's.
// NOLINTNEXTLINE(readability-identifier-naming,misc-definitions-in-headers)
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
