// The whole member with real processes and files, a scripted nvidia-imex, and an API server that is
// a table.
#include "base/files.hpp"
#include "catch.hpp"
#include "fake/temp_dir.hpp"
#include "imex/imex_config.hpp"
#include "roles/daemon/api.hpp"
#include "roles/daemon/check.hpp"
#include "roles/daemon/daemon.hpp"
#include "roles/daemon/files.hpp"
#include "roles/daemon/people.hpp"
#include "roles/daemon/status_socket.hpp"
#include "roles/daemon/tools.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

using namespace nvdra;
using namespace nvdra::roles;
using namespace nvdra::roles::daemon;
using namespace nvdra::roles::daemon::test;

namespace {

// Tells its starts and signals in files; what it does besides is in `behaviour`.
constexpr const char* imex_script = R"sh(#!/bin/sh
here=$(dirname "$0")
echo $$ >> "$here/starts"
echo "$LD_LIBRARY_PATH" > "$here/library_path"
trap 'echo refresh >> "$here/signals"' USR1
trap 'echo bye >> "$here/signals"; exit 0' TERM
. "$here/behaviour"
echo $$ > "$here/up"
while :; do sleep 0.02; done
)sh";

// The answer of a process that runs, and has come to its end of starting.
constexpr const char* ctl_script = R"sh(#!/bin/sh
here=$(dirname "$0")
if kill -0 "$(cat "$here/up")"; then . "$here/answer"; else echo STARTING; fi 2> /dev/null
)sh";

struct Node {
  explicit Node(const std::string& name = "a", const std::string& address = "10.0.0.1") {
    config.domain = DomainUid(domain_uid);
    config.domain_name = "d";
    config.domain_space = "default";
    config.clique = CliqueId(clique_id);
    config.node = NodeName(name);
    config.pod_ip = address;
    config.pod_uid = "uid-" + name;
    config.pod_name = "pod-" + name;
    config.pod_space = "nvdra";
    config.imexd = files.path("imexd");
    config.hosts_file = files.path("hosts");
    config.path = files.path("bin");
    config.library_path = "/opt/driver/lib";
    config.status_socket = fmt::format("nvdra-test/{}/{}", ::getpid(), files.path());
    files.write("imexd/imexd.cfg.tmpl",
                "IMEX_NODE_CONFIG_FILE={{ .IMEXDaemonNodesConfigPath }}\n"
                "IMEX_CMD_BIND_INTERFACE_IP={{ .IMEXCmdBindInterfaceIP }}\n");
    files.write("hosts", "127.0.0.1\tlocalhost\n");
    program("nvidia-imex", imex_script);
    program("nvidia-imex-ctl", ctl_script);
    answers("echo READY");
    behaves(":");
    api.put(pod_path(), {{"metadata", {{"name", config.pod_name}, {"namespace", "nvdra"}}}});
  }
  ~Node() { stop(); }

  void program(const std::string& name, const std::string& text) const {
    files.write("bin/" + name, text);
    ::chmod(files.path("bin/" + name).c_str(), 0755);
  }
  void answers(const std::string& line) const { replace("bin/answer", line); }
  void behaves(const std::string& line) const { replace("bin/behaviour", line); }
  void replace(const std::string& name, const std::string& line) const {
    REQUIRE(replace_file(files.fd(), name, line + "\n", 0644));
  }
  std::string pod_path() const { return "/api/v1/namespaces/nvdra/pods/" + config.pod_name; }

  void start() {
    const Result<void> written = write_imex_files(config);
    REQUIRE(written);
    Result<Command> imex = imex_command(config);
    Result<Command> question = question_command(config);
    Result<Command> domain = domain_command(config);
    REQUIRE(imex);
    REQUIRE(question);
    CHECK(domain->arguments == std::vector<std::string>{"-c", config.config_file(), "-N", "-j"});
    daemon = std::make_unique<Daemon>(World{loop, time}, config, client,
                                      Tools{*imex, *question, *domain}, real_random());
    running = true;
    asio::co_spawn(loop, daemon->run(),
                   asio::bind_cancellation_slot(
                       cancel.slot(), [this](std::exception_ptr thrown, Result<void> result) {
                         running = false;
                         ended_well = !thrown && result;
                       }));
  }
  void stop() {
    if (!running) return;
    cancel.emit(asio::cancellation_type::terminal);
    until([&] { return !running; });
  }
  template <class Condition>
  void until(Condition condition) {
    const Instant limit = Clock::now() + 20s;
    while (!condition() && Clock::now() < limit) {
      loop.restart();
      loop.run_one_for(5ms);
    }
    INFO(daemon->verdict().state << ": " << daemon->verdict().reason);
    REQUIRE(condition());
  }
  std::size_t count(const std::string& file, const std::string& word = {}) const {
    std::istringstream text(files.read("bin/" + file));
    std::size_t found = 0;
    for (std::string line; std::getline(text, line);) found += word.empty() || line == word;
    return found;
  }
  void until_ready() {
    until([&] { return own().ready && daemon->verdict().ready; });
  }
  Members members() const {
    const auto clique = api.objects.find(clique_path);
    return clique == api.objects.end() ? Members{}
                                       : read_members(clique->second, MemberList::clique_daemons);
  }
  roles::Member own() const {
    const Members all = members();
    const roles::Member* mine = all.of(config.node);
    return mine ? *mine : roles::Member{};
  }
  // As another daemon, the controller or a person would.
  void edit(const std::vector<Json>& entries) {
    Json clique = api.objects.at(clique_path);
    clique.get_object()["daemons"] = JsonArray(entries.begin(), entries.end());
    api.put(clique_path, clique);
  }
  k8s::HttpReply page(const std::string& path) {
    std::optional<Result<k8s::HttpReply>> reply;
    asio::co_spawn(
        loop,
        [](Node* node, std::string wanted,
           std::optional<Result<k8s::HttpReply>>* into) -> Async<void> {
          into->emplace(co_await ask_status(node->time, node->config.status_socket, wanted));
        }(this, path, &reply),
        [](std::exception_ptr) {});
    until([&] { return reply.has_value(); });
    REQUIRE(*reply);
    return **reply;
  }

  const std::string clique_path =
      "/apis/resource.nvidia.com/v1beta1/namespaces/nvdra/computedomaincliques/" +
      clique_place().key.name;
  fake::TempDir files;
  asio::io_context loop{1};
  RealTime time;
  Api api{loop.get_executor(), time};
  k8s::Client client{api, time};
  Config config;
  asio::cancellation_signal cancel;
  bool running = false;
  bool ended_well = false;
  std::unique_ptr<Daemon> daemon;
};

}  // namespace

TEST_CASE("a daemon joins, starts nvidia-imex, becomes Ready and leaves", "[daemon][process]") {
  Node node;
  node.start();
  node.until_ready();
  CHECK(node.files.read("imexd/imexd.cfg") ==
        "IMEX_NODE_CONFIG_FILE=" + node.config.nodes_file() +
            "\nIMEX_CMD_BIND_INTERFACE_IP=10.0.0.1\nDAEMONIZE=0\nIMEX_CMD_ENABLED=1\n");
  CHECK(node.files.read("imexd/nodes.cfg") == imex::render_slot_names(domain_uid, 18));
  CHECK_THAT(node.files.read("hosts"),
             Catch::StartsWith("127.0.0.1\tlocalhost\n10.0.0.1\tcompute-domain-daemon-"));
  CHECK(node.files.read("bin/library_path") == "/opt/driver/lib\n");
  const Json& pod = node.api.objects.at(node.pod_path());
  CHECK(get(*find(pod, "metadata/labels"), clique_label)->get_string() == clique_id);
  CHECK(get(*find(pod, "metadata/annotations"), address_annotation)->get_string() == "10.0.0.1");
  CHECK(node.page("/check").status == 200);
  node.stop();
  CHECK(node.ended_well);
  CHECK(node.members().all.empty());
  CHECK(node.count("signals", "bye") == 1);
  // pod label, list, watch, create, Ready, leave
  CHECK(node.api.asked.size() == 6);
}

TEST_CASE("a crash makes the member NotReady until nvidia-imex is READY again",
          "[daemon][process]") {
  Node node;
  node.start();
  node.until_ready();
  node.answers("echo INIT_GPU");
  const pid_t first = node.daemon->supervisor().pid();
  REQUIRE(::kill(first, SIGKILL) == 0);
  node.until([&] { return !node.own().ready; });
  node.until([&] { return node.daemon->verdict().state == "INIT_GPU"; });
  CHECK(node.page("/check").status == 503);
  CHECK_THAT(node.page("/check").body, Catch::Contains("nvidia-imex says INIT_GPU"));
  node.answers("echo READY");
  node.until_ready();
  CHECK(node.count("starts") == 2);
  CHECK_THAT(node.page("/metrics").body, Catch::Contains("nvdra_imex_crashes_total 1"));
}

TEST_CASE("a new peer is a signal, not a restart", "[daemon][process]") {
  Node node;
  node.start();
  node.until_ready();
  node.edit({entry("a", "10.0.0.1", 0, true), entry("b", "10.0.0.2", 1)});
  node.until([&] { return node.count("signals", "refresh") == 1; });
  CHECK_THAT(node.files.read("hosts"), Catch::Contains("\n10.0.0.2\tcompute-domain-daemon-"));
  CHECK(node.count("starts") == 1);
  CHECK(node.own().ready);
}

TEST_CASE("another own index restarts nvidia-imex exactly once", "[daemon][process]") {
  Node node;
  node.start();
  node.until_ready();
  node.edit({entry("a", "10.0.0.1", 2, true)});
  node.until([&] { return node.count("starts") == 2; });
  node.until_ready();
  CHECK(node.own().index == 2);
  CHECK(node.count("starts") == 2);
  CHECK(node.count("signals", "bye") == 1);
}

TEST_CASE("a child that takes itself for another member is never Ready", "[daemon][process]") {
  Node node;
  node.behaves("echo '[INFO] Identified this node as ID 5, using bind address of x'");
  node.start();
  node.until([&] { return node.daemon->verdict().state == "WRONG_INDEX"; });
  CHECK_FALSE(node.own().ready);
}

TEST_CASE("connections are not asked for at a loopback address (report 95)", "[daemon][process]") {
  const auto loopback = GENERATE(true, false);
  const std::string address = loopback ? "127.0.0.9" : "10.0.0.1";
  Node node("a", address);
  node.start();
  node.until_ready();
  CHECK_FALSE(node.daemon->id_with_peers());  // nobody else is there
  node.edit({entry("a", address, 0, true), entry("b", "10.0.0.2", 1)});
  node.until([&] { return node.count("signals", "refresh") == 1; });
  CHECK(node.daemon->id_with_peers() == (loopback ? std::nullopt : std::optional<std::int64_t>(0)));
}

TEST_CASE("a crash loop is slow, told, and never Ready", "[daemon][process]") {
  Node node;
  node.behaves(
      "echo '[ERROR] No matching network interface found for any IP addresses in the node "
      "configuration file'; exit 1");
  node.start();
  node.until(
      [&] { return node.daemon->verdict().state == "CRASHING" && node.count("starts") == 2; });
  CHECK_FALSE(node.own().ready);
  CHECK_THAT(node.page("/check").body,
             Catch::Contains("exit status 1") && Catch::Contains("no address of this pod"));
}

TEST_CASE("a child that ignores TERM does not keep the daemon from leaving", "[daemon][process]") {
  Node node;
  node.behaves("trap '' TERM; touch " + node.files.path("deaf"));
  node.start();
  node.until_ready();
  node.until([&] { return node.files.exists("deaf"); });
  node.cancel.emit(asio::cancellation_type::terminal);
  node.until([&] { return node.members().all.empty(); });
  CHECK(node.running);  // the grace period has not passed
  node.until([&] { return !node.running; });
}

TEST_CASE("a tool that is missing is one sentence with the node", "[daemon][process]") {
  Node node;
  ::unlink(node.files.path("bin/nvidia-imex-ctl").c_str());
  const Result<Command> question = question_command(node.config);
  REQUIRE_FALSE(question);
  CHECK_THAT(question.error().text(),
             Catch::StartsWith("nvidia-imex-ctl is not in this container") &&
                 Catch::Contains("on node a"));
}

TEST_CASE("a template of another release, and none, are one sentence each", "[daemon][files]") {
  Node node;
  node.files.write("imexd/imexd.cfg.tmpl", "A={{ .Future }}\n");
  const Result<void> other = write_imex_files(node.config);
  REQUIRE_FALSE(other);
  CHECK_THAT(other.error().text(), Catch::Contains("imexd.cfg.tmpl is not of this release") &&
                                       Catch::Contains("{{ .Future }}"));
  ::unlink(node.config.template_file().c_str());
  const Result<void> none = write_imex_files(node.config);
  REQUIRE_FALSE(none);
  CHECK_THAT(none.error().text(), Catch::Contains("CDI edits"));
}

TEST_CASE("a hosts file that cannot be written keeps the member NotReady and says so",
          "[daemon][process]") {
  Node node;
  node.config.hosts_file = node.files.path("imexd");  // a directory
  node.start();
  node.until([&] { return node.daemon->verdict().state == "FILES"; });
  CHECK_THAT(node.daemon->verdict().reason, Catch::Contains("cannot be"));
  CHECK(node.count("starts") == 0);
}

TEST_CASE("with addresses nvidia-imex starts when all are there, and again with each change",
          "[daemon][process]") {
  Node node;
  REQUIRE(node.config.gates.set("ComputeDomainCliques=false,IMEXDaemonsWithDNSNames=false"));
  const std::string path = "/apis/resource.nvidia.com/v1beta1/namespaces/default/computedomains/d";
  node.api.put(path, domain_with({node_entry("b", "10.0.0.2", 0)}, 2).json());
  node.start();
  node.until([&] { return node.daemon->verdict().ready; });
  CHECK(node.files.read("imexd/nodes.cfg") == "10.0.0.2\n10.0.0.1\n");
  CHECK(node.files.read("hosts") == "127.0.0.1\tlocalhost\n");
  node.until([&] {
    const Members all = read_members(node.api.objects.at(path), MemberList::domain_nodes);
    return all.of(node.config.node) && all.of(node.config.node)->ready;
  });
  node.api.put(
      path, domain_with({node_entry("c", "10.0.0.3", 0), node_entry("a", "10.0.0.1", 1, true)}, 2)
                .json());
  node.until([&] { return node.count("starts") == 2; });
  CHECK(node.files.read("imexd/nodes.cfg") == "10.0.0.3\n10.0.0.1\n");
}

TEST_CASE("the probe of a node without fabric succeeds at once", "[daemon][check]") {
  Config config;
  CHECK(check(config) == 0);
}

TEST_CASE("without a running daemon the probe asks nvidia-imex-ctl", "[daemon][check]") {
  Node node;
  node.files.write("bin/up", std::to_string(::getpid()));
  CHECK(check(node.config) == 0);
  node.answers("echo NOT_READY");
  CHECK(check(node.config) == 1);
}
