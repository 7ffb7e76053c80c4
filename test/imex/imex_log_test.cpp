#include "imex/imex_log.hpp"

#include "catch.hpp"

using namespace nvdra;
using namespace nvdra::imex;

TEST_CASE("the log tells which member nvidia-imex takes itself for", "[imex][log]") {
  struct Row {
    const char* line;
    std::optional<std::int64_t> id;
  };
  const Row row = GENERATE(values<Row>({
      {"[Mar 25 2025 10:41:54] [INFO] [tid 38] Identified this node as ID 1, using bind IP of "
       "'192.0.2.48', and network interface of eth0",
       1},
      {"[INFO] Identified this node as ID 17, using bind address of 'a'", 17},
      {"[INFO] Identified this node as ID , using", std::nullopt},
      {"[INFO] Creating gRPC channels to all peers (nPeers = 2).", std::nullopt},
  }));
  INFO(row.line);
  CHECK(read_log_line(row.line).identified == row.id);
}

TEST_CASE("known failures are told with what to do about them", "[imex][log]") {
  struct Row {
    const char* line;
    const char* says;
  };
  const Row row = GENERATE(values<Row>({
      {"[ERROR] Failed to allocate Imex session: NV_ERR_IN_USE", "mask nvidia-imex.service"},
      {"[ERROR] NvGpu Library version 580.1 is not matching with current GPU driver version 570.2",
       "different versions"},
      {"[ERROR] No matching network interface found for any IP addresses in the node "
       "configuration file",
       "no address of this pod"},
      {"[ERROR] listen on 10.0.0.1:50000: bind: Address already in use", "on port 50000"},
      {"[ERROR] listen for commands on 10.0.0.1:50005: bind: Address already in use",
       "on port 50005"},
      {"errno = Address already in use", "cannot listen:"},
  }));
  INFO(row.line);
  CHECK_THAT(read_log_line(row.line).trouble, Catch::Contains(row.says));
}

TEST_CASE("a peer with another nodes file is worth a notice, not a failure", "[imex][log]") {
  const LineMeaning meaning =
      read_log_line("[WARNING] Node configuration mapping mismatch with node 3");
  CHECK(meaning.trouble.empty());
  CHECK_THAT(meaning.notice, Catch::Contains("another domain"));
}
