// A client whose server is a script, for tests.
#pragma once

#include "base/log.hpp"
#include "catch.hpp"
#include "fake/captured_log.hpp"
#include "fake/time.hpp"
#include "fake/transport.hpp"
#include "k8s/client.hpp"
#include "k8s/request.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <fmt/format.h>

namespace nvdra::k8s::client_test {

inline const ResourceType pods{"", "v1", "pods", "Pod"};
inline const ResourceType nodes{"", "v1", "nodes", "Node", false};
inline const ResourceType domains{"resource.nvidia.com", "v1beta1", "computedomains",
                                  "ComputeDomain"};
inline const ResourceType leases{"coordination.k8s.io", "v1", "leases", "Lease"};

struct World {
  asio::io_context loop{1};
  fake::FakeTime time{loop};
  fake::ScriptedTransport api{loop.get_executor(), time};
  Client client{api, time};

  // Starts `call`; its answer is there once the script allows it.
  template <class T>
  std::shared_ptr<std::optional<T>> start(Async<T> call) {
    auto got = std::make_shared<std::optional<T>>();
    asio::co_spawn(
        loop,
        [](Async<T> work, std::shared_ptr<std::optional<T>> into) -> Async<void> {
          into->emplace(co_await std::move(work));
        }(std::move(call), got),
        asio::detached);
    time.settle();
    return got;
  }
  // For calls that need no waiting.
  template <class T>
  T now(Async<T> call) {
    auto got = start(std::move(call));
    REQUIRE(*got);
    CHECK(api.surprises.empty());
    CHECK(api.finished());
    return **got;
  }
  std::unique_ptr<Watch> watch(WatchOptions options) {
    auto got = start(client.watch(pods, "default", std::move(options)));
    REQUIRE(*got);
    REQUIRE((*got)->has_value());
    return std::move(***got);
  }
};

inline std::string pod(std::string_view name, std::string_view version) {
  return fmt::format(R"({{"metadata":{{"name":"{}","resourceVersion":"{}"}}}})", name, version);
}

inline std::string page(std::string_view version, std::string_view items,
                        std::string_view token = "") {
  return fmt::format(
      R"({{"kind":"PodList","metadata":{{"resourceVersion":"{}","continue":"{}"}},"items":[{}]}})",
      version, token, items);
}

inline std::string event(std::string_view type, std::string_view object) {
  return fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, object);
}

}  // namespace nvdra::k8s::client_test
