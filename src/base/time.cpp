#include "base/time.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fmt/format.h>

#include <ctime>

namespace nvdra {
namespace {

std::tm utc(WallClock::time_point when) {
  std::time_t seconds =
      std::chrono::floor<std::chrono::seconds>(when).time_since_epoch() / std::chrono::seconds(1);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return parts;
}

std::string date_and_time(const std::tm& t) {
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", t.tm_year + 1900, t.tm_mon + 1,
                     t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec);
}

}  // namespace

Async<void> RealTime::sleep(Duration length) {
  auto executor = co_await asio::this_coro::executor;
  asio::steady_timer timer(executor, length);
  co_await timer.async_wait(asio::use_awaitable);
}

std::string rfc3339(WallClock::time_point when) {
  return date_and_time(utc(when)) + "Z";
}

std::string rfc3339_micro(WallClock::time_point when) {
  auto fraction = when - std::chrono::floor<std::chrono::seconds>(when);
  auto micros = std::chrono::floor<std::chrono::microseconds>(fraction).count();
  return fmt::format("{}.{:06}Z", date_and_time(utc(when)), micros);
}

}  // namespace nvdra
