#include "base/files.hpp"

#include "catch.hpp"
#include "fake/temp_dir.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

using namespace nvdra;
using fake::TempDir;
namespace errc = boost::system::errc;

namespace {

mode_t mode_of(const std::string& path) {
  struct stat found{};
  REQUIRE(::lstat(path.c_str(), &found) == 0);
  return found.st_mode & 07777;
}

std::vector<std::string> names_in(const TempDir& dir) {
  Result<std::vector<Entry>> listed = list_directory(dir.fd());
  REQUIRE(listed);
  std::vector<std::string> names;
  for (const Entry& entry : *listed) names.push_back(entry.name);
  return names;
}

// A small tmpfs, or nothing where this process may not mount.
class SmallDisk {
public:
  explicit SmallDisk(const std::string& path) : path_(path) {
    std::filesystem::create_directory(path);
    mounted_ = ::mount("none", path.c_str(), "tmpfs", 0, "size=64k") == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }

private:
  std::string path_;
  bool mounted_;
};

}  // namespace

TEST_CASE("a replaced file has the new content and exactly the wanted mode", "[base][files]") {
  TempDir dir;
  mode_t old = ::umask(077);
  Result<void> first = replace_file(dir.fd(), "a.json", "one", 0644);
  Result<void> second = replace_file(dir.fd(), "a.json", "two", 0604);
  ::umask(old);
  REQUIRE(first);
  REQUIRE(second);
  CHECK(dir.read("a.json") == "two");
  CHECK(mode_of(dir.path("a.json")) == 0604);
  CHECK(names_in(dir) == std::vector<std::string>{"a.json"});
}

TEST_CASE("a file is replaced by its path too, and below a directory that exists",
          "[base][files]") {
  TempDir dir;
  dir.write("sub/x", "");
  REQUIRE(replace_file(dir.fd(), "sub/b", "1", 0600));
  CHECK(dir.read("sub/b") == "1");
  REQUIRE(replace_file(AT_FDCWD, dir.path("sub/b"), "2", 0600));
  CHECK(dir.read("sub/b") == "2");
}

TEST_CASE("a link in the place of the file is replaced, not followed", "[base][files]") {
  TempDir dir;
  dir.write("victim", "precious");
  REQUIRE(::symlink("victim", dir.path("a").c_str()) == 0);
  REQUIRE(replace_file(dir.fd(), "a", "new", 0600));
  CHECK(dir.read("victim") == "precious");
  CHECK_FALSE(std::filesystem::is_symlink(dir.path("a")));
}

TEST_CASE("a reader of the file sees the old or the new content, never a part", "[base][files]") {
  TempDir dir;
  dir.write("a", "old");
  Fd reader(::open(dir.path("a").c_str(), O_RDONLY));
  REQUIRE(replace_file(dir.fd(), "a", "new content", 0600));
  char text[16]{};
  CHECK(::read(reader.get(), text, sizeof text) == 3);
  CHECK(std::string(text) == "old");
}

TEST_CASE("a replacement that fails leaves the old file and no draft", "[base][files]") {
  TempDir dir;
  dir.write("taken/inside", "");
  Result<void> replaced = replace_file(dir.fd(), "taken", "x", 0600);
  REQUIRE_FALSE(replaced);
  CHECK(replaced.error().text() == "write taken: rename: Is a directory");
  CHECK(names_in(dir) == std::vector<std::string>{"taken"});

  Result<void> nowhere = replace_file(dir.fd(), "no/such", "x", 0600);
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().text() == "write no/such: No such file or directory");
}

TEST_CASE("a full disk is reported and the old file stays", "[base][files]") {
  TempDir dir;
  SmallDisk disk(dir.path("disk"));
  if (!disk.mounted()) {
    WARN("skipped: this process may not mount a tmpfs");
    return;
  }
  Result<Fd> opened = open_directory(dir.path("disk"));
  REQUIRE(opened);
  REQUIRE(replace_file(opened->get(), "a", "old", 0600));
  Result<void> replaced = replace_file(opened->get(), "a", std::string(200 << 10, 'x'), 0600);
  REQUIRE_FALSE(replaced);
  CHECK(replaced.error().code == errc::no_space_on_device);
  CHECK(replaced.error().text() == "write a: write: No space left on device");
  CHECK(dir.read("disk/a") == "old");
  CHECK(list_directory(opened->get())->size() == 1);
}

TEST_CASE("reading a file has a limit", "[base][files]") {
  TempDir dir;
  dir.write("a", "12345");
  CHECK(*read_file(dir.fd(), "a", 5) == "12345");
  CHECK(*read_file(dir.path("a")) == "12345");
  Result<std::string> long_one = read_file(dir.fd(), "a", 4);
  REQUIRE_FALSE(long_one);
  CHECK(long_one.error().code == errc::file_too_large);
  CHECK(long_one.error().text() == "read a: longer than 4 bytes: File too large");
  CHECK(read_file("/proc/self/status")->find("Name:") == 0);
}

TEST_CASE("large files are read whole", "[base][files]") {
  TempDir dir;
  std::string content(300'000, 'x');
  content += "end";
  dir.write("a", content);
  CHECK(*read_file(dir.fd(), "a") == content);
}

TEST_CASE("what cannot be read is named with its reason", "[base][files]") {
  TempDir dir;
  dir.write("sub/x", "");
  REQUIRE(::mkfifo(dir.path("fifo").c_str(), 0600) == 0);
  CHECK(read_file(dir.fd(), "none").error().text() == "read none: No such file or directory");
  CHECK(read_file(dir.fd(), "sub").error().text() == "read sub: Is a directory");
  CHECK(read_file(dir.fd(), "fifo").error().text() == "read fifo: not a regular file");
}

TEST_CASE("only a path that the operator named may end in a link", "[base][files]") {
  TempDir dir;
  dir.write("real/file", "text");
  REQUIRE(::symlink("real/file", dir.path("link").c_str()) == 0);
  REQUIRE(::symlink("real", dir.path("linked_dir").c_str()) == 0);
  CHECK(*read_file(dir.path("link")) == "text");
  CHECK(read_file(dir.fd(), "link").error().code == errc::too_many_symbolic_link_levels);
  CHECK(open_directory(dir.path("linked_dir")));
  CHECK_FALSE(open_directory(dir.fd(), "linked_dir"));
  CHECK_FALSE(list_directory(dir.fd(), "linked_dir"));
  CHECK(open_directory(dir.fd(), "real"));
  CHECK(open_directory(dir.path("none")).error().text() ==
        "open directory " + dir.path("none") + ": No such file or directory");
}

TEST_CASE("missing directories are made with exactly the mode", "[base][files]") {
  TempDir dir;
  mode_t old = ::umask(077);
  Result<void> made = make_directories(dir.path("a/b/c"), 0755);
  ::umask(old);
  REQUIRE(made);
  CHECK(mode_of(dir.path("a")) == 0755);
  CHECK(mode_of(dir.path("a/b/c")) == 0755);
  REQUIRE(::chmod(dir.path("a").c_str(), 0700) == 0);
  REQUIRE(make_directories(dir.path("a/b/c/"), 0755));
  CHECK(mode_of(dir.path("a")) == 0700);
}

TEST_CASE("a file in the way of a directory is an error that names it", "[base][files]") {
  TempDir dir;
  dir.write("a/file", "");
  Result<void> made = make_directories(dir.path("a/file/c"), 0755);
  REQUIRE_FALSE(made);
  CHECK(made.error().code == errc::not_a_directory);
  CHECK(made.error().text() == "make directory " + dir.path("a/file") + ": Not a directory");
}

TEST_CASE("removing a file that is not there is a success", "[base][files]") {
  TempDir dir;
  dir.write("a", "");
  dir.write("d/x", "");
  CHECK(remove_file(dir.fd(), "a"));
  CHECK(remove_file(dir.fd(), "a"));
  CHECK_FALSE(dir.exists("a"));
  CHECK(remove_file(dir.fd(), "d").error().text() == "remove d: Is a directory");
}

TEST_CASE("a tree is removed without following its links", "[base][files]") {
  TempDir dir;
  dir.write("keep/precious", "1");
  dir.write("tree/a/b/file", "2");
  dir.write("tree/.hidden", "3");
  REQUIRE(::symlink("../keep", dir.path("tree/link").c_str()) == 0);
  REQUIRE(::symlink("keep", dir.path("top_link").c_str()) == 0);
  CHECK(remove_tree(dir.fd(), "tree"));
  CHECK(remove_tree(dir.fd(), "tree"));
  CHECK(remove_tree(dir.fd(), "top_link"));
  CHECK_FALSE(dir.exists("tree"));
  CHECK_FALSE(dir.exists("top_link"));
  CHECK(dir.read("keep/precious") == "1");
  CHECK(remove_tree(dir.fd(), "keep/precious").error().text() ==
        "remove \"keep/precious\": not the name of a directory entry");
  CHECK_FALSE(remove_tree(dir.fd(), ".."));
}

TEST_CASE("a tree that something is mounted in is not emptied through the mount", "[base][files]") {
  TempDir dir;
  dir.write("tree/x", "");
  SmallDisk disk(dir.path("tree/disk"));
  if (!disk.mounted()) {
    WARN("skipped: this process may not mount a tmpfs");
    return;
  }
  dir.write("tree/disk/precious", "1");
  Result<void> removed = remove_tree(dir.fd(), "tree");
  REQUIRE_FALSE(removed);
  CHECK(removed.error().code == errc::cross_device_link);
  CHECK(dir.read("tree/disk/precious") == "1");
}

TEST_CASE("a listing is sorted and tells directories from files and links", "[base][files]") {
  TempDir dir;
  dir.write("b", "");
  dir.write("a/x", "");
  dir.write(".c", "");
  REQUIRE(::symlink("a", dir.path("l").c_str()) == 0);
  Result<std::vector<Entry>> listed = list_directory(dir.fd());
  REQUIRE(listed);
  REQUIRE(listed->size() == 4);
  CHECK((*listed)[0].name == ".c");
  CHECK((*listed)[1].name == "a");
  CHECK((*listed)[1].is_directory);
  CHECK_FALSE((*listed)[2].is_directory);
  CHECK_FALSE((*listed)[3].is_directory);
  CHECK(list_directory(dir.fd(), "a")->size() == 1);
  CHECK(list_directory(dir.fd(), "none").error().text() ==
        "list directory none: No such file or directory");
}

TEST_CASE("a lock is held by one at a time and released by closing", "[base][files]") {
  TempDir dir;
  Result<Fd> first = try_lock_file(dir.fd(), "lock");
  REQUIRE(first);
  Result<Fd> second = try_lock_file(dir.fd(), "lock");
  REQUIRE_FALSE(second);
  CHECK(second.error().code == errc::resource_unavailable_try_again);
  CHECK(second.error().text() == "lock lock: Resource temporarily unavailable");
  first->reset();
  CHECK(try_lock_file(dir.fd(), "lock"));
}
