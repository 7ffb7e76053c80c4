#include "roles/wait_for_driver/look.hpp"

#include "catch.hpp"
#include "fake/driver_root.hpp"
#include "roles/wait_for_driver/link.hpp"

#include <algorithm>

namespace nvdra::roles::wait_for_driver {
namespace {

bool hinted(const Look& look, const std::string& fragment) {
  return std::ranges::any_of(hints(look), [&](const std::string& hint) {
    return hint.find(fragment) != std::string::npos;
  });
}

imex::DriverRoot seen_at(const fake::TempRoot& root, std::string host = "/") {
  return {.here = root.path(), .host = std::move(host)};
}

}  // namespace

TEST_CASE("a look finds tool and library and lists the root", "[wait_for_driver]") {
  const fake::TempRoot root;
  root.file("/usr/bin/nvidia-smi");
  root.file("/usr/lib64/libnvidia-ml.so.570.1");
  root.link("/usr/lib64/libnvidia-ml.so.1", "libnvidia-ml.so.570.1");
  root.directory("/etc");
  const Look found = look(seen_at(root));
  CHECK(found.complete());
  CHECK(describe(found) == root.path() + " (/ on the host): nvidia-smi: '" +
                               root.path("/usr/bin/nvidia-smi") + "', libnvidia-ml.so.1: '" +
                               root.path("/usr/lib64/libnvidia-ml.so.570.1") +
                               "', current contents: [etc, usr]");
}

TEST_CASE("each way of being incomplete has its hint", "[wait_for_driver]") {
  const fake::TempRoot root;
  imex::DriverRoot missing = seen_at(root, "/opt/driver");
  missing.here += "/gone";
  CHECK(hinted(look(missing), "/opt/driver does not exist"));
  CHECK(hinted(look(seen_at(root, "/opt/driver")), "/opt/driver is an empty directory"));

  root.directory("/usr/bin");
  CHECK(hinted(look(seen_at(root)), "nvidia-smi and libnvidia-ml.so.1 were not found"));
  root.file("/usr/bin/nvidia-smi");
  CHECK(hinted(look(seen_at(root)), "libnvidia-ml.so.1 was not found"));
  CHECK_FALSE(hinted(look(seen_at(root)), "GPU Operator"));
}

TEST_CASE("a driver of the GPU Operator is recognised from the host's root", "[wait_for_driver]") {
  const fake::TempRoot root;
  root.file("/run/nvidia/driver/usr/bin/nvidia-smi");
  CHECK(hinted(look(seen_at(root)), "--set nvidiaDriverRoot=/run/nvidia/driver"));
  CHECK_FALSE(hinted(look(seen_at(root, "/opt/driver")), "--set nvidiaDriverRoot"));
  CHECK(hinted(look(seen_at(root, "/run/nvidia/driver")), "check that its driver pod runs"));
}

TEST_CASE("the link leads to the root's directory below its mounted parent", "[wait_for_driver]") {
  CHECK(link_target("/driver-root-parent", "/") == "/driver-root-parent");
  CHECK(link_target("/driver-root-parent", "/run/nvidia/driver") == "/driver-root-parent/driver");
  CHECK(link_target("/driver-root-parent", "/opt/nvidia/") == "/driver-root-parent/nvidia");
}

TEST_CASE("a link is replaced, and nothing else is", "[wait_for_driver]") {
  const fake::TempRoot root;
  REQUIRE(make_link(root.path("/link"), "/one"));
  REQUIRE(make_link(root.path("/link"), "/two"));
  CHECK(std::filesystem::read_symlink(root.path("/link")) == "/two");
  root.directory("/directory");
  const Result<void> refused = make_link(root.path("/directory"), "/two");
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().text(), Catch::StartsWith(root.path("/directory") + " exists"));
  CHECK_FALSE(make_link(root.path("/nowhere/link"), "/two"));
}

}  // namespace nvdra::roles::wait_for_driver
