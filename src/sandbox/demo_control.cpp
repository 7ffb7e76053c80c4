#include "sandbox/demo_control.hpp"

#include "base/files.hpp"
#include "base/try.hpp"
#include "sandbox/tool_socket.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>

namespace nvdra::sandbox {
namespace {

constexpr std::string_view lock_name = ".lock";

std::string control_socket(const std::string& folder) {
  return folder + "/control";
}

// A line {"node", "command": […]} is answered by a line {"status", "out", "err"}.
Async<std::string> perform(Cluster* cluster, std::string line) {
  const auto refusal = [](std::string_view why) {
    return to_text(Json(JsonObject{{"status", 1}, {"out", ""}, {"err", fmt::format("{}\n", why)}}));
  };
  const Result<Json> asked = parse_json(line);
  if (!asked) co_return refusal(asked.error().text());
  const std::string name(text_or_empty(*asked, "node"));
  Cluster::Node* node = cluster->node(name);
  if (!node) co_return refusal(fmt::format("there is no node {}", name));
  std::vector<std::string> command;
  for (const Json& word : array_or_empty(*asked, "command"))
    if (word.is_string()) command.emplace_back(word.get_string());
  Result<Output> done = co_await node->shell.run(std::move(command));
  if (!done) co_return refusal(done.error().text());
  co_return to_text(Json(
      JsonObject{{"status", done->exit.code.value_or(1)}, {"out", done->out}, {"err", done->err}}));
}

Async<Result<void>> serve_one(Cluster* cluster, std::shared_ptr<LineSocket> socket) {
  auto line = co_await socket->line();
  if (!line) co_return ok();
  const std::string answer = co_await perform(cluster, *line);
  socket->send(answer);
  co_return ok();
}

Async<Result<void>> serve_control(Cluster* cluster, asio::posix::stream_descriptor listening) {
  auto executor = co_await asio::this_coro::executor;
  TaskGroup commands(executor);
  const auto accept = [](Cluster* of, asio::posix::stream_descriptor* at,
                         TaskGroup* into) -> Async<Result<void>> {
    for (;;) {
      auto accepted = co_await accept_on(*at);
      if (accepted) into->spawn("command", serve_one(of, *accepted));
    }
  };
  commands.spawn("accept", accept(cluster, &listening, &commands));
  Result<void> ended = co_await commands.join();
  co_return ended;
}

void tell(const Cluster& cluster, std::string_view node) {
  const std::string& folder = cluster.options().folder;
  fmt::print(
      "The sandbox is up. Ctrl-C ends it and removes everything.\n\n"
      "  export KUBECONFIG={}\n"
      "  kubectl get nodes,resourceslices\n\n"
      "On a node, as its administrator (NVDRA_SANDBOX={}):\n\n",
      cluster.kubeconfig(), folder);
  if (cluster.options().mode == ImexMode::host_managed)
    fmt::print(
        "  nvdra-sandbox on {} systemctl stop nvidia-imex.service\n"
        "  nvdra-sandbox on {} nvidia-imex-ctl -q --u={}\n\n",
        node, node, imex_socket);
  else
    fmt::print("  nvdra-sandbox on {} pkill -KILL nvidia-imex\n\n", node);
  if (!cluster.network().separate())
    fmt::print("Pods have addresses of the loopback interface ({}).\n", cluster.network().why());
  fmt::print(
      "Logs of nvdra: {}/log; faults of a node: {}/{}/driver/etc/nvdra-sandbox/faults.json\n",
      folder, folder, node);
  std::fflush(stdout);
}

}  // namespace

Result<Fd> take_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return errno_failure("create " + path);
  TRY(const Fd folder, open_directory(path));
  struct stat status{};
  if (::fstat(folder.get(), &status) != 0) return errno_failure(path);
  if (status.st_uid != ::geteuid())
    return refuse(fmt::format("{} belongs to another user: choose another one by --folder", path));
  Result<Fd> lock = try_lock_file(folder.get(), std::string(lock_name));
  if (!lock)
    return refuse(
        fmt::format("a sandbox is running in {} already: end it, or choose another folder "
                    "by --folder",
                    path));
  TRY(const std::vector<Entry> entries, list_directory(folder.get()));
  for (const Entry& entry : entries) {
    if (entry.name == lock_name) continue;
    TRY_VOID(remove_tree(folder.get(), entry.name));
  }
  return lock;
}

Async<Result<void>> serve_until_stopped(Cluster& cluster) {
  CO_TRY_VOID(co_await cluster.wait_ready(60s));
  auto executor = co_await asio::this_coro::executor;
  CO_TRY(Fd listening, listen_unix(control_socket(cluster.options().folder)));
  tell(cluster, cluster.nodes().front().layout.name);
  Result<void> ended = co_await serve_control(
      &cluster, asio::posix::stream_descriptor(executor, listening.release()));
  co_return ended;
}

Result<int> ask_node(const std::string& folder, const std::string& node,
                     std::span<const std::string> command) {
  JsonArray words;
  for (const std::string& word : command) words.emplace_back(word);
  const std::string line =
      to_text(Json(JsonObject{{"node", node}, {"command", std::move(words)}})) + "\n";
  Result<Fd> socket = connect_unix(control_socket(folder), std::chrono::minutes(2));
  if (!socket)
    return refuse(
        fmt::format("no sandbox answers in {}: start one by nvdra-sandbox up, or name its "
                    "folder by NVDRA_SANDBOX",
                    folder));
  if (::send(socket->get(), line.data(), line.size(), MSG_NOSIGNAL) < 0)
    return errno_failure("ask the sandbox");
  std::string answer;
  std::array<char, 4096> piece{};
  for (ssize_t size = 1; size > 0 && answer.find('\n') == std::string::npos;) {
    size = ::recv(socket->get(), piece.data(), piece.size(), 0);
    if (size < 0) return errno_failure("hear from the sandbox");
    answer.append(piece.data(), static_cast<std::size_t>(size));
  }
  TRY(const Json told, parse_json(answer));
  fmt::print(stdout, "{}", text_or_empty(told, "out"));
  fmt::print(stderr, "{}", text_or_empty(told, "err"));
  return static_cast<int>(int_or(told, "status", 1));
}

}  // namespace nvdra::sandbox
