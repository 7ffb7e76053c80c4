#include "imex/driver_root.hpp"

#include "catch.hpp"
#include "fake/driver_root.hpp"
#include "imex/nvlink.hpp"

namespace nvdra::imex {
namespace {

using fake::TempRoot;

DriverRoot seen_at(const TempRoot& root, std::string host = "/") {
  return {.here = root.path(), .host = std::move(host)};
}

}  // namespace

TEST_CASE("a tool is found in every searched directory, first match first", "[imex][driver_root]") {
  const TempRoot root;
  std::string expected;
  for (const char* directory : {"/sbin", "/bin", "/usr/sbin", "/usr/bin", "/opt/bin", ""}) {
    root.file(directory + std::string("/nvidia-smi"));
    const auto found = find_binary(seen_at(root), "nvidia-smi");
    REQUIRE(found);
    CHECK(found->inside == directory + std::string("/nvidia-smi"));
    CHECK(found->real == root.path(found->inside));
  }
}

TEST_CASE("the driver library is found in every searched directory", "[imex][driver_root]") {
  for (const std::string_view directory : library_directories()) {
    const TempRoot root;
    const std::string inside =
        (directory == "/" ? "" : std::string(directory)) + "/libnvidia-ml.so.1";
    root.file(inside);
    const auto found = find_library(seen_at(root), "libnvidia-ml.so.1");
    REQUIRE(found);
    CHECK(found->real == root.path(inside));
  }
}

TEST_CASE("a directory of the same name does not shadow a file in a later path",
          "[imex][driver_root]") {
  const TempRoot root;
  root.directory("/opt/bin/nvidia-smi");
  root.file("/usr/bin/nvidia-smi");
  const auto found = find_binary(seen_at(root), "nvidia-smi");
  REQUIRE(found);
  CHECK(found->inside == "/usr/bin/nvidia-smi");
}

TEST_CASE("links are resolved inside the root and never lead out of it", "[imex][driver_root]") {
  const TempRoot root;
  root.file("/usr/lib64/libnvidia-ml.so.570.1");
  root.link("/usr/lib64/libnvidia-ml.so.1", "libnvidia-ml.so.570.1");
  root.link("/lib", "/usr/lib");
  root.file("/usr/lib/x86_64-linux-gnu/real");
  root.link("/escape", "../../../../../../etc/passwd");
  root.link("/absolute", "/etc/passwd");
  root.file("/etc/passwd", "ours");
  root.link("/loop", "/loop");

  const auto library = find_library(seen_at(root), "libnvidia-ml.so.1");
  REQUIRE(library);
  CHECK(library->real == root.path("/usr/lib64/libnvidia-ml.so.570.1"));
  CHECK(library->inside == "/usr/lib64/libnvidia-ml.so.1");

  for (const char* path : {"/escape", "/absolute", "/../../etc/passwd", "etc//./passwd"}) {
    INFO(path);
    const auto real = resolve_in_root(root.path(), path);
    REQUIRE(real);
    CHECK(*real == root.path("/etc/passwd"));
  }
  const auto through = resolve_in_root(root.path() + "/", "/lib/x86_64-linux-gnu/real");
  REQUIRE(through);
  CHECK(*through == root.path("/usr/lib/x86_64-linux-gnu/real"));

  const auto loop = resolve_in_root(root.path(), "/loop");
  REQUIRE_FALSE(loop);
  CHECK(loop.error().code == boost::system::errc::too_many_symbolic_link_levels);
  const auto missing = resolve_in_root(root.path(), "/nowhere/x");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == boost::system::errc::no_such_file_or_directory);
  const auto below_file = resolve_in_root(root.path(), "/etc/passwd/x");
  REQUIRE_FALSE(below_file);
  CHECK(below_file.error().code == boost::system::errc::not_a_directory);
}

TEST_CASE("the root directory itself resolves to itself", "[imex][driver_root]") {
  const auto top = resolve_in_root("/", "/");
  REQUIRE(top);
  CHECK(*top == "/");
  const auto file = resolve_in_root("/", "proc/self/../devices");
  REQUIRE(file);
  CHECK_THAT(*file, Catch::StartsWith("/proc/"));
}

TEST_CASE("a tool that is nowhere is named with the searched directories and the host's root",
          "[imex][driver_root]") {
  const TempRoot root;
  root.link("/usr/bin/nvidia-imex-ctl", "/gone");
  const auto found = find_binary(seen_at(root, "/run/nvidia/driver"), "nvidia-imex-ctl");
  REQUIRE_FALSE(found);
  const std::string text = found.error().text();
  CHECK_THAT(text, Catch::StartsWith("nvidia-imex-ctl not found in the driver root "
                                     "/run/nvidia/driver (searched /, /opt/bin, /usr/bin, "
                                     "/usr/sbin, /bin, /sbin)"));
  CHECK_THAT(text, !Catch::Contains(root.path()));
}

TEST_CASE("a root without dev directory borrows the process's own root", "[imex][driver_root]") {
  const TempRoot root;
  CHECK(dev_root(seen_at(root)).here == "/");
  root.directory("/dev");
  CHECK(dev_root(seen_at(root)).here == root.path());
}

TEST_CASE("paths are told as the administrator knows them", "[imex][driver_root]") {
  CHECK(DriverRoot{.here = "/driver-root", .host = "/"}.host_path("/etc/x") == "/etc/x");
  CHECK(DriverRoot{.here = "/driver-root", .host = "/run/nvidia/driver"}.host_path("/etc/x") ==
        "/run/nvidia/driver/etc/x");
}

TEST_CASE("NVSwitch devices or a switch's management port make a single-node NVLink system",
          "[imex][nvlink]") {
  const TempRoot root;
  const auto is_one = [&] {
    const auto answer = single_node_nvlink(seen_at(root));
    REQUIRE(answer);
    return *answer;
  };
  CHECK_FALSE(is_one());
  root.directory("/proc/driver/nvidia-nvswitch/devices");
  CHECK_FALSE(is_one());
  root.file("/sys/devices/pci0/infiniband/mlx5_0/x");
  root.link("/sys/devices/pci0/infiniband/mlx5_0/device", "../..");
  root.link("/sys/class/infiniband/mlx5_0", "../../devices/pci0/infiniband/mlx5_0");
  CHECK_FALSE(is_one());
  root.file("/sys/devices/pci0/vpd", std::string("\x82\0\xff", 3) + "plain");
  CHECK_FALSE(is_one());
  root.file("/sys/devices/pci0/vpd", std::string("\x82\0\xff", 3) + "SW_MNGx");
  CHECK(is_one());

  const TempRoot other;
  other.file("/proc/driver/nvidia-nvswitch/devices/0000:85:00.0");
  const auto answer = single_node_nvlink(seen_at(other));
  REQUIRE(answer);
  CHECK(*answer);
}

}  // namespace nvdra::imex
