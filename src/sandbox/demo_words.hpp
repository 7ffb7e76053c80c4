// A shell's way of reading a command line, as far as the guide's commands need it. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace nvdra::sandbox {

using Variables = std::map<std::string, std::string, std::less<>>;

// The words of `line`: quotes taken away, "${NAME}" replaced except in single quotes (an unknown
// name is empty), backslash-newline joins lines.
std::vector<std::string> shell_words(std::string_view line, const Variables& variables);

}  // namespace nvdra::sandbox
