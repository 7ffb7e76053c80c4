// CapturedLog: the log lines written while it lives. One at a time.
#pragma once

#include "base/log.hpp"

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

namespace nvdra::fake {

// Configures the log (default: text, everything up to level 9) and restores the defaults at its
// end.
class CapturedLog {
public:
  explicit CapturedLog(const log::Options& options = {.verbosity = 9}) {
    configured_ = log::configure(options).has_value();
    store().clear();
    log::redirect([](std::string_view line) {
      std::lock_guard hold(guard());
      store().emplace_back(line);
    });
  }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;
  ~CapturedLog() {
    log::redirect(nullptr);
    (void)log::configure({}).has_value();
  }

  std::vector<std::string> lines() const {
    std::lock_guard hold(guard());
    return store();
  }
  // How many lines hold `fragment`.
  std::size_t count(std::string_view fragment) const {
    std::vector<std::string> all = lines();
    return static_cast<std::size_t>(std::ranges::count_if(
        all, [&](const std::string& line) { return line.find(fragment) != std::string::npos; }));
  }
  bool has(std::string_view fragment) const { return count(fragment) > 0; }
  bool configured() const { return configured_; }
  void clear() {
    std::lock_guard hold(guard());
    store().clear();
  }

private:
  static std::mutex& guard() {
    static std::mutex mutex;
    return mutex;
  }
  static std::vector<std::string>& store() {
    static std::vector<std::string> lines;
    return lines;
  }
  bool configured_;
};

}  // namespace nvdra::fake
