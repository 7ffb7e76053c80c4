#include "dra/sockets.hpp"

#include "catch.hpp"
#include "fake/temp_dir.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

using namespace nvdra;
using namespace nvdra::dra;

namespace {

// As a killed process leaves it: bound, and nobody listens.
void leave_dead_socket(const std::string& path) {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
}

Occupant at(const std::string& path) {
  Result<Occupant> found = occupant_of(path);
  REQUIRE(found);
  return *found;
}

}  // namespace

TEST_CASE("socket names are those that the kubelet and the original use", "[dra][sockets]") {
  CHECK(service_socket_path("/var/lib/kubelet/plugins/compute-domain.nvidia.com") ==
        "/var/lib/kubelet/plugins/compute-domain.nvidia.com/dra.sock");
  CHECK(registrar_socket_path("/var/lib/kubelet/plugins_registry/", "compute-domain.nvidia.com") ==
        "/var/lib/kubelet/plugins_registry/compute-domain.nvidia.com-reg.sock");
}

TEST_CASE("a socket path that Linux cannot hold is refused with its length and the flag",
          "[dra][sockets]") {
  CHECK(check_socket_path("/" + std::string(106, 'x'), "--dir"));
  Result<void> refused = check_socket_path("/" + std::string(107, 'x'), "--dir");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text() == "socket path /" + std::string(107, 'x') +
                                      " has 108 bytes, Linux allows 107: give --dir a shorter "
                                      "directory");
  CHECK(check_socket_path("a/b", "--dir").error().text() ==
        "socket path a/b is not absolute: give --dir an absolute directory");
}

TEST_CASE("the longest path allowed can be listened on", "[dra][sockets][loopback]") {
  fake::TempDir dir;
  std::string path = dir.path("");
  path += std::string(longest_socket_path - path.size(), 'x');
  REQUIRE(check_socket_path(path, "--dir"));
  CHECK(ListeningSocket::open(path));
}

TEST_CASE("a listening socket is seen as alive and gone after its end",
          "[dra][sockets][loopback]") {
  fake::TempDir dir;
  std::string path = dir.path("s.sock");
  CHECK(at(path) == Occupant::nothing);
  {
    Result<ListeningSocket> socket = ListeningSocket::open(path);
    REQUIRE(socket);
    CHECK(socket->in_place());
    pid_t pid = 0;
    Result<Occupant> found = occupant_of(path, &pid);
    REQUIRE(found);
    CHECK(*found == Occupant::live_socket);
    CHECK(pid == ::getpid());
    CHECK(socket->accept());        // the look above
    CHECK_FALSE(socket->accept());  // does not block
  }
  CHECK(at(path) == Occupant::nothing);
}

TEST_CASE("a dead socket is replaced", "[dra][sockets][loopback]") {
  fake::TempDir dir;
  std::string path = dir.path("s.sock");
  leave_dead_socket(path);
  CHECK(at(path) == Occupant::dead_socket);
  CHECK(ListeningSocket::open(path));
}

TEST_CASE("another plugin's live socket is not disturbed", "[dra][sockets][loopback]") {
  fake::TempDir dir;
  std::string path = dir.path("s.sock");
  Result<ListeningSocket> first = ListeningSocket::open(path);
  REQUIRE(first);
  Result<ListeningSocket> second = ListeningSocket::open(path);
  REQUIRE_FALSE(second);
  CHECK(second.error().code == boost::system::errc::address_in_use);
  CHECK(second.error().text().find("socket " + path + " is served by another plugin (process ") ==
        0);
  CHECK(first->in_place());
  CHECK(at(path) == Occupant::live_socket);
}

TEST_CASE("a file that is no socket is never removed", "[dra][sockets][loopback]") {
  fake::TempDir dir;
  dir.write("s.sock", "precious");
  Result<ListeningSocket> socket = ListeningSocket::open(dir.path("s.sock"));
  REQUIRE_FALSE(socket);
  CHECK(socket.error().text() == dir.path("s.sock") + " exists and is not a socket: remove it");
  CHECK(dir.read("s.sock") == "precious");
}

TEST_CASE("a socket that somebody replaced is not removed at our end", "[dra][sockets][loopback]") {
  fake::TempDir dir;
  std::string path = dir.path("s.sock");
  Result<ListeningSocket> ours = ListeningSocket::open(path);
  REQUIRE(ours);
  REQUIRE(::unlink(path.c_str()) == 0);
  CHECK_FALSE(ours->in_place());
  Result<ListeningSocket> theirs = ListeningSocket::open(path);
  REQUIRE(theirs);
  ours->close();
  CHECK(theirs->in_place());
  CHECK(at(path) == Occupant::live_socket);
}

TEST_CASE("a missing directory is an error that names the path", "[dra][sockets][loopback]") {
  fake::TempDir dir;
  Result<ListeningSocket> socket = ListeningSocket::open(dir.path("none/s.sock"));
  REQUIRE_FALSE(socket);
  CHECK(socket.error().text() ==
        "bind socket " + dir.path("none/s.sock") + ": No such file or directory");
}
