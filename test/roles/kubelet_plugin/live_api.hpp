// An API server that holds a few objects, for tests: get, list, merge and JSON patches, watches.
// Selectors: metadata.name in watches; lists show everything of their type and namespace.
#pragma once

#include "fake/transport.hpp"
#include "k8s/object.hpp"

#include <algorithm>
#include <map>

namespace nvdra::roles::kubelet_plugin::test {

class LiveApi final : public k8s::Transport {
public:
  LiveApi(asio::any_io_executor executor, Time& time) : executor_(executor), time_(time) {}

  std::vector<std::string> calls;  // "PATCH /api/v1/nodes/node-a"
  int refuse_patches = 0;          // so many answer 500
  bool no_patches = false;         // 403
  int away = 0;                    // so many requests find no server
  bool no_watches = false;         // 403

  // `path` of one object; its version is set.
  void set(const std::string& path, Json object) {
    object.as_object()["metadata"].as_object()["resourceVersion"] = std::to_string(++version_);
    bool known = objects_.contains(path);
    objects_[path] = object;
    tell(path, known ? "MODIFIED" : "ADDED");
  }
  void remove(const std::string& path) {
    if (!objects_.contains(path)) return;
    tell(path, "DELETED");
    objects_.erase(path);
  }
  const Json& at(const std::string& path) const { return objects_.at(path); }
  long count(std::string_view beginning) const {
    return std::ranges::count_if(calls, [&](auto& call) { return call.starts_with(beginning); });
  }
  long watching() const {
    return std::ranges::count_if(watches_, [](const Watching& w) { return w.body->open(); });
  }

  Async<Result<k8s::HttpAnswer>> send(k8s::HttpRequest request) override {
    std::string path = request.target.substr(0, request.target.find('?'));
    calls.push_back(request.method + " " + path);
    if (away > 0) {
      --away;
      co_return fail(k8s::make_error_code(k8s::Errc::not_sent), "connect");
    }
    if (request.method == "PATCH") co_return patch(path, request);
    auto found = objects_.find(path);
    if (found != objects_.end()) co_return k8s::HttpAnswer{200, to_text(found->second)};
    bool is_list = request.target.find("limit=") != std::string::npos;
    co_return is_list ? list(path) : refusal(404, "NotFound");
  }

  Async<Result<k8s::OpenAnswer>> open(k8s::HttpRequest request) override {
    std::string path = request.target.substr(0, request.target.find('?'));
    calls.push_back("WATCH " + path);
    if (no_watches)
      co_return k8s::OpenAnswer{
          403, R"({"kind":"Status","reason":"Forbidden","code":403})", {}, nullptr};
    auto body = std::make_shared<fake::Body>(executor_);
    Watching watching{path, {}, body};
    constexpr std::string_view by_name = "fieldSelector=metadata.name%3D";
    if (auto at = request.target.find(by_name); at != std::string::npos)
      watching.name = request.target.substr(at + by_name.size());
    for (const auto& [each, object] : objects_)
      if (shows(watching, each)) body->push(event("ADDED", object));
    watches_.push_back(watching);
    co_return k8s::OpenAnswer{200, {}, {}, std::make_unique<fake::ScriptedStream>(body, time_)};
  }

private:
  struct Watching {
    std::string path;
    std::string name;  // "" = all
    std::shared_ptr<fake::Body> body;
  };

  static k8s::HttpAnswer refusal(int status, const std::string& reason) {
    return {status, R"({"kind":"Status","message":"no","reason":")" + reason + R"(","code":)" +
                        std::to_string(status) + "}"};
  }
  static std::string event(const std::string& type, const Json& object) {
    return R"({"type":")" + type + R"(","object":)" + to_text(object) + "}\n";
  }
  // "/api/v1/namespaces/x/pods/p" is in "/api/v1/namespaces/x/pods" and in "/api/v1/pods".
  static bool is_in(const std::string& path, const std::string& collection) {
    std::string parent = path.substr(0, path.rfind('/'));
    if (parent == collection) return true;
    auto at = parent.find("/namespaces/");
    if (at == std::string::npos) return false;
    auto end = parent.find('/', at + 12);
    return end != std::string::npos && parent.substr(0, at) + parent.substr(end) == collection;
  }
  static bool shows(const Watching& watching, const std::string& path) {
    std::string name = path.substr(path.rfind('/') + 1);
    return is_in(path, watching.path) && (watching.name.empty() || watching.name == name);
  }
  void tell(const std::string& path, const std::string& type) {
    for (Watching& each : watches_)
      if (shows(each, path)) each.body->push(event(type, objects_.at(path)));
  }
  k8s::HttpAnswer list(const std::string& path) const {
    JsonArray items;
    for (const auto& [each, object] : objects_)
      if (is_in(each, path)) items.push_back(object);
    return {200, to_text(Json{{"metadata", {{"resourceVersion", std::to_string(version_)}}},
                              {"items", items}})};
  }

  k8s::HttpAnswer patch(const std::string& path, const k8s::HttpRequest& request) {
    if (no_patches) return refusal(403, "Forbidden");
    if (refuse_patches > 0) {
      --refuse_patches;
      return refusal(500, "InternalError");
    }
    auto found = objects_.find(path);
    if (found == objects_.end()) return refusal(404, "NotFound");
    Json changes = *parse_json(request.body);
    Json object = found->second;
    if (request.content_type.starts_with("application/json-patch")) {
      for (const Json& step : changes.as_array()) {
        boost::system::error_code missing;
        Json* at = object.find_pointer(text_or_empty(step, "path"), missing);
        bool test = text_or_empty(step, "op") == "test";
        if (!at || (test && *at != *get(step, "value"))) return refusal(422, "Invalid");
        if (test) continue;
        std::string pointer(text_or_empty(step, "path"));
        auto slash = pointer.rfind('/');
        std::string key = pointer.substr(slash + 1);
        if (auto escaped = key.find("~1"); escaped != std::string::npos)
          key.replace(escaped, 2, "/");
        object.find_pointer(pointer.substr(0, slash), missing)->as_object().erase(key);
      }
    } else {
      std::string_view guard = text_or_empty(changes, "metadata/resourceVersion");
      if (!guard.empty() && guard != text_or_empty(object, "metadata/resourceVersion"))
        return refusal(409, "Conflict");
      merge_patch(object, changes);
    }
    set(path, std::move(object));
    return {200, to_text(objects_.at(path))};
  }

  asio::any_io_executor executor_;
  Time& time_;
  std::map<std::string, Json> objects_;
  std::vector<Watching> watches_;
  long version_ = 1;
};

}  // namespace nvdra::roles::kubelet_plugin::test
