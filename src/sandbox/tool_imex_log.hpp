// The log of nvidia-imex, in its own form:
//   [Mar 25 2025 10:41:54] [INFO] [tid 38] GPU event successfully subscribed
#pragma once

#include "sandbox/tool_imex_config.hpp"

#include <cstdio>
#include <memory>
#include <string_view>

namespace nvdra::sandbox {

enum class ImexLevel { critical = 1, error, warning, info };

class ImexLog {
public:
  // Opens the file of the configuration; stderr when there is none or it cannot be opened.
  explicit ImexLog(const ImexConfig& config);

  void write(ImexLevel level, std::string_view text);
  void info(std::string_view text) { write(ImexLevel::info, text); }
  // The options that the daemon starts with.
  void begin(const ImexConfig& config, std::string_view version, bool no_gpu);

private:
  struct Close {
    void operator()(std::FILE* file) const {
      if (file != stderr) std::fclose(file);
    }
  };
  int level_;
  std::unique_ptr<std::FILE, Close> file_;
};

// Local time as the IMEX tools print it: "5/4/2026 06:08:10.580".
std::string imex_time();

}  // namespace nvdra::sandbox
