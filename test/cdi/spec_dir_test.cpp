#include "cdi/spec_dir.hpp"

#include "catch.hpp"
#include "cdi/data.hpp"
#include "cdi/render.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

namespace nvdra::cdi {
namespace {

namespace fs = std::filesystem;

struct TempDir {
  TempDir() {
    std::string pattern = (fs::temp_directory_path() / "nvdra-cdi-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw std::runtime_error("mkdtemp");
    path = pattern;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() { fs::remove_all(path); }
  fs::path path;
};

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

mode_t mode(const fs::path& path) {
  struct stat status{};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

}  // namespace

TEST_CASE("a directory that was removed or replaced meanwhile is used all the same",
          "[cdi][spec_dir]") {
  const TempDir temp;
  const fs::path root = temp.path / "cdi";
  auto dir = SpecDir::open(root);
  REQUIRE(dir);
  const std::string name = claim_file(claim_with_digit);
  REQUIRE(dir->put(name, channel_spec(claim_with_digit)));

  SECTION("removed") {
    fs::remove_all(root);
  }
  SECTION("replaced") {
    fs::rename(root, temp.path / "old");
    fs::create_directory(root);
  }
  CHECK_FALSE(dir->holds(name, channel_spec(claim_with_digit)));
  CHECK(dir->claims()->empty());
  CHECK(dir->remove(name));
  REQUIRE(dir->put(name, channel_spec(claim_with_digit)));
  CHECK(fs::exists(root / name));
  CHECK(dir->claims()->size() == 1);
}

TEST_CASE("a claim's file appears whole, private, and can be replaced and removed",
          "[cdi][spec_dir]") {
  const TempDir temp;
  const fs::path root = temp.path / "var" / "cdi";
  auto dir = SpecDir::open(root);
  REQUIRE(dir);
  CHECK(mode(root) == 0750);

  const std::string name = claim_file(claim_with_digit);
  REQUIRE(dir->put(name, channel_spec(claim_with_digit, 7)));
  REQUIRE(dir->put(name, channel_spec(claim_with_digit)));
  CHECK(content(root / name) == golden("channel-roots-equal.yaml"));
  CHECK(mode(root / name) == 0600);
  CHECK(std::distance(fs::directory_iterator(root), {}) == 1);
  const auto back = dir->get(name);
  REQUIRE(back);
  CHECK(*back == channel_spec(claim_with_digit));

  CHECK(dir->holds(name, channel_spec(claim_with_digit)));
  CHECK_FALSE(dir->holds(name, channel_spec(claim_with_digit, 7)));
  CHECK_FALSE(dir->holds("absent.yaml", channel_spec(claim_with_digit)));

  CHECK(dir->remove(name));
  CHECK_FALSE(fs::exists(root / name));
  CHECK(dir->remove(name));
  const auto gone = dir->get(name);
  REQUIRE_FALSE(gone);
  CHECK(gone.error().code == boost::system::errc::no_such_file_or_directory);
}

TEST_CASE("the claims of a directory are found among other files", "[cdi][spec_dir]") {
  const TempDir temp;
  auto dir = SpecDir::open(temp.path);
  REQUIRE(dir);
  for (const ClaimUid& claim : {claim_with_letter, claim_with_digit})
    REQUIRE(dir->put(claim_file(claim), channel_spec(claim)));
  REQUIRE(dir->put(base_file(), base_spec()));
  for (const char* other : {"nvidia.yaml", "spec.123.tmp", "k8s.gpu.nvidia.com-claim_x.yaml",
                            "k8s.compute-domain.nvidia.com-claim_.yaml"})
    std::ofstream(temp.path / other) << "x";

  const auto claims = dir->claims();
  REQUIRE(claims);
  CHECK(*claims == std::vector<ClaimUid>{claim_with_digit, claim_with_letter});
}

TEST_CASE("a CDI root that is a file, and a file that cannot be written, are named",
          "[cdi][spec_dir]") {
  const TempDir temp;
  std::ofstream(temp.path / "file") << "x";
  const auto dir = SpecDir::open(temp.path / "file");
  REQUIRE_FALSE(dir);
  CHECK_THAT(dir.error().text(), Catch::Contains((temp.path / "file").string()));

  auto good = SpecDir::open(temp.path / "gone");
  REQUIRE(good);
  fs::remove(temp.path / "gone");
  std::ofstream(temp.path / "gone") << "x";
  const auto written = good->put("x.yaml", base_spec());
  REQUIRE_FALSE(written);
  CHECK_THAT(written.error().text(), Catch::Contains((temp.path / "gone" / "x.yaml").string()));
}

TEST_CASE("names of files and devices are those of the original", "[cdi][names]") {
  CHECK(claim_file(claim_with_digit) ==
        "k8s.compute-domain.nvidia.com-claim_1b4e28ba-2fa1-11d2-883f-0016d3cca427.yaml");
  CHECK(base_file() == "k8s.compute-domain.nvidia.com-device_base.yaml");
  CHECK(claim_device_id(claim_with_digit, "channel-0") ==
        "k8s.compute-domain.nvidia.com/claim=1b4e28ba-2fa1-11d2-883f-0016d3cca427-channel-0");
  CHECK(base_device_id() == "k8s.compute-domain.nvidia.com/device=all");
  CHECK(claim_of_file(claim_file(claim_with_letter)) == claim_with_letter);
}

}  // namespace nvdra::cdi
