#include "sandbox/api_pods.hpp"

#include "base/try.hpp"
#include "sandbox/api_objects.hpp"
#include "sandbox/api_websocket.hpp"
#include "sandbox/store_error.hpp"

#include <fmt/format.h>

#include <charconv>

namespace nvdra::sandbox {
namespace {

// The body of a log answer: begun with the first byte, so that an early failure is a Status.
class LogOutput final : public PodOutput {
public:
  explicit LogOutput(Connection& connection) : connection_(connection) {}
  bool begun() const { return begun_; }

  Async<Result<void>> begin() {
    if (begun_) co_return ok();
    begun_ = true;
    Result<void> sent = co_await connection_.begin_stream(200, "text/plain");
    co_return sent;
  }
  Async<Result<void>> write_out(std::string bytes) override {
    CO_TRY_VOID(co_await begin());
    if (connection_.client_gone())
      co_return fail(make_error_code(Reason::unavailable), "the reader of the log has gone");
    if (bytes.empty()) co_return ok();
    Result<void> sent = co_await connection_.write_chunk(std::move(bytes));
    co_return sent;
  }
  Async<Result<void>> write_err(std::string bytes) override {
    Result<void> sent = co_await write_out(std::move(bytes));
    co_return sent;
  }
  Async<Result<std::string>> read_in() override { co_return std::string(); }

private:
  Connection& connection_;
  bool begun_ = false;
};

// v4 and v5.channel.k8s.io: the first byte of a message is its channel.
enum Channel : char { in = 0, out = 1, err = 2, status = 3, resize = 4 };
constexpr unsigned char close_channel = 255;

class ExecOutput final : public PodOutput {
public:
  explicit ExecOutput(Connection& connection) : socket_(connection) {}

  Async<Result<void>> write_out(std::string bytes) override {
    Result<void> sent = co_await write(out, std::move(bytes));
    co_return sent;
  }
  Async<Result<void>> write_err(std::string bytes) override {
    Result<void> sent = co_await write(err, std::move(bytes));
    co_return sent;
  }
  Async<Result<std::string>> read_in() override {
    for (;;) {
      CO_TRY(std::optional<std::string> message, co_await socket_.read());
      if (!message) co_return std::string();
      if (message->size() < 2) continue;
      if (static_cast<unsigned char>(message->front()) == close_channel && (*message)[1] == in)
        co_return std::string();
      if (message->front() == in) co_return message->substr(1);
    }
  }
  Async<Result<void>> end(Json result) {
    CO_TRY_VOID(co_await write(status, to_text(result)));
    Result<void> closed = co_await socket_.close();
    co_return closed;
  }

private:
  Async<Result<void>> write(Channel channel, std::string bytes) {
    bytes.insert(bytes.begin(), channel);
    Result<void> sent = co_await socket_.write(std::move(bytes));
    co_return sent;
  }
  WebSocket socket_;
};

LogQuery log_query(const Request& request) {
  LogQuery query{.container = request.parameter("container"),
                 .follow = request.flag("follow"),
                 .previous = request.flag("previous"),
                 .timestamps = request.flag("timestamps")};
  std::string tail = request.parameter("tailLines");
  std::int64_t lines = 0;
  if (!tail.empty() &&
      std::from_chars(tail.data(), tail.data() + tail.size(), lines).ec == std::errc{})
    query.tail_lines = lines;
  return query;
}

ExecQuery exec_query(const Request& request) {
  ExecQuery query{.container = request.parameter("container"),
                  .command = {},
                  .stdin_open = request.flag("stdin"),
                  .tty = request.flag("tty")};
  auto [first, last] = request.query.equal_range("command");
  for (; first != last; ++first) query.command.push_back(first->second);
  return query;
}

Json exec_status(const Result<int>& ended) {
  if (ended && *ended == 0) return JsonObject{{"metadata", JsonObject{}}, {"status", "Success"}};
  if (!ended) return status_of(ended.error());
  std::string code = std::to_string(*ended);
  return JsonObject{
      {"metadata", JsonObject{}},
      {"status", "Failure"},
      {"reason", "NonZeroExitCode"},
      {"message", fmt::format("command terminated with non-zero exit code: exit status {}", code)},
      {"details",
       JsonObject{{"causes", JsonArray{JsonObject{{"reason", "ExitCode"}, {"message", code}}}}}}};
}

std::string chosen_protocol(const Request& request) {
  std::string offered = request.header("sec-websocket-protocol");
  for (const char* known : {"v5.channel.k8s.io", "v4.channel.k8s.io"})
    if (offered.find(known) != std::string::npos) return known;
  return {};
}

Result<ItemPtr> running_pod(Registry& registry, PodRuntime* pods, const Route& route) {
  TRY(ItemPtr pod, registry.get(*route.resource, {route.space, route.name}));
  std::string_view node = text_or_empty(pod->json(), "spec/nodeName");
  if (node.empty())
    return deny(Reason::bad_request,
                fmt::format("pod {} does not have a host assigned", route.name));
  if (!pods)
    return deny(Reason::unavailable, fmt::format("node {} of this sandbox has no kubelet", node));
  return pod;
}

}  // namespace

bool is_pod_stream(const Route& route) {
  return route.resource->type.plural == "pods" && route.resource->type.group.empty() &&
         (route.subresource == "log" || route.subresource == "exec");
}

Async<Result<void>> serve_pod_stream(Connection& connection, Registry& registry, PodRuntime* pods,
                                     Route route, Request request) {
  Result<ItemPtr> pod = running_pod(registry, pods, route);
  std::string protocol = chosen_protocol(request);
  bool exec = route.subresource == "exec";
  if (pod && exec && protocol.empty())
    pod = deny(Reason::bad_request,
               "exec needs a WebSocket with the protocol v5.channel.k8s.io or v4.channel.k8s.io");
  if (!pod) {
    Result<void> sent = co_await connection.write(refusal(pod.error()));
    co_return sent;
  }
  if (!exec) {
    LogOutput output(connection);
    Result<void> ended = co_await pods->logs(*pod, log_query(request), output);
    if (!ended && !output.begun()) {
      Result<void> sent = co_await connection.write(refusal(ended.error()));
      co_return sent;
    }
    CO_TRY_VOID(co_await output.begin());
    Result<void> sent = co_await connection.end_stream();
    co_return sent;
  }
  CO_TRY_VOID(co_await WebSocket::accept(connection, request, protocol));
  ExecOutput output(connection);
  Result<int> ended = co_await pods->exec(*pod, exec_query(request), output);
  Result<void> told = co_await output.end(exec_status(ended));
  (void)told;
  co_return fail(make_error_code(Reason::gone), "the command has ended");
}

}  // namespace nvdra::sandbox
