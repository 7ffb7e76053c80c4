#include "sandbox/kubelet_plugins.hpp"

#include "base/files.hpp"
#include "base/inotify.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "base/within.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

namespace nvdra::sandbox {
namespace {

constexpr Duration call_limit = 5s;
constexpr Duration again_after = 500ms;  // when a plugin did not answer
constexpr Duration look_anyway = 30s;

// Changes when another file is put in the same place; "" when there is no socket.
std::string identity_of(const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return {};
  return fmt::format("{}.{}.{}.{}", status.st_dev, status.st_ino, status.st_ctim.tv_sec,
                     status.st_ctim.tv_nsec);
}

}  // namespace

Plugins::Plugins(asio::any_io_executor executor, Time& time, std::string directory)
    : executor_(executor),
      time_(time),
      directory_(std::move(directory)),
      changed_(std::move(executor)) {}

const Driver* Plugins::find(const std::string& name) const {
  for (const auto& [file, known] : known_)
    if (known.driver.name == name) return &known.driver;
  return nullptr;
}

Async<Result<void>> Plugins::run() {
  CO_TRY(DirectoryWatch watch, DirectoryWatch::open(executor_, directory_));
  for (;;) {
    co_await look();
    Result<void> changed =
        co_await within(time_, troubles_.empty() ? look_anyway : again_after, watch.changed());
    if (!changed && changed.error().code != boost::system::errc::timed_out)
      co_return std::move(changed).failure().during("watch " + directory_);
  }
}

Async<void> Plugins::look() {
  const auto entries = list_directory(AT_FDCWD, directory_);
  if (!entries) co_return;
  std::map<std::string, std::string> sockets;
  for (const Entry& entry : *entries)
    if (std::string identity = identity_of(directory_ + "/" + entry.name); !identity.empty())
      sockets.emplace(entry.name, std::move(identity));

  const auto gone = [&](const auto& one) {
    const auto found = sockets.find(one.first);
    return found == sockets.end() || found->second != one.second.identity;
  };
  if (std::erase_if(known_, gone) > 0) changed_.notify();
  troubles_.clear();
  for (const auto& [file, identity] : sockets) {
    if (known_.contains(file)) continue;
    Result<Driver> driver = co_await register_socket(directory_ + "/" + file);
    if (!driver) {
      troubles_[file] = driver.error().text();
      LOG_INFO(2, "Plugin registration failed, retrying",
               {{"socket", file}, {"err", driver.error().text()}});
      continue;
    }
    LOG_INFO(2, "Plugin registered", {{"driver", driver->name}, {"socket", file}});
    known_[file] = {identity, *std::move(driver)};
    changed_.notify();
  }
}

Async<Result<Driver>> Plugins::register_socket(std::string path) {
  PluginChannel registrar(executor_, path);
  CO_TRY(PluginInfo info, co_await registrar.get_info(call_limit));
  std::string refusal;
  const auto serves = [&](std::string_view version) {
    return std::ranges::find(info.versions, version) != info.versions.end();
  };
  if (info.type != "DRAPlugin")
    refusal =
        fmt::format("no handler registered for plugin type: {} at socket {}", info.type, path);
  else if (!serves("v1.DRAPlugin") && !serves("v1beta1.DRAPlugin"))
    refusal = fmt::format("none of the versions of the plugin {} is supported", info.name);
  Result<void> told = co_await registrar.notify(refusal.empty(), refusal, call_limit);
  if (!refusal.empty()) co_return refuse(refusal);
  CO_TRY_VOID(std::move(told));
  co_return Driver{info.name, serves("v1.DRAPlugin") ? DraVersion::v1 : DraVersion::v1beta1,
                   std::make_shared<PluginChannel>(executor_, info.endpoint)};
}

}  // namespace nvdra::sandbox
