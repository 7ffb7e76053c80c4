#include "roles/common/command_line.hpp"

#include "base/common_flags.hpp"
#include "base/version.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace nvdra::roles {
namespace {

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

bool asks_for(std::span<const std::string> arguments, std::string_view first,
              std::string_view second) {
  return std::ranges::any_of(arguments, [&](const std::string& argument) {
    return argument == first || argument == second;
  });
}

}  // namespace

int report_error(std::string_view text, int status) {
  std::fprintf(stderr, "Error: %.*s\n", static_cast<int>(text.size()), text.data());
  return status;
}

std::variant<Args, int> read_command_line(const CommandLine& line,
                                          std::span<const std::string> arguments,
                                          const Environment& environment,
                                          std::vector<std::string>* words) {
  if (asks_for(arguments, "--help", "-h")) {
    print(line.program + ": " + line.summary + "\n\nusage: " + line.program + " " + line.usage +
          "\n\n" + flags_help(line.flags));
    return 0;
  }
  if (asks_for(arguments, "--version", "-version")) {
    print(version_text(line.version_program));
    return 0;
  }
  Result<Args> args = parse_args(line.flags, arguments, environment, words);
  if (!args) return report_error(args.error().text(), exit_usage);
  Result<void> logging = apply_logging(*args);
  if (!logging) return report_error(logging.error().text(), exit_usage);
  return *std::move(args);
}

Result<std::string> metrics_path_of(const Args& args) {
  std::string path = args.text("metrics-path");
  const bool odd = path.find_first_of(" \t\r\n?#") != std::string::npos;
  if (!path.empty() && (!path.starts_with('/') || odd))
    return refuse(fmt::format(
        "--metrics-path (METRICS_PATH) is \"{}\": use a path that begins with \"/\", or leave it "
        "empty for no metrics",
        path));
  if (path == "/healthz" || path == "/readyz")
    return refuse(fmt::format(
        "--metrics-path (METRICS_PATH) is \"{}\", where the probes are answered: use another path",
        path));
  return path;
}

}  // namespace nvdra::roles
