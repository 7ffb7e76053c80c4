#include "sandbox/tool_ctl.hpp"

#include "base/try.hpp"
#include "imex/driver_version.hpp"
#include "imex/text.hpp"
#include "sandbox/tool_domain.hpp"
#include "sandbox/tool_facts.hpp"
#include "sandbox/tool_imex_config.hpp"
#include "sandbox/tool_imex_log.hpp"
#include "sandbox/tool_members.hpp"
#include "sandbox/tool_socket.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <optional>
#include <thread>

namespace nvdra::sandbox {
namespace {

constexpr int unreadable = 255;

enum class Wish { none, status, domain, monitor, subscribe };

struct Options {
  Wish wish = Wish::none;
  std::string config;
  std::string socket;
  std::string address, port;
  int connections = 0;  // how many of -c, -u, -i were given
  std::optional<Duration> limit;
  bool json = false, host_names = false, help = false;
  std::string bad;
};

bool before(const NodeFacts& facts, std::uint64_t generation) {
  const auto version = imex::parse_driver_version(facts.imex_version);
  return version && version->numbers.at(0) < generation;
}

void take_value(Options& options, std::string_view name, const std::string& value) {
  if (name == "-t") {
    const auto number = imex::parse_number<unsigned>(value);
    if (!number) options.bad = "-t " + value;
    options.limit = std::chrono::milliseconds(number.value_or(0));
    return;
  }
  ++options.connections;
  (name == "-c" ? options.config : options.socket) = value;
}

Options read_options(std::span<const std::string> arguments, const NodeFacts& facts) {
  Options options;
  for (std::size_t i = 0; i < arguments.size() && options.bad.empty(); ++i) {
    const std::string& word = arguments[i];
    const std::size_t left = arguments.size() - i - 1;
    if (word == "-q")
      options.wish = Wish::status;
    else if (word == "-N")
      options.wish = Wish::domain;
    else if (word == "-n")
      options.wish = Wish::monitor;
    else if (word == "-s")
      options.wish = Wish::subscribe;
    else if (word == "-j")
      options.json = true;
    else if (word == "-H")
      options.host_names = true;
    else if (word == "--help" || word == "-h")
      options.help = true;
    else if ((word == "-c" || word == "-u" || word == "-t") && left > 0)
      take_value(options, word, arguments[++i]);
    else if (word.starts_with("--u="))
      take_value(options, "-u", word.substr(4));
    else if (word.starts_with("--c="))
      take_value(options, "-c", word.substr(4));
    else if (word == "-i" && left > 1 && before(facts, 580)) {
      ++options.connections;
      options.address = arguments[++i];
      options.port = arguments[++i];
    } else
      options.bad = word;
  }
  return options;
}

std::string usage(const NodeFacts& facts) {
  if (!before(facts, 595))
    return "Usage: nvidia-imex-ctl [-c <nvidia-imex config.cfg path>] <-n|-N|-q> [-j][-H]\n";
  return "Usage: nvidia-imex-ctl [-u <unix domain socket path>|-c <config path>] <-n|-N|-q|-s> "
         "[-t <timeout>] [-j][-H]\n";
}

// Where the daemon is, and who is in its domain.
struct Target {
  std::string socket;
  std::string address;
  std::uint16_t port = 0;
  std::vector<std::string> nodes;  // known from the nodes file only

  std::string text() const {
    if (!socket.empty()) return "unix:" + socket;
    if (address.find(':') != std::string::npos)
      return fmt::format("ipv6:%5B{}%5D:{}", address, port);
    return fmt::format("ipv4:{}:{}", address, port);
  }
};

Result<Target> find_target(const Options& options) {
  Target target;
  target.socket = options.socket;
  target.address = options.address;
  if (!options.socket.empty()) return target;
  if (!options.address.empty()) {
    target.port = imex::parse_number<std::uint16_t>(options.port).value_or(0);
    return target;
  }
  const std::string path = options.config.empty() ? std::string(imex_config_path) : options.config;
  TRY(const ImexConfig config, read_imex_config(path));
  TRY(target.nodes, read_nodes(config.nodes_file));
  target.socket = config.command_socket;
  target.address = config.command_address.empty() ? "::" : config.command_address;
  target.port = config.command_port.value_or(50005);
  return target;
}

Result<std::string> ask(const Target& target, std::string_view question, Duration limit) {
  Result<Fd> fd = target.socket.empty() ? connect_tcp(target.address, target.port, limit)
                                        : connect_unix(target.socket, limit);
  if (!fd) return std::move(fd).failure();
  const std::string line = std::string(question) + "\n";
  if (::send(fd->get(), line.data(), line.size(), MSG_NOSIGNAL) < 0) return errno_failure("send");
  std::string answer;
  std::array<char, 4096> piece{};
  while (answer.find('\n') == std::string::npos) {
    const ssize_t size = ::recv(fd->get(), piece.data(), piece.size(), 0);
    if (size < 0) return errno_failure("receive");
    if (size == 0) return errno_failure("receive", ECONNRESET);
    answer.append(piece.data(), static_cast<std::size_t>(size));
  }
  answer.resize(answer.find('\n'));
  return answer;
}

int complain(std::string_view what, const Target& target, const Error& error) {
  if (error.code == boost::system::errc::resource_unavailable_try_again ||
      error.code == boost::system::errc::operation_in_progress)
    fmt::print(stderr, "{} returned error code: 4 - Deadline Exceeded\n", what);
  else
    fmt::print(stderr,
               "{} returned error code: 14 - failed to connect to all addresses; last error: "
               "UNKNOWN: {}: {}\n",
               what, target.text(), error.code.message());
  return 1;
}

class Tool {
public:
  Tool(NodeFacts facts, Options options, Target target)
      : facts_(std::move(facts)), options_(std::move(options)), target_(std::move(target)) {}

  int run() {
    switch (options_.wish) {
      case Wish::status: return status();
      case Wish::domain: return domain();
      case Wish::monitor: return monitor();
      case Wish::subscribe: return subscribe();
      case Wish::none: break;
    }
    __builtin_unreachable();
  }

private:
  Duration limit() const { return options_.limit.value_or(std::chrono::hours(1)); }

  int status() {
    const Result<std::string> answer = ask(target_, "STATUS", limit());
    if (!answer) return complain("Query Status", target_, answer.error());
    fmt::print("{}\n", *answer);
    return 0;
  }

  Result<DomainView> view() {
    const Result<std::string> answer = ask(target_, "DOMAIN", limit());
    if (!answer && !target_.nodes.empty() &&
        answer.error().code != boost::system::errc::resource_unavailable_try_again)
      return absent_domain(target_.nodes);
    if (!answer) return answer.failure();
    TRY(const Json json, parse_json(*answer));
    return domain_from(json);
  }

  int domain() {
    const Result<DomainView> seen = view();
    if (!seen) return complain("Query Domain", target_, seen.error());
    fmt::print("{}", options_.json ? domain_json(*seen, options_.host_names, imex_time())
                                   : domain_table(*seen, facts_.imex_version, imex_time()));
    std::fflush(stdout);
    return 0;
  }

  int monitor() {
    for (;;) {
      if (const int status = domain(); status != 0) return status;
      std::this_thread::sleep_for(1s);
    }
  }

  // Shows each new state until the time is over.
  int subscribe() {
    const Instant end = Clock::now() + options_.limit.value_or(5s);
    std::string last;
    while (Clock::now() < end) {
      const Result<std::string> answer = ask(target_, "STATUS", limit());
      if (!answer) return complain("Subscribe Status", target_, answer.error());
      if (*answer != last) fmt::print("{} stopAtReady: 0\nkeepGoing: 1\n", *answer);
      last = *answer;
      std::this_thread::sleep_for(std::min<Duration>(50ms, end - Clock::now()));
    }
    fmt::print("Finishing subscription\n{}\n", last);
    return 0;
  }

  NodeFacts facts_;
  Options options_;
  Target target_;
};

}  // namespace

int nvidia_imex_ctl(std::span<const std::string> arguments) {
  const std::string root = own_root();
  const Result<NodeFacts> facts = read_facts(root);
  const Result<NodeFaults> faults = read_faults(root);
  if (!facts || !faults) {
    fmt::print(stderr, "{}\n", (facts ? faults.error() : facts.error()).text());
    return 125;
  }
  if (const auto status = play_faults(faults->ctl)) return *status;
  const Options options = read_options(arguments, *facts);
  if (options.help) {
    fmt::print("{}", usage(*facts));
    return before(*facts, 595) ? 0 : 1;
  }
  if (!options.bad.empty() || options.connections > 1 || options.wish == Wish::none) {
    fmt::print(stderr, "{}", usage(*facts));
    return 1;
  }
  const Result<Target> target = find_target(options);
  if (!target) {
    fmt::print(stderr, "{}\n", target.error().text());
    return unreadable;
  }
  return Tool(*facts, options, *target).run();
}

}  // namespace nvdra::sandbox
