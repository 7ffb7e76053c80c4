// A plugin on its sockets with a kubelet that asks, for tests.
#pragma once

#include "base/event.hpp"
#include "base/task_group.hpp"
#include "catch.hpp"
#include "dra/health.hpp"
#include "dra/server.hpp"
#include "dra/sockets.hpp"
#include "fake/kubelet.hpp"
#include "fake/temp_dir.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/this_coro.hpp>

#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <functional>

namespace nvdra::dra::server_test {

// A driver whose claims behave as their names say.
class NamedPlugin final : public Plugin {
public:
  explicit NamedPlugin(asio::io_context& loop) : released_(loop.get_executor()) {}

  Async<Result<Prepared>> prepare(ClaimRef claim, Deadline) override {
    ++begun;
    if (claim.name == "throws") throw std::runtime_error("a bug");
    if (claim.name == "fails") co_return refuse("the domain's daemon is not ready");
    if (claim.name == "held") {
      Held here{this};
      while (released_.count() == 0) co_await released_.wait(0);
    }
    co_return Prepared{
        {{"channel/first", "other"}, "node-a", "channel-0", {"vendor/class=" + claim.uid.value}}};
  }
  Async<Result<void>> unprepare(ClaimRef claim, Deadline) override {
    if (claim.name == "fails") co_return refuse("no space left");
    co_return ok();
  }
  void release() { released_.notify(); }

  std::atomic<int> begun = 0;  // prepares
  std::atomic<int> held = 0;   // that wait right now

private:
  struct Held {
    explicit Held(NamedPlugin* of) : plugin(of) { ++plugin->held; }
    ~Held() { --plugin->held; }
    NamedPlugin* plugin;
  };
  Event released_;
};

struct World {
  World() {
    std::filesystem::create_directory(dir.path("plugin"));
    std::filesystem::create_directory(dir.path("registry"));
  }
  ~World() { loop.run(server.stop(0s)); }

  ServerConfig config() const {
    return {.driver = "driver.example",
            .plugin_directory = dir.path("plugin"),
            .registrar_directory = dir.path("registry"),
            .patience = 0s};
  }
  Result<void> start() { return loop.run(server.start()); }
  // What `ask` says, asked on the loop.
  template <class Ask>
  auto on_loop(Ask ask) {
    return loop.run(answer_of(ask));
  }
  template <class Ask>
  static Async<std::invoke_result_t<Ask>> answer_of(Ask ask) {
    co_return ask();
  }

  fake::TempDir dir;
  RealTime time;
  fake::PluginLoop loop;
  NamedPlugin plugin{loop.loop};
  Server server{loop.loop, time, plugin, config()};
};

struct ServedWorld : World {
  ServedWorld() { REQUIRE(start()); }
  fake::Kubelet kubelet{server.registrar_path(), server.service_path()};
};

inline ClaimRef claim(const std::string& name, int number = 0) {
  return {"ns", name, ClaimUid("00000000-0000-0000-0000-" + std::to_string(100000000000 + number))};
}

inline bool eventually(const std::function<bool()>& condition, Duration limit = 10s) {
  Instant until = Clock::now() + limit;
  while (!condition()) {
    if (Clock::now() > until) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

}  // namespace nvdra::dra::server_test
