// The simulated tools as real processes.
#include "catch.hpp"
#include "tool_node.hpp"

#include <csignal>
#include <thread>

namespace nvdra::sandbox {
namespace {

struct Bench {
  asio::io_context loop{1};
  RealTime time;

  // True as soon as `condition` is, false after `limit`.
  template <class Condition>
  bool becomes(Condition condition, Duration limit = 10s) {
    for (const Instant end = time.now() + limit; time.now() < end;) {
      if (condition()) return true;
      std::this_thread::sleep_for(20ms);
    }
    return condition();
  }
};

// A node that runs nvidia-imex at an address of its own.
class ImexNode : public ToolNode {
public:
  ImexNode(Bench& bench, int number)
      : ToolNode(bench.loop, bench.time), bench_(bench), address_(own_address(number)) {}

  void configure(std::string_view nodes, std::string_view more = "") {
    root.write("nodes.cfg", nodes);
    root.write("imex.cfg", fmt::format("LOG_FILE_NAME={}\nDAEMONIZE=0\nBIND_INTERFACE_IP={}\n"
                                       "IMEX_NODE_CONFIG_FILE={}\nIMEX_CMD_ENABLED=1\n"
                                       "IMEX_CMD_UNIX_DOMAIN_PATH={}\n{}",
                                       root.path("imex.log"), address_, root.path("nodes.cfg"),
                                       socket(), more));
  }
  void start_daemon() {
    Command command{.program = tool("nvidia-imex"), .arguments = {"-c", root.path("imex.cfg")}};
    auto started = start(command, bench_.loop.get_executor(), false);
    if (!started) throw std::runtime_error(started.error().text());
    daemon.emplace(*std::move(started));
  }
  Exit stop_daemon() {
    (void)daemon->signal(SIGTERM);
    return wait_daemon();
  }
  Exit wait_daemon() {
    auto ended = fake::run(bench_.loop, daemon->wait());
    daemon.reset();
    return ended ? *ended : Exit{};
  }

  std::string socket() const { return root.path("imex.sock"); }
  std::string state() { return run_tool("nvidia-imex-ctl", {"-q", "--u=" + socket()}).out; }
  bool ready() {
    return bench_.becomes([&] { return state() == "READY\n"; });
  }
  // The matrix and the domain's state, without blanks.
  std::string domain() {
    const std::string text = run_tool("nvidia-imex-ctl", {"-N", "-u", socket()}).out;
    std::string kept;
    const auto from = text.find(" Nodes From\\To");
    for (const char c : from == std::string::npos ? text : text.substr(from))
      if (c != ' ') kept += c;
    return kept;
  }
  std::string log() const { return root.read("imex.log"); }

  std::optional<Child> daemon;

private:
  Bench& bench_;
  std::string address_;
};

std::string lines(std::initializer_list<std::string> items) {
  std::string text;
  for (const std::string& item : items) text += item + "\n";
  return text;
}

TEST_CASE("a daemon becomes ready, answers over its socket and removes it at its orderly end",
          "[sandbox][tool][process]") {
  Bench bench;
  ImexNode node(bench, 1);
  node.configure(lines({own_address(1)}));
  node.start_daemon();
  REQUIRE(node.ready());
  CHECK(node.domain().ends_with("DomainState:UP\n"));
  CHECK(node.log().find("Identified this node as ID 0, using bind IP of '" + own_address(1)) !=
        std::string::npos);
  CHECK(node.log().find("GPU event successfully subscribed") != std::string::npos);
  CHECK(node.stop_daemon().code == 0);
  CHECK_FALSE(node.root.exists("imex.sock"));
  const Output late = node.run_tool("nvidia-imex-ctl", {"-q", "-u", node.socket()});
  CHECK(late.exit.code == 1);
  CHECK(late.err.find("Query Status returned error code: 14 - failed to connect") == 0);
}

TEST_CASE("two daemons form a domain, and the one that ends is missed",
          "[sandbox][tool][process]") {
  Bench bench;
  ImexNode first(bench, 1);
  ImexNode second(bench, 2);
  const std::string nodes = lines({own_address(1), own_address(2)});
  first.configure(nodes);
  second.configure(nodes);
  first.start_daemon();
  REQUIRE(first.ready());
  CHECK(first.domain() == "NodesFrom\\To01\n0CN\n1II\n\nDomainState:DEGRADED\n");
  second.start_daemon();
  REQUIRE(second.ready());
  const std::string up = "NodesFrom\\To01\n0CC\n1CC\n\nDomainState:UP\n";
  CHECK(bench.becomes([&] { return first.domain() == up && second.domain() == up; }));

  SECTION("in good order") {
    CHECK(second.stop_daemon().code == 0);
    CHECK(bench.becomes([&] { return first.domain().find("0CD\n1II") != std::string::npos; }));
    CHECK(first.log().find("Received notification of shutdown from node 1") != std::string::npos);
  }
  SECTION("by a crash, and comes back") {
    (void)second.daemon->signal(SIGKILL);
    CHECK(second.wait_daemon().signal == SIGKILL);
    CHECK(bench.becomes([&] { return first.domain().find("0CR\n1II") != std::string::npos; }));
    CHECK(second.root.exists("imex.sock"));  // left behind, and replaced by the next one
    second.start_daemon();
    CHECK(bench.becomes([&] { return first.domain() == up && second.domain() == up; }));
    CHECK(first.log().find("Number of times connected: 2") != std::string::npos);
  }
}

TEST_CASE("names are resolved at every try, at once after SIGUSR1", "[sandbox][tool][process]") {
  Bench bench;
  ImexNode first(bench, 1);
  ImexNode second(bench, 2);
  for (ImexNode* node : {&first, &second}) node->configure("member-0\nmember-1\n");
  first.root.write("etc/hosts", own_address(1) + " member-0\n127.0.0.2 member-1\n");
  second.root.write("etc/hosts", own_address(1) + " member-0\n" + own_address(2) + " member-1\n");
  first.start_daemon();
  second.start_daemon();
  REQUIRE(first.ready());
  CHECK(first.log().find("Treating node config entry 'member-0' as a host name.") !=
        std::string::npos);
  CHECK(bench.becomes([&] { return second.domain().find("1CC") != std::string::npos; }));
  CHECK(first.domain().find("0CN") != std::string::npos);
  first.root.write("etc/hosts", own_address(1) + " member-0\n" + own_address(2) + " member-1\n");
  (void)first.daemon->signal(SIGUSR1);
  CHECK(bench.becomes([&] { return first.domain().ends_with("DomainState:UP\n"); }));
}

TEST_CASE("daemons with other nodes files or versions refuse each other",
          "[sandbox][tool][process]") {
  Bench bench;
  ImexNode first(bench, 1);
  ImexNode second(bench, 2);
  first.configure(lines({own_address(1), own_address(2)}));
  std::string expected;
  SECTION("nodes files") {
    second.configure(lines({own_address(1), own_address(2), own_address(3)}));
    expected = "0C!M!";
  }
  SECTION("versions") {
    second.configure(lines({own_address(1), own_address(2)}));
    second.facts(R"({"driverVersion": "570.172.08"})");
    expected = "0C!V!";
  }
  first.start_daemon();
  second.start_daemon();
  CHECK(bench.becomes([&] { return first.domain().find(expected) != std::string::npos; }));
}

TEST_CASE("a daemon that cannot work ends at once and says why", "[sandbox][tool][process]") {
  Bench bench;
  ImexNode node(bench, 1);
  node.configure(lines({own_address(1)}));
  std::string says;
  SECTION("no line of the nodes file is this node") {
    node.configure("198.51.100.1\n198.51.100.2\n");
    says =
        "No matching network interface found for any IP addresses in the node configuration file";
  }
  SECTION("the driver has another version") {
    node.faults(R"({"nvidia-imex": {"driverVersion": "570.00"}})");
    says = "is not matching with current GPU driver version 570.00";
  }
  SECTION("another daemon has the GPUs") {
    node.faults(R"({"nvidia-imex": {"inUse": true}})");
    says = "NV_ERR_IN_USE";
  }
  SECTION("there is no nodes file") {
    std::filesystem::remove(node.root.path("nodes.cfg"));
    says = "Failed to read node configuration file";
  }
  node.start_daemon();
  CHECK(node.wait_daemon().code == 1);
  CHECK(node.log().find(says) != std::string::npos);
}

TEST_CASE("faults of the daemon work as soon as they are written", "[sandbox][tool][process]") {
  Bench bench;
  ImexNode node(bench, 1);
  node.configure(lines({own_address(1)}));

  SECTION("it crashes at start, and after a while") {
    node.faults(R"({"nvidia-imex": {"exitAtStart": 7}})");
    node.start_daemon();
    CHECK(node.wait_daemon().code == 7);
    node.faults(R"({"nvidia-imex": {"crashAfter": 0.3, "exit": 9}})");
    node.start_daemon();
    CHECK(node.wait_daemon().code == 9);
  }
  SECTION("it leaves and enters states while it runs") {
    node.start_daemon();
    REQUIRE(node.ready());
    node.faults(R"({"nvidia-imex": {"state": "WAITING_FOR_PEERS"}})");
    CHECK(bench.becomes([&] { return node.state() == "WAITING_FOR_PEERS\n"; }));
    node.faults(R"({"nvidia-imex": {"answer": "garbage ?"}})");
    CHECK(node.state() == "garbage ?\n");
    node.faults("{}");
    CHECK(node.ready());
  }
  SECTION("it hangs: takes the question and never answers") {
    node.start_daemon();
    REQUIRE(node.ready());
    node.faults(R"({"nvidia-imex": {"hang": true}})");
    const Output late = node.run_tool("nvidia-imex-ctl", {"-q", "-u", node.socket(), "-t", "300"});
    CHECK(late.exit.code == 1);
    CHECK(late.err.find("Deadline Exceeded") != std::string::npos);
  }
  SECTION("it takes its time, and it ignores SIGTERM") {
    node.faults(R"({"nvidia-imex": {"slowStart": 60, "ignoreTerm": true}})");
    node.start_daemon();
    CHECK(bench.becomes([&] { return node.state() == "INITIALIZING\n"; }));
    (void)node.daemon->signal(SIGTERM);
    std::this_thread::sleep_for(200ms);
    CHECK(node.state() == "INITIALIZING\n");
    (void)node.daemon->signal(SIGKILL);
    CHECK(node.wait_daemon().signal == SIGKILL);
  }
}

TEST_CASE("nvidia-imex-ctl knows the domain from the files when no daemon answers",
          "[sandbox][tool][process]") {
  Bench bench;
  ImexNode node(bench, 1);
  node.configure(lines({own_address(1), own_address(2)}));
  const std::string config = node.root.path("imex.cfg");
  const Output domain = node.run_tool("nvidia-imex-ctl", {"-N", "-c", config});
  CHECK(domain.exit.success());
  CHECK(domain.out.find("Domain State: DOWN") != std::string::npos);
  CHECK(domain.out.find("UNAVAILABLE") != std::string::npos);
  CHECK(node.run_tool("nvidia-imex-ctl", {"-q", "-c", config}).exit.code == 1);
  CHECK(node.run_tool("nvidia-imex-ctl", {"-q", "-c", "/nowhere"}).exit.code == 255);
  CHECK(node.run_tool("nvidia-imex-ctl", {}).exit.code == 1);
  CHECK(node.run_tool("nvidia-imex-ctl", {"-q", "-c", config, "-u", "/x"}).exit.code == 1);
}

TEST_CASE("the command service also listens on a port, and IPv6 is optional",
          "[sandbox][tool][process]") {
  Bench bench;
  ImexNode node(bench, 1);
  const int port = 20000 + ::getpid() % 20000;
  node.configure(lines({own_address(1)}),
                 fmt::format("IMEX_CMD_BIND_INTERFACE_IP={}\nIMEX_CMD_PORT={}\n"
                             "IMEX_CMD_UNIX_DOMAIN_PATH=\n",
                             own_address(1), port));
  node.start_daemon();
  const auto ask = [&] {
    return node.run_tool("nvidia-imex-ctl", {"-q", "-c", node.root.path("imex.cfg")}).out;
  };
  CHECK(bench.becomes([&] { return ask() == "READY\n"; }));
}

TEST_CASE("the node's files decide what nvidia-smi says", "[sandbox][tool][process]") {
  Bench bench;
  ToolNode node(bench.loop, bench.time);
  const std::vector<std::string> query = {"--query-gpu=driver_version,fabric.state,fabric.cliqueId",
                                          "--format=csv,noheader"};
  const auto out = [&] { return node.run_tool("nvidia-smi", query).out; };
  node.facts(R"({"driverVersion": "570.158.01", "gpus": 1, "fabric": {"cliqueId": 7}})");
  CHECK(out() == "570.158.01, Completed, 7\n");
  node.faults(R"({"fabric": "none"})");
  CHECK(out() == "570.158.01, N/A, N/A\n");
  node.faults(R"({"fabric": "inProgress"})");
  CHECK(out() == "570.158.01, In Progress, N/A\n");
  node.faults(R"({"nvidia-smi": {"stdout": "oops", "exit": 3}})");
  CHECK(out() == "oops");
  CHECK(node.run_tool("nvidia-smi", {"-L"}).exit.code == 3);
  node.faults(R"({"driver": false})");
  CHECK(node.run_tool("nvidia-smi", {}).exit.code == 9);
  node.faults(R"({"nvidia-smi": {"hang": true}})");
  CHECK_THROWS(node.run_tool("nvidia-smi", {}, 300ms));
  node.faults(R"({"nvidia-smi": {"hangs": true}})");
  const Output typo = node.run_tool("nvidia-smi", {});
  CHECK(typo.exit.code == 125);
  CHECK(typo.err.find("unknown key \"hangs\"") != std::string::npos);
}

TEST_CASE("without node files the version is that of the root's library",
          "[sandbox][tool][process]") {
  Bench bench;
  ToolNode node(bench.loop, bench.time);
  node.root.write("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.575.57.08", "");
  CHECK(node.run_tool("nvidia-imex", {"--version"}).out == "IMEX version is: 575.57.08\n");
  CHECK(node.run_tool("nvidia-smi", {"--version"}).out.find("DRIVER version      : 575.57.08\n") !=
        std::string::npos);
}

}  // namespace
}  // namespace nvdra::sandbox
