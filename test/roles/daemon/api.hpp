// An API server that is a table: objects by path, JSON and merge patches, watches, versions, and a
// latency. Enough of one for daemons that write one object together.
#pragma once

#include "base/event.hpp"
#include "base/json.hpp"
#include "base/within.hpp"
#include "fake/transport.hpp"

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace nvdra::roles::daemon::test {

class Api final : public k8s::Transport {
public:
  Api(asio::any_io_executor executor, Time& time) : executor_(std::move(executor)), time_(time) {}

  std::map<std::string, Json> objects;  // by path: "/api/v1/namespaces/x/pods/p"
  std::vector<std::string> asked;       // "PATCH /api/v1/…", without the query
  Duration latency{};                   // of an answer, and of what a watch shows
  bool down = false;

  // As somebody else would.
  void put(const std::string& path, Json object);
  void remove(const std::string& path);
  std::size_t count(std::string_view method, std::string_view part = {}) const;

  Async<Result<k8s::HttpAnswer>> send(k8s::HttpRequest request) override;
  Async<Result<k8s::OpenAnswer>> open(k8s::HttpRequest request) override;

private:
  struct Watcher {
    std::string collection;
    std::string name;
    std::shared_ptr<fake::Body> body;
  };

  k8s::HttpAnswer answer(const k8s::HttpRequest& request);
  k8s::HttpAnswer get(const std::string& path, const std::string& query) const;
  k8s::HttpAnswer create(const std::string& collection, const std::string& body);
  k8s::HttpAnswer patch(const std::string& path, const k8s::HttpRequest& request);
  void show(const std::string& type, const std::string& path, const Json& object);

  asio::any_io_executor executor_;
  Time& time_;
  int version_ = 100;
  std::vector<Watcher> watchers_;
};

}  // namespace nvdra::roles::daemon::test
