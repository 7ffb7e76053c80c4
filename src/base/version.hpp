// What this program is.
#pragma once

#include <string>
#include <string_view>

namespace nvdra {

std::string_view version();  // "0.1.0"
std::string_view commit();   // the git commit, or "unknown"

// "<program> version <version>" and, when a commit is known, a second line "commit: <sha>"
// (node-side.md 2.2).
std::string version_text(std::string_view program);

}  // namespace nvdra
