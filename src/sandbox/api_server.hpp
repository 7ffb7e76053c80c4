// The API server: HTTP on loopback over a Registry. Plain HTTP, nobody is asked who they are.
// Lists, watches, discovery, Tables, and the control paths of api_faults.hpp; logs and exec of pods
// are passed to a PodRuntime. Waits on the real clock.
//
//   Registry registry(time);
//   CO_TRY(auto server, ApiServer::listen(loop.get_executor(), registry));
//   group.spawn("api server", server->run());       // and give clients server->url()
#pragma once

#include "sandbox/api_faults.hpp"
#include "sandbox/store_registry.hpp"

#include <map>
#include <memory>
#include <string>
#include <tuple>

namespace nvdra::sandbox {

class PodRuntime;

class ApiServer {
public:
  struct Options {
    std::uint16_t port = 0;  // 0 = any free one
    std::string version = "v1.34.4";
    Duration bookmark_every = 10s;
    PodRuntime* pods = nullptr;  // for logs and exec; must outlive the server
  };
  // What was asked, with its HTTP status → how often. The status of a cut connection is 0.
  struct Count {
    std::string verb, resource, subresource, user_agent;
    int status;
    auto operator<=>(const Count&) const = default;
  };

  // Listens on 127.0.0.1 at once; connections wait until run().
  static Result<std::unique_ptr<ApiServer>> listen(asio::any_io_executor executor,
                                                   Registry& registry);
  static Result<std::unique_ptr<ApiServer>> listen(asio::any_io_executor executor,
                                                   Registry& registry, Options options);
  ~ApiServer();

  std::uint16_t port() const;
  std::string url() const;         // "http://127.0.0.1:PORT"
  std::string kubeconfig() const;  // the text of a kubeconfig file

  // Serves until cancelled. Call once.
  Async<Result<void>> run();

  Faults& faults() { return faults_; }
  const std::map<Count, std::uint64_t>& counts() const { return counts_; }
  // Requests of these kinds; "" = any.
  std::uint64_t count(std::string_view verb, std::string_view resource = {}) const;
  void reset_counts() { counts_.clear(); }
  // Cuts open watches of this resource ("" = all), as a restart of the server does.
  void cut_watches(std::string_view resource = {});

private:
  struct Session;
  struct Listener;
  ApiServer(std::unique_ptr<Listener> listener, Registry& registry, Options options);

  std::unique_ptr<Listener> listener_;
  Registry& registry_;
  Options options_;
  Faults faults_;
  std::map<Count, std::uint64_t> counts_;
  // Open watches: plural, and what ends them.
  std::multimap<std::string, std::function<void()>> watches_;
};

}  // namespace nvdra::sandbox
