#include "k8s/client.hpp"

#include "base/log.hpp"
#include "base/try.hpp"
#include "k8s/request.hpp"
#include "k8s/watch_event.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::k8s {
namespace {

constexpr Duration shortest_pause = 100ms;
// A watch without a byte for its server's limit and this is dead.
constexpr Duration idle_margin = 30s;

std::string asked_of(std::string_view verb, const ResourceType& type, const ObjectKey& key) {
  return fmt::format("{} {} {}", verb, type.plural, key.text());
}

std::string asked_of(std::string_view verb, const ResourceType& type, const std::string& space) {
  if (space.empty()) return fmt::format("{} {}", verb, type.plural);
  return fmt::format("{} {} in {}", verb, type.plural, space);
}

std::string_view status_text(int status) {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 415: return "Unsupported Media Type";
    case 422: return "Unprocessable Entity";
    case 429: return "Too Many Requests";
    case 500: return "Internal Server Error";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    default: return "";
  }
}

// One line per answer, in the place and form in which the tests of the original look for it
// (node-side.md 14); --vmodule round_trippers=6 switches it on alone.
void trace(const HttpRequest& request, int status, Duration took) {
  constexpr const char* file = "k8s/round_trippers.go";
  if (!log::enabled(6, file)) return;
  std::string shown(status_text(status));
  shown = shown.empty() ? std::to_string(status) : fmt::format("{} {}", status, shown);
  log::write(
      {log::Severity::info, 6, file, __LINE__}, "Response",
      {{"verb", request.method},
       {"url", request.target},
       {"status", shown},
       {"milliseconds", std::chrono::duration_cast<std::chrono::milliseconds>(took).count()}});
}

// The pause that the server asks for before the same request may come again; nullopt: do not.
std::optional<Duration> pause_before_retry(int status, std::optional<Duration> retry_after,
                                           Duration left) {
  if (status != 429 && status != 503) return std::nullopt;
  if (!retry_after) return std::nullopt;
  Duration pause = std::max(*retry_after, shortest_pause);
  if (pause >= left) return std::nullopt;
  return pause;
}

Failure malformed(std::string_view why, std::string_view body) {
  return fail(Errc::malformed_answer,
              fmt::format("{}, the answer begins with \"{}\"", why, beginning_of(body)));
}

Result<Json> parse_answer(const HttpAnswer& answer) {
  Result<Json> parsed = parse_json(answer.body);
  if (!parsed) return malformed(parsed.error().text(), answer.body);
  if (!parsed->is_object()) return malformed("not a JSON object", answer.body);
  return parsed;
}

Result<Object> parse_object(const HttpAnswer& answer, const ResourceType& type) {
  TRY(Json json, parse_answer(answer));
  if (!find(json, "metadata")) return malformed("no object of the API", answer.body);
  stamp_type(json, type);
  return Object(std::move(json));
}

}  // namespace

Client::Client(Transport& transport, Time& time) : transport_(transport), time_(time) {}

void Client::note(const HttpRequest& request, int status, Instant began) {
  ++counts_[{request.method, status}];
  if (status != 0) trace(request, status, time_.now() - began);
}

Async<Result<HttpAnswer>> Client::exchange(HttpRequest request, std::string asked) {
  Instant deadline = time_.now() + request.limit;
  for (;;) {
    Instant began = time_.now();
    request.limit = deadline - began;
    Result<HttpAnswer> answer = co_await transport_.send(request);
    note(request, answer ? answer->status : 0, began);
    if (!answer) co_return std::move(answer).failure().during(asked);
    auto pause = pause_before_retry(answer->status, answer->retry_after, deadline - time_.now());
    if (!pause) co_return answer;
    co_await time_.sleep(*pause);
  }
}

Async<Result<HttpAnswer>> Client::succeed(HttpRequest request, std::string asked) {
  Result<HttpAnswer> answer = co_await exchange(std::move(request), asked);
  if (answer && answer->status >= 300)
    co_return failure_of(answer->status, answer->body).during(asked);
  co_return answer;
}

Async<Result<Object>> Client::one(ResourceType type, HttpRequest request, std::string asked) {
  Result<HttpAnswer> answer = co_await succeed(std::move(request), asked);
  if (!answer) co_return std::move(answer).failure();
  Result<Object> object = parse_object(*answer, type);
  if (!object) co_return std::move(object).failure().during(asked);
  co_return object;
}

Async<Result<Object>> Client::get_object(ResourceType type, ObjectKey key, bool urgent) {
  std::string asked = asked_of("get", type, key);
  Result<void> named = check_name(key.name);
  if (!named) co_return std::move(named).failure().during(asked);
  HttpRequest request{
      .method = "GET", .target = path_of(type, key.space, key.name), .urgent = urgent};
  Result<Object> object = co_await one(std::move(type), std::move(request), std::move(asked));
  co_return object;
}

Async<Result<Object>> Client::get(ResourceType type, ObjectKey key) {
  return get_object(std::move(type), std::move(key), false);
}

Async<Result<Object>> Client::get_urgent(ResourceType type, ObjectKey key) {
  return get_object(std::move(type), std::move(key), true);
}

Async<Result<ListAnswer>> Client::list(ResourceType type, std::string space, ListOptions options) {
  Result<ListAnswer> listed = co_await list_pages(type, space, options);
  // The token of a page expires with its version: once more, from the beginning.
  if (!listed && listed.error().code == Errc::gone)
    listed = co_await list_pages(std::move(type), std::move(space), std::move(options));
  co_return listed;
}

Async<Result<ListAnswer>> Client::list_pages(ResourceType type, std::string space,
                                             ListOptions options) {
  std::string asked = asked_of("list", type, space);
  ListAnswer list;
  std::string token;
  do {
    HttpRequest request = list_request(type, space, options, token);
    Result<HttpAnswer> answer = co_await succeed(std::move(request), asked);
    if (!answer) co_return std::move(answer).failure();
    Result<Json> page = parse_answer(*answer);
    if (!page) co_return std::move(page).failure().during(asked);
    const Json* items = find(*page, "items");
    if (!items || !(items->is_array() || items->is_null()))
      co_return malformed("not a list", answer->body).during(asked);
    answer->body = std::string();

    list.version = text_or_empty(*page, "metadata/resourceVersion");
    token = text_or_empty(*page, "metadata/continue");
    if (items->is_null()) continue;
    for (Json& item : page->get_object().at("items").get_array()) {
      stamp_type(item, type);
      list.items.emplace_back(std::move(item));
    }
  } while (!token.empty());
  co_return list;
}

Async<Result<std::unique_ptr<Watch>>> Client::watch(ResourceType type, std::string space,
                                                    WatchOptions options) {
  std::string asked = asked_of("watch", type, space);
  HttpRequest request = watch_request(type, space, options);
  Instant deadline = time_.now() + request.limit;
  for (;;) {
    Instant began = time_.now();
    request.limit = deadline - began;
    Result<OpenAnswer> answer = co_await transport_.open(request);
    note(request, answer ? answer->status : 0, began);
    if (!answer) co_return std::move(answer).failure().during(asked);
    if (answer->status == 200 && answer->stream)
      co_return make_watch(std::move(answer->stream), std::move(type), std::move(asked),
                           options.server_limit + idle_margin);
    auto pause = pause_before_retry(answer->status, answer->retry_after, deadline - time_.now());
    if (!pause) co_return failure_of(answer->status, answer->body).during(asked);
    co_await time_.sleep(*pause);
  }
}

Async<Result<Object>> Client::create_object(ResourceType type, std::string space, Json object,
                                            bool urgent) {
  std::string name(text_or_empty(object, "metadata/name"));
  if (name.empty()) name = text_or_empty(object, "metadata/generateName");
  std::string asked = asked_of("create", type, ObjectKey{space, name});
  Result<void> named = check_name(name);
  if (!named) co_return std::move(named).failure().during(asked);
  stamp_type(object, type);
  HttpRequest request{.method = "POST",
                      .target = path_of(type, space),
                      .content_type = "application/json",
                      .body = to_text(object),
                      .urgent = urgent};
  Result<Object> created = co_await one(std::move(type), std::move(request), std::move(asked));
  co_return created;
}

Async<Result<Object>> Client::create(ResourceType type, std::string space, Json object) {
  return create_object(std::move(type), std::move(space), std::move(object), false);
}

Async<Result<Object>> Client::create_urgent(ResourceType type, std::string space, Json object) {
  return create_object(std::move(type), std::move(space), std::move(object), true);
}

Async<Result<Object>> Client::update(ResourceType type, ObjectKey key, Json object, bool urgent) {
  std::string asked = asked_of("update", type, key);
  Result<void> named = check_name(key.name);
  if (!named) co_return std::move(named).failure().during(asked);
  HttpRequest request{.method = "PUT",
                      .target = path_of(type, key.space, key.name),
                      .content_type = "application/json",
                      .body = to_text(object),
                      .urgent = urgent};
  Result<Object> updated = co_await one(std::move(type), std::move(request), std::move(asked));
  co_return updated;
}

Async<Result<Object>> Client::patch(ResourceType type, ObjectKey key, Json patch,
                                    PatchOptions options) {
  std::string asked = asked_of("patch", type, key);
  Result<void> named = check_name(key.name);
  if (!named) co_return std::move(named).failure().during(asked);
  HttpRequest request = patch_request(type, key, patch, options);
  Result<Object> patched = co_await one(std::move(type), std::move(request), std::move(asked));
  co_return patched;
}

Async<Result<void>> Client::remove(ResourceType type, ObjectKey key, DeleteOptions options) {
  std::string asked = asked_of("delete", type, key);
  Result<void> named = check_name(key.name);
  if (!named) co_return std::move(named).failure().during(asked);
  HttpRequest request = delete_request(type, key, options);
  Result<HttpAnswer> answer = co_await succeed(std::move(request), std::move(asked));
  if (!answer) co_return std::move(answer).failure();
  co_return ok();
}

Async<Result<HttpAnswer>> Client::raw(HttpRequest request) {
  std::string asked = fmt::format("{} {}", request.method, request.target);
  return exchange(std::move(request), std::move(asked));
}

void Client::add_counts(Metrics& metrics) const {
  for (const auto& [key, count] : counts_)
    metrics
        .counter("rest_client_requests_total",
                 "Number of HTTP requests, by method and status code.",
                 {{"method", key.first},
                  {"code", key.second == 0 ? "<error>" : std::to_string(key.second)}})
        .add(static_cast<double>(count));
}

}  // namespace nvdra::k8s
