#include "roles/kubelet_plugin/domain_directories.hpp"

#include "base/files.hpp"
#include "catch.hpp"
#include "fake/temp_dir.hpp"
#include "roles/kubelet_plugin/claims.hpp"
#include "roles/kubelet_plugin/imex_template.hpp"

#include <sys/stat.h>

using namespace nvdra;
using namespace nvdra::roles::kubelet_plugin;
using namespace nvdra::roles::kubelet_plugin::test;

namespace {

struct Place {
  fake::TempDir files;
  Fd directory = *open_directory(files.path());
  DomainDirectories directories{directory.get(), files.path()};
  DomainUid domain{domain_uid};
  std::string own = files.path() + "/domains/" + domain_uid;

  mode_t mode(const std::string& path) const {
    struct stat status{};
    REQUIRE(::lstat(path.c_str(), &status) == 0);
    return status.st_mode & 07777;
  }
  std::string text(const std::string& path) const { return *read_file(path); }
};

}  // namespace

TEST_CASE("a domain's directory and template have the modes that daemons expect",
          "[plugin][directories]") {
  Place place;
  ::umask(0077);
  REQUIRE(place.directories.prepare(place.domain));
  ::umask(0022);
  CHECK(place.mode(place.own) == 0755);
  CHECK(place.mode(place.own + "/imexd.cfg.tmpl") == 0644);
  CHECK(place.directories.path_of(place.domain) == place.own);
}

TEST_CASE("the template is written anew, whatever a container made of it",
          "[plugin][directories]") {
  Place place;
  REQUIRE(place.directories.prepare(place.domain));
  std::ofstream(place.own + "/imexd.cfg.tmpl") << "LOG_LEVEL=0\n";
  REQUIRE(place.directories.prepare(place.domain));
  CHECK(place.text(place.own + "/imexd.cfg.tmpl") == imex_template());
}

TEST_CASE("a link in the place of the template is replaced, and its target untouched",
          "[plugin][directories]") {
  Place place;
  std::string victim = place.files.path() + "/checkpoint.json";
  std::ofstream(victim) << "precious";
  REQUIRE(place.directories.prepare(place.domain));
  std::filesystem::remove(place.own + "/imexd.cfg.tmpl");
  std::filesystem::create_symlink(victim, place.own + "/imexd.cfg.tmpl");
  REQUIRE(place.directories.prepare(place.domain));
  CHECK(place.text(victim) == "precious");
  CHECK(std::filesystem::is_regular_file(
      std::filesystem::symlink_status(place.own + "/imexd.cfg.tmpl")));
}

TEST_CASE("a link in the place of a domain's directory is an error that names it",
          "[plugin][directories]") {
  Place place;
  std::string elsewhere = place.files.path() + "/elsewhere";
  std::filesystem::create_directories(elsewhere);
  std::filesystem::create_directories(place.files.path() + "/domains");
  std::filesystem::create_symlink(elsewhere, place.own);
  Result<void> prepared = place.directories.prepare(place.domain);
  REQUIRE_FALSE(prepared);
  CHECK_THAT(prepared.error().text(), Catch::Contains(place.own));
  CHECK(std::filesystem::is_empty(elsewhere));
}

TEST_CASE("a domain that is no path component gets no directory", "[plugin][directories]") {
  Place place;
  for (const char* hostile : {"..", "../x", "", "a/b"})
    CHECK_FALSE(place.directories.prepare(DomainUid(hostile)));
  CHECK_FALSE(std::filesystem::exists(place.files.path() + "/domains"));
}

TEST_CASE("directories are listed and removed; plain files are passed over",
          "[plugin][directories]") {
  Place place;
  CHECK(place.directories.all()->empty());
  CHECK(place.directories.remove(place.domain));
  REQUIRE(place.directories.prepare(place.domain));
  std::ofstream(place.files.path() + "/domains/note") << "x";
  CHECK(*place.directories.all() == std::vector<DomainUid>{place.domain});
  REQUIRE(place.directories.remove(place.domain));
  CHECK_FALSE(std::filesystem::exists(place.own));
}
