#include "sandbox/tool_imex_log.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace nvdra::sandbox {
namespace {

std::tm local(const timespec& now) {
  std::tm parts{};
  ::localtime_r(&now.tv_sec, &parts);
  return parts;
}

std::string stamp() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::tm parts = local(now);
  std::array<char, 64> text{};
  (void)std::strftime(text.data(), text.size(), "%b %d %Y %H:%M:%S", &parts);
  return text.data();
}

}  // namespace

std::string imex_time() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::tm parts = local(now);
  return fmt::format("{}/{}/{} {:02}:{:02}:{:02}.{:03}", parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     now.tv_nsec / 1000000);
}

ImexLog::ImexLog(const ImexConfig& config) : level_(config.log_level) {
  std::FILE* file = std::fopen(config.log_file.c_str(), config.log_append ? "ae" : "we");
  if (!file) {
    fmt::print(stderr,
               "WARNING: failed to open IMEX log file errno = {}\nINFO: using stderr for IMEX "
               "logging\n",
               std::strerror(errno));
    file = stderr;
  }
  file_.reset(file);
}

void ImexLog::write(ImexLevel level, std::string_view text) {
  if (static_cast<int>(level) > level_) return;
  constexpr std::array<std::string_view, 5> words = {"", "CRITICAL", "ERROR", "WARNING", "INFO"};
  fmt::print(file_.get(), "[{}] [{}] [tid {}] {}\n", stamp(),
             words.at(static_cast<std::size_t>(level)), ::getpid(), text);
  std::fflush(file_.get());
}

void ImexLog::begin(const ImexConfig& config, std::string_view version, bool no_gpu) {
  if (level_ == 0) return;
  fmt::print(file_.get(), "IMEX Log initializing at: {}\n", imex_time());
  if (no_gpu) info(fmt::format("IMEX version {} is running in NO GPU MODE", version));
  info(fmt::format("IMEX version {} is running with the following configuration options\n",
                   version));
  info(fmt::format("Logging level = {}\n", config.log_level));
  info(fmt::format("Logging file name/path = {}\n", config.log_file));
  info(fmt::format("Append to log file = {}\n", config.log_append ? 1 : 0));
  info("Use Syslog file = 0\n");
  info(fmt::format("Authentication and Encryption enabled = {}\n", config.encryption ? 1 : 0));
  info(fmt::format("IMEX Library communication bind interface = {}\n", config.bind_address));
  info(fmt::format("IMEX library communication bind port = {}\n", config.server_port));
}

}  // namespace nvdra::sandbox
