#include "imex/imex_config.hpp"

#include "catch.hpp"

#include <vector>

using namespace nvdra;
using namespace nvdra::imex;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

const TemplateFields fields{"10.0.0.1", "/imexd/nodes.cfg"};

// The settings of node-side.md 12 that matter here, with a comment that mentions one.
const std::string shipped =
    "# IMEX_CMD_ENABLED=0 switches the command service off\n"
    "LOG_LEVEL=4\n"
    "DAEMONIZE=0\n"
    "IMEX_NODE_CONFIG_FILE={{ .IMEXDaemonNodesConfigPath }}\n"
    "IMEX_CMD_ENABLED=1\n"
    "IMEX_CMD_BIND_INTERFACE_IP={{ .IMEXCmdBindInterfaceIP }}\n"
    "IMEX_NODE_DISCONNECTED_GRACE_TIME=-1\n";

const std::string golden =
    "# IMEX_CMD_ENABLED=0 switches the command service off\n"
    "LOG_LEVEL=4\n"
    "DAEMONIZE=0\n"
    "IMEX_NODE_CONFIG_FILE=/imexd/nodes.cfg\n"
    "IMEX_CMD_ENABLED=1\n"
    "IMEX_CMD_BIND_INTERFACE_IP=10.0.0.1\n"
    "IMEX_NODE_DISCONNECTED_GRACE_TIME=-1\n";

std::string rendered(const std::string& text, const Settings& overrides = {}) {
  const Result<std::string> plain = render_template(text, fields);
  REQUIRE(plain);
  return render_config(*plain, fields, overrides);
}

}  // namespace

TEST_CASE("the shipped template becomes the configuration with two values filled in",
          "[imex][config]") {
  CHECK(rendered(shipped) == golden);
}

TEST_CASE("a template's actions may be written tightly and may eat blanks", "[imex][config]") {
  const Result<std::string> text = render_template(
      "A={{.IMEXCmdBindInterfaceIP}}\nB=x  {{- .IMEXDaemonNodesConfigPath -}}  \ny", fields);
  REQUIRE(text);
  CHECK(*text == "A=10.0.0.1\nB=x/imexd/nodes.cfgy");
}

TEST_CASE("an action that this release does not know is named with its line", "[imex][config]") {
  const Result<std::string> unknown = render_template("A=1\nB={{ .PeerPort }}\n", fields);
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().text() == "line 2 has {{ .PeerPort }}, which this release does not know");
  const Result<std::string> open = render_template("A={{ .IMEX", fields);
  REQUIRE_FALSE(open);
  CHECK_THAT(open.error().text(), Catch::Contains("line 1 opens {{"));
}

TEST_CASE("an override replaces the line of its key, and an unknown key is appended",
          "[imex][config]") {
  const std::string text = rendered(shipped, {{"IMEX_NODE_DISCONNECTED_GRACE_TIME", "60"},
                                              {"IMEX_CONN_WAIT_TIMEOUT", "70"},
                                              {"LOG_LEVEL", ""}});
  CHECK_THAT(text, Catch::Contains("\nLOG_LEVEL=\nDAEMONIZE=0\n"));
  CHECK_THAT(
      text, Catch::EndsWith("\nIMEX_NODE_DISCONNECTED_GRACE_TIME=60\nIMEX_CONN_WAIT_TIMEOUT=70\n"));
}

TEST_CASE("exactly one line of a key is left, and comments are not settings", "[imex][config]") {
  CHECK(apply_settings("#A=0\nA=1\nB=2\n A = 3\n", Settings{{"A", "x=y"}}) == "#A=0\nA=x=y\nB=2\n");
}

TEST_CASE("what the daemon relies on holds for any template", "[imex][config]") {
  const std::string text = rendered("DAEMONIZE=1\nIMEX_CMD_BIND_INTERFACE_IP=127.0.0.1\n");
  CHECK(text ==
        "DAEMONIZE=0\nIMEX_CMD_BIND_INTERFACE_IP=10.0.0.1\nIMEX_NODE_CONFIG_FILE=/imexd/nodes.cfg\n"
        "IMEX_CMD_ENABLED=1\n");
}

TEST_CASE("the command service is bound to the pod's address of either family", "[imex][config]") {
  for (const char* address : {"192.0.2.7", "2001:db8::7"}) {
    const Result<std::string> text =
        render_template("IMEX_CMD_BIND_INTERFACE_IP={{ .IMEXCmdBindInterfaceIP }}", {address, "n"});
    REQUIRE(text);
    CHECK(*text == std::string("IMEX_CMD_BIND_INTERFACE_IP=") + address);
  }
}
