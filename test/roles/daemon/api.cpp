#include "roles/daemon/api.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <algorithm>

namespace nvdra::roles::daemon::test {
namespace {

std::string before(const std::string& text, char mark) {
  return text.substr(0, text.find(mark));
}

std::string parameter(const std::string& query, const std::string& name) {
  const auto at = query.find(name + "=");
  return at == std::string::npos ? "" : before(query.substr(at + name.size() + 1), '&');
}

// "metadata.name=x", percent-encoded.
std::string selected_name(const std::string& query) {
  const std::string selector = parameter(query, "fieldSelector");
  const auto at = selector.find("%3D");
  return at == std::string::npos ? "" : selector.substr(at + 3);
}

k8s::HttpAnswer refused(int status, const std::string& reason, const std::string& extra = {}) {
  return {status, R"({"kind":"Status","status":"Failure","message":"no","reason":")" + reason +
                      "\"" + extra + "}"};
}

std::string unescaped(std::string word) {
  for (auto at = word.find("~1"); at != std::string::npos; at = word.find("~1"))
    word.replace(at, 2, "/");
  return word;
}

// RFC 6902, as far as daemons use it. False: the patch does not apply.
bool apply(Json& object, const Json& operation) {
  std::string path(text_or_empty(operation, "path"));
  const auto slash = path.rfind('/');
  const std::string last = unescaped(path.substr(slash + 1));
  boost::system::error_code failed;
  Json* parent = slash == 0 ? &object : object.find_pointer(path.substr(0, slash), failed);
  if (!parent) return false;
  const std::string_view op = text_or_empty(operation, "op");
  const Json* value = find(operation, "value");
  if (auto* fields = parent->if_object()) {
    if (op == "test") return fields->contains(last) && fields->at(last) == *value;
    if (op == "remove") return fields->erase(last) > 0;
    if (op == "replace" && !fields->contains(last)) return false;
    (*fields)[last] = *value;
    return true;
  }
  auto* items = parent->if_array();
  if (!items) return false;
  const std::size_t at = last == "-" ? items->size() : std::stoul(last);
  if (op == "add") {
    if (at > items->size()) return false;
    items->insert(items->begin() + static_cast<std::ptrdiff_t>(at), *value);
    return true;
  }
  if (at >= items->size()) return false;
  if (op == "test") return items->at(at) == *value;
  if (op == "replace") items->at(at) = *value;
  if (op == "remove") items->erase(items->begin() + static_cast<std::ptrdiff_t>(at));
  return true;
}

Async<void> push_later(Time* time, Duration latency, std::shared_ptr<fake::Body> body,
                       std::string line) {
  if (latency > Duration{}) co_await time->sleep(latency);
  body->push(std::move(line));
}

}  // namespace

std::size_t Api::count(std::string_view method, std::string_view part) const {
  return static_cast<std::size_t>(std::ranges::count_if(asked, [&](const std::string& call) {
    return call.starts_with(method) && call.find(part) != std::string::npos;
  }));
}

void Api::put(const std::string& path, Json object) {
  const bool known = objects.contains(path);
  object.at("metadata").get_object()["resourceVersion"] = std::to_string(++version_);
  objects[path] = object;
  show(known ? "MODIFIED" : "ADDED", path, object);
}

void Api::remove(const std::string& path) {
  Json object = objects.at(path);
  object.at("metadata").get_object()["resourceVersion"] = std::to_string(++version_);
  objects.erase(path);
  show("DELETED", path, object);
}

void Api::show(const std::string& type, const std::string& path, const Json& object) {
  const std::string line = to_text(JsonObject{{"type", type}, {"object", object}}) + "\n";
  for (Watcher& watcher : watchers_)
    if (path == watcher.collection + "/" + watcher.name && watcher.body->open())
      asio::co_spawn(executor_, push_later(&time_, latency, watcher.body, line), asio::detached);
}

Async<Result<k8s::HttpAnswer>> Api::send(k8s::HttpRequest request) {
  asked.push_back(request.method + " " + before(request.target, '?'));
  if (down) co_return fail(k8s::Errc::not_sent, "connect");
  if (latency > Duration{}) co_await time_.sleep(latency);
  k8s::HttpAnswer made = answer(request);
  if (latency > Duration{}) co_await time_.sleep(latency);
  co_return made;
}

Async<Result<k8s::OpenAnswer>> Api::open(k8s::HttpRequest request) {
  const std::string path = before(request.target, '?');
  asked.push_back("WATCH " + path);
  if (down) co_return fail(k8s::Errc::not_sent, "connect");
  auto body = std::make_shared<fake::Body>(executor_);
  k8s::OpenAnswer opened{200, "", {}, std::make_unique<fake::ScriptedStream>(body, time_)};
  watchers_.push_back({path, selected_name(request.target), body});
  // What happened between the list and the watch.
  const std::string own = path + "/" + watchers_.back().name;
  const int since = std::stoi(parameter(request.target, "resourceVersion"));
  if (objects.contains(own)) {
    const Json& object = objects.at(own);
    if (std::stoi(std::string(text_or_empty(object, "metadata/resourceVersion"))) > since)
      body->push(to_text(JsonObject{{"type", "ADDED"}, {"object", object}}) + "\n");
  }
  co_return opened;
}

k8s::HttpAnswer Api::answer(const k8s::HttpRequest& request) {
  std::string path = before(request.target, '?');
  if (request.method == "GET") return get(path, request.target);
  if (request.method == "POST") return create(path, request.body);
  if (path.ends_with("/status")) path.resize(path.size() - std::string("/status").size());
  return patch(path, request);
}

k8s::HttpAnswer Api::get(const std::string& path, const std::string& query) const {
  if (auto found = objects.find(path); found != objects.end()) return {200, to_text(found->second)};
  if (query.find("fieldSelector") == std::string::npos) return refused(404, "NotFound");
  JsonArray items;
  if (auto found = objects.find(path + "/" + selected_name(query)); found != objects.end())
    items.push_back(found->second);
  return {200, to_text(JsonObject{{"metadata", {{"resourceVersion", std::to_string(version_)}}},
                                  {"items", items}})};
}

k8s::HttpAnswer Api::create(const std::string& collection, const std::string& body) {
  Json object = *parse_json(body);
  const std::string path = collection + "/" + std::string(text_or_empty(object, "metadata/name"));
  if (collection.ends_with("/events")) return {201, body};
  if (objects.contains(path)) return refused(409, "AlreadyExists");
  object.at("metadata").get_object()["uid"] = "uid-" + std::to_string(version_);
  put(path, std::move(object));
  return {201, to_text(objects.at(path))};
}

k8s::HttpAnswer Api::patch(const std::string& path, const k8s::HttpRequest& request) {
  if (!objects.contains(path)) return refused(404, "NotFound");
  Json object = objects.at(path);
  const Json change = *parse_json(request.body);
  if (request.content_type == "application/merge-patch+json") {
    merge_patch(object, change);
  } else {
    for (const Json& operation : change.get_array())
      if (!apply(object, operation))
        return refused(
            422, "Invalid",
            R"(,"details":{"causes":[{"message":"testing value failed: test failed"}]})");
  }
  if (object != objects.at(path)) put(path, std::move(object));
  return {200, to_text(objects.at(path))};
}

}  // namespace nvdra::roles::daemon::test
