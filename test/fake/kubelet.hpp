// Kubelet: plays the kubelet over the plugin's real sockets. Calls block, so the plugin's loop must
// run in another thread (PluginLoop).
#pragma once

#include "dra/plugin.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace nvdra::fake {

// The status of an RPC: gRPC's code by number, 0 = OK.
struct RpcStatus {
  int code = 0;
  std::string text;
  bool ok() const { return code == 0; }
};

struct PluginInfo {
  RpcStatus status;
  std::string type;
  std::string name;
  std::string endpoint;
  std::vector<std::string> versions;
};

struct ClaimAnswer {
  dra::Prepared devices;
  std::string error;
};
struct ClaimAnswers {
  RpcStatus status;
  std::map<std::string, ClaimAnswer> claims;  // by UID
};

enum class DraVersion { v1, v1beta1 };

class Kubelet {
public:
  // The connection of the real one: made once, kept, made again when it breaks.
  Kubelet(const std::string& registrar_socket, const std::string& service_socket);
  ~Kubelet();

  PluginInfo get_info();
  RpcStatus notify(bool registered, const std::string& error = {});
  ClaimAnswers prepare(const std::vector<dra::ClaimRef>& claims, Duration limit = 45s,
                       DraVersion version = DraVersion::v1);
  ClaimAnswers unprepare(const std::vector<dra::ClaimRef>& claims, Duration limit = 45s,
                         DraVersion version = DraVersion::v1);
  // In a thread of its own.
  std::future<ClaimAnswers> begin_prepare(std::vector<dra::ClaimRef> claims, Duration limit = 45s);
  // Asks, and goes away after `patience`, as a kubelet that is killed.
  RpcStatus prepare_and_leave(const std::vector<dra::ClaimRef>& claims, Duration patience);

private:
  struct Stubs;
  std::unique_ptr<Stubs> stubs_;
};

// grpc.health.v1.Health/Check, as a probe does it.
struct HealthAnswer {
  RpcStatus status;
  int serving = 0;  // 1 = SERVING, 2 = NOT_SERVING
};
HealthAnswer check_health(int port, const std::string& service = {});

// A loop in a thread of its own, for as long as this lives.
class PluginLoop {
public:
  PluginLoop() : thread_([this] { loop.run(); }) {}
  ~PluginLoop() {
    work_.reset();
    loop.stop();
    thread_.join();
  }
  // Runs `work` there and waits for its answer.
  template <class T>
  T run(Async<T> work) {
    std::promise<T> promise;
    auto answer = promise.get_future();
    asio::co_spawn(
        loop,
        [](Async<T> task, std::promise<T>* into) -> Async<void> {
          if constexpr (std::is_void_v<T>) {
            co_await std::move(task);
            into->set_value();
          } else {
            into->set_value(co_await std::move(task));
          }
        }(std::move(work), &promise),
        [&](std::exception_ptr thrown) {
          if (thrown) promise.set_exception(thrown);
        });
    return answer.get();
  }

  asio::io_context loop{1};

private:
  asio::executor_work_guard<asio::io_context::executor_type> work_{loop.get_executor()};
  std::thread thread_;
};

}  // namespace nvdra::fake
