#include "sandbox/api_session.hpp"

#include "base/try.hpp"
#include "sandbox/api_discovery.hpp"
#include "sandbox/api_objects.hpp"
#include "sandbox/api_pods.hpp"
#include "sandbox/store_error.hpp"

#include <boost/asio/use_awaitable.hpp>

#include <fmt/format.h>

namespace nvdra::sandbox {
namespace {

// The answer that a fault rule gives instead of the server's own.
Answer injected(const Fault& fault, const Route& route) {
  Reason reason = Reason::internal;
  for (int i = 1; i <= static_cast<int>(Reason::timeout); ++i)
    if (http_status(static_cast<Reason>(i)) == fault.status) reason = static_cast<Reason>(i);
  std::string message =
      fault.message.empty() ? fmt::format("injected fault {}", fault.status) : fault.message;
  Json status = status_of(deny(reason, message).error);
  JsonObject& object = status.get_object();
  object["code"] = fault.status;
  object["details"] = JsonObject{{"name", route.name}, {"kind", route.resource->type.plural}};
  if (!fault.reason.empty()) object["reason"] = fault.reason;
  Answer answer{fault.status};
  if (fault.retry_after) {
    answer.headers["Retry-After"] = std::to_string(*fault.retry_after);
    object["details"].get_object()["retryAfterSeconds"] = *fault.retry_after;
  }
  answer.body = to_text(status);
  return answer;
}

Async<void> wait(asio::any_io_executor executor, Duration length) {
  asio::steady_timer timer(executor, length);
  co_await timer.async_wait(asio::use_awaitable);
}

}  // namespace

Async<void> ApiServer::Session::serve() {
  while (connection.keeps()) {
    Result<std::optional<Request>> request = co_await connection.read_request();
    if (!request || !*request) break;
    Result<void> answered = co_await answer(**std::move(request));
    if (!answered) break;
  }
  connection.close();
}

Async<Result<void>> ApiServer::Session::answer(Request request) {
  std::optional<Route> route = route_of(request, server.registry_.catalog());
  Asked asked = route ? asked_of(*route, request) : Asked{"", ""};
  std::optional<Fault> hit = route ? server.faults_.decide(asked) : std::nullopt;
  Fault fault = hit ? *std::move(hit) : Fault{};
  if (fault.delay > Duration::zero()) {
    auto executor = co_await asio::this_coro::executor;
    co_await wait(executor, fault.delay);
  }
  auto counted = [&](int status) {
    if (!route) return;
    ++server.counts_[{asked.verb, asked.resource, asked.subresource, asked.user_agent, status}];
  };
  if (fault.cut == Fault::Cut::before) {
    counted(0);
    co_return fail(make_error_code(Reason::unavailable), "cut by a fault rule");
  }
  bool watches = route && route->verb == "watch" && route->resource->listed && fault.status == 0;
  bool streams = route && is_pod_stream(*route) && fault.status == 0;
  if (watches || streams) {
    counted(200);
    Result<void> ended = ok();
    if (watches)
      ended = co_await watch(*std::move(route), std::move(request), std::move(fault));
    else
      ended = co_await serve_pod_stream(connection, server.registry_, server.options_.pods,
                                        *std::move(route), std::move(request));
    co_return ended;
  }
  Answer said =
      fault.status != 0 ? injected(fault, *route) : answer_now(route ? &*route : nullptr, request);
  counted(fault.cut == Fault::Cut::no ? said.status : 0);
  Result<void> sent = co_await send(std::move(said), fault.cut);
  co_return sent;
}

Async<Result<void>> ApiServer::Session::send(Answer answer, Fault::Cut cut) {
  if (cut == Fault::Cut::after)
    co_return fail(make_error_code(Reason::unavailable), "cut by a fault rule");
  if (cut == Fault::Cut::body) {
    Result<void> half = co_await connection.write_half(std::move(answer));
    (void)half;
    co_return fail(make_error_code(Reason::unavailable), "cut by a fault rule");
  }
  Result<void> written = co_await connection.write(std::move(answer));
  co_return written;
}

Answer ApiServer::Session::answer_now(const Route* route, const Request& request) {
  if (route) return answer_object_request(server.registry_, *route, request);
  const Catalog& catalog = server.registry_.catalog();
  if (!request.path.empty() && request.path[0] == "sandbox") return control(request);
  if (auto answer = answer_discovery(request, catalog, server.options_.version)) return *answer;
  if (auto answer = answer_openapi(request, catalog)) return *answer;
  return {404, "404 page not found\n", "text/plain; charset=utf-8"};
}

// The paths of api_faults.hpp.
Answer ApiServer::Session::control(const Request& request) {
  std::string what = request.method + " " + request.path_text();
  Answer done{200, "{}"};
  if (what == "POST /sandbox/faults") {
    Result<Json> rules = parse_json(request.body);
    if (!rules) return refusal(deny(Reason::bad_request, rules.error().text()).error);
    Result<void> added = server.faults_.add(*rules);
    return added ? done : refusal(added.error());
  }
  if (what == "GET /sandbox/faults") return {200, to_text(server.faults_.to_json())};
  if (what == "DELETE /sandbox/faults") {
    server.faults_.clear();
    return done;
  }
  if (what == "POST /sandbox/compact") {
    server.registry_.feed().forget(server.registry_.version());
    return done;
  }
  if (what == "DELETE /sandbox/watches") {
    server.cut_watches(request.parameter("resource"));
    return done;
  }
  if (what == "GET /sandbox/requests") {
    JsonArray list;
    for (const auto& [kind, times] : server.counts_)
      list.push_back(JsonObject{{"verb", kind.verb},
                                {"resource", kind.resource},
                                {"subresource", kind.subresource},
                                {"userAgent", kind.user_agent},
                                {"status", kind.status},
                                {"count", times}});
    return {200, to_text(list)};
  }
  if (what == "DELETE /sandbox/requests") {
    server.reset_counts();
    return done;
  }
  return refusal(deny(Reason::not_found, fmt::format("the sandbox has no {}", what)).error);
}

}  // namespace nvdra::sandbox
