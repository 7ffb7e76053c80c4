#include "sandbox/tool_domain.hpp"

#include "catch.hpp"

namespace nvdra::sandbox {
namespace {

DomainView two(std::string first, std::string second) {
  return {.members = {{"192.0.2.47", "gpu-1", first, first == "READY" ? "570.00" : "", "CC"},
                      {"192.0.2.48", "", second, second == "READY" ? "570.00" : "",
                       second == "READY" ? "CC" : "II"}}};
}

TEST_CASE("a domain is UP when all members are ready and connected, DEGRADED when some are",
          "[sandbox][tool]") {
  CHECK(domain_state(two("READY", "READY")) == "UP");
  CHECK(domain_state(two("READY", "UNAVAILABLE")) == "DEGRADED");
  CHECK(domain_state(two("INITIALIZING", "UNAVAILABLE")) == "DOWN");
  DomainView torn = two("READY", "READY");
  torn.members[0].row = "CR";
  CHECK(domain_state(torn) == "DEGRADED");
  CHECK(domain_state(absent_domain({"a", "b"})) == "DOWN");
}

TEST_CASE("the table of driver 570.00 looks as it was seen", "[sandbox][tool]") {
  CHECK(domain_table(two("READY", "READY"), "570.00", "3/25/2025 10:42:08.082") ==
        "Connectivity Table Legend:\n"
        "I - Invalid - Node wasn't reachable, no connection status available\n"
        "N - Never Connected\n"
        "R - Recovering - Connection was lost, but clean up has not yet been triggered.\n"
        "D - Disconnected - Connection was lost, and clean up has been triggreed.\n"
        "A - Authenticating - If GSSAPI enabled, client has initiated mutual authentication.\n"
        "C - Connected - Ready for operation\n"
        "\n"
        "3/25/2025 10:42:08.082\n"
        "Nodes:\n"
        "Node #0   - 192.0.2.47      - READY\n"
        "Node #1   - 192.0.2.48      - READY\n"
        "\n"
        " Nodes From\\To  0  1\n"
        "       0        C  C\n"
        "       1        C  C\n"
        "Domain State: UP\n");
}

TEST_CASE("newer drivers show versions, mismatches and, from 590 on, who was asked",
          "[sandbox][tool]") {
  DomainView view = two("READY", "READY");
  view.members[0].row = "CM";
  view.asked = 0;
  const std::string middle = domain_table(view, "570.172", "now");
  CHECK(middle.find("Node #0   - 192.0.2.47      - READY                - Version: 570.00\n") !=
        std::string::npos);
  CHECK(middle.find(" Nodes From\\To  0   1\n       0        C   !M!\n") != std::string::npos);
  CHECK(middle.find("!M! - Node map mismatch") != std::string::npos);
  const std::string newest = domain_table(view, "595.91.07", "now");
  CHECK(newest.find("Node #0   * 192.0.2.47 *  - READY             - Version: 570.00\n") !=
        std::string::npos);
}

TEST_CASE("the JSON has an entry for each member and host names only when asked for",
          "[sandbox][tool]") {
  const auto parse = [](const std::string& text) { return Json(boost::json::parse(text)); };
  const Json with = parse(domain_json(two("READY", "UNAVAILABLE"), true, "9/4/2026 00:37:39.905"));
  CHECK(text_or_empty(with, "status") == "DEGRADED");
  CHECK(text_or_empty(with, "timestamp") == "9/4/2026 00:37:39.905");
  CHECK(text_or_empty(with, "nodes/0/hostName") == "gpu-1");
  CHECK(text_or_empty(with, "nodes/0/connections/1/status") == "CONNECTED");
  CHECK(text_or_empty(with, "nodes/1/status") == "UNAVAILABLE");
  CHECK(text_or_empty(with, "nodes/1/connections/0/status") == "INVALID");
  CHECK(find(with, "nodes/1/version") != nullptr);
  const Json without = parse(domain_json(two("READY", "READY"), false, "now"));
  CHECK(find(without, "nodes/0/hostName") == nullptr);
}

TEST_CASE("a domain survives the way between daemon and tool", "[sandbox][tool]") {
  const auto back = domain_from(to_json(two("READY", "UNAVAILABLE")));
  REQUIRE(back);
  CHECK(domain_table(*back, "570.172", "now") ==
        domain_table(two("READY", "UNAVAILABLE"), "570.172", "now"));
  DomainView torn = two("READY", "READY");
  torn.members[1].row = "C";
  CHECK_FALSE(domain_from(to_json(torn)));
}

}  // namespace
}  // namespace nvdra::sandbox
