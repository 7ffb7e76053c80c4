#include "imex/host_socket.hpp"

#include "base/event.hpp"
#include "base/inotify.hpp"
#include "base/within.hpp"
#include "imex/text.hpp"

#include <boost/asio/this_coro.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>

namespace nvdra::imex {
namespace {

constexpr Duration shortest_pause = 50ms;

struct Split {
  std::string directory, name;
};

Split split(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return {"/", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

// A stream socket's own word on whether somebody listens. The connection is closed at once.
bool nobody_listens(const std::string& path) {
  const Split parts = split(path);
  const Fd directory(::open(parts.directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const Fd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!directory || !client) return false;
  // A path below a driver root is easily longer than a socket address.
  const std::string reachable = fmt::format("/proc/self/fd/{}/{}", directory.get(), parts.name);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (reachable.size() >= sizeof(address.sun_path)) return false;
  std::ranges::copy(reachable, address.sun_path);
  return ::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
             0 &&
         errno == ECONNREFUSED;
}

bool is_absent(const Error& error) {
  return error.code == boost::system::errc::no_such_file_or_directory ||
         error.code == boost::system::errc::not_a_directory ||
         error.code == boost::system::errc::too_many_symbolic_link_levels;
}

}  // namespace

// One question that is being asked.
struct HostSocket::Flight {
  explicit Flight(asio::any_io_executor executor) : landed(std::move(executor)) {}
  Event landed;
  std::optional<HostState> answer;  // none when the asking was cancelled
};

Async<HostState> HostSocket::probe() {
  while (flight_) {
    const std::shared_ptr<Flight> other = flight_;
    const auto count = co_await other->landed.wait(0);
    (void)count;
    if (other->answer) co_return *other->answer;
  }

  auto executor = co_await asio::this_coro::executor;
  flight_ = std::make_shared<Flight>(executor);
  struct Landing {
    HostSocket* self;
    std::shared_ptr<Flight> flight;
    ~Landing() {
      self->flight_.reset();
      flight->landed.notify();
    }
  };
  const Landing landing{this, flight_};
  HostState state = co_await ask();
  landing.flight->answer = state;
  co_return state;
}

Async<HostState> HostSocket::ask() {
  seen_ = look();
  if (auto known = answer_without_asking()) co_return *std::move(known);

  const DriverRoot root = dev_root(service_.root);
  const Result<Found> tool = find_binary(root, host_tool);
  if (!tool) co_return ToolMissing{root};
  const Command command{
      .program = tool->inside, .arguments = {"-q", "--u=" + service_.socket}, .root = root.here};
  const Limits limits{.time = service_.limit, .output = 64u << 10};
  const Result<Output> output = co_await run(command, time_, limits);
  if (!output && output.error().code == boost::system::errc::timed_out)
    co_return NoAnswer{service_.limit};
  HostState state =
      output ? judge(*output)
             : ToolFailed{.how = "cannot be started: " + output.error().text(), .output = ""};
  // Its failure may be the socket's that went away meanwhile.
  if (std::holds_alternative<ToolFailed>(state))
    if (auto known = answer_without_asking()) co_return *std::move(known);
  co_return state;
}

std::optional<HostState> HostSocket::answer_without_asking() const {
  if (!exists(service_.root)) return DriverRootMissing{};
  const DriverRoot root = dev_root(service_.root);
  if (!find_binary(root, host_tool)) return ToolMissing{root};

  const Result<std::string> socket = resolve_in_root(root.here, service_.socket);
  if (!socket && is_absent(socket.error())) return NoSocket{NoSocket::Why::missing};
  struct stat status{};
  if (!socket || ::lstat(socket->c_str(), &status) != 0) return std::nullopt;
  if (!S_ISSOCK(status.st_mode)) return NoSocket{NoSocket::Why::not_a_socket};
  if (nobody_listens(*socket)) return NoSocket{NoSocket::Why::no_listener};
  return std::nullopt;
}

HostSocket::Sight HostSocket::look() const {
  Sight sight;
  const std::string root = dev_root(service_.root).here;
  if (const Result<std::string> socket = resolve_in_root(root, service_.socket)) {
    struct stat status{};
    if (::lstat(socket->c_str(), &status) == 0) {
      sight.device = status.st_dev;
      sight.inode = status.st_ino;
      sight.seconds = status.st_ctim.tv_sec;
      sight.nanoseconds = status.st_ctim.tv_nsec;
    }
  }
  std::string directory = service_.socket;
  do {
    directory = split(directory).directory;
    const Result<std::string> real = resolve_in_root(root, directory);
    if (real) sight.directory = *real;
  } while (sight.directory.empty() && directory != "/");
  return sight;
}

Async<Result<void>> HostSocket::wait_change() {
  const Sight seen = seen_;
  const Duration pause =
      std::clamp(time_.now() - changed_, shortest_pause, std::max(shortest_pause, interval_));
  const Instant until = time_.now() + pause;
  auto executor = co_await asio::this_coro::executor;
  Result<DirectoryWatch> watch = DirectoryWatch::open(executor, seen.directory);
  for (;;) {
    if (look() != seen) {
      changed_ = time_.now();
      co_return ok();
    }
    const Duration left = until - time_.now();
    if (left <= Duration::zero()) co_return ok();
    if (!watch) {
      co_await time_.sleep(left);
      continue;
    }
    const Result<void> changed = co_await within(time_, left, watch->changed());
    // Later than the limit, or the directory is gone: the next question finds out.
    if (!changed) co_return ok();
  }
}

}  // namespace nvdra::imex
