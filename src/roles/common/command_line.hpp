// What every role does with its arguments before anything starts: help, version, flags.
#pragma once

#include "base/args.hpp"

#include <span>
#include <string>
#include <variant>
#include <vector>

namespace nvdra::roles {

inline constexpr int exit_failed = 1;
inline constexpr int exit_usage = 2;

struct CommandLine {
  std::string program;          // "nvdra controller"
  std::string version_program;  // what --version calls it: "compute-domain-controller"
  std::string summary;          // one sentence for --help
  std::span<const Flag> flags;
  std::string usage = "[FLAGS]";  // what follows the program's name
};

// The flags' values with logging configured; or the exit status, when help or the version was asked
// for (0, on stdout) or something is wrong (2, one line "Error: …" on stderr). Arguments that are
// no flags go to `words`; without it they are refused.
std::variant<Args, int> read_command_line(const CommandLine& line,
                                          std::span<const std::string> arguments,
                                          const Environment& environment,
                                          std::vector<std::string>* words = nullptr);

// The flag metrics-path: "" for no metrics, else a path that a request can ask for and that is not
// one of the endpoint's others.
Result<std::string> metrics_path_of(const Args& args);

// Prints "Error: <text>" on stderr and returns `status`.
int report_error(std::string_view text, int status);

}  // namespace nvdra::roles
