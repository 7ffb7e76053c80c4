#include "k8s/watch_event.hpp"

#include "catch.hpp"

using namespace nvdra;
using namespace nvdra::k8s;

namespace {

const ResourceType pods{"", "v1", "pods", "Pod"};

std::vector<std::string> split(std::string_view stream, std::size_t piece) {
  LineSplitter lines;
  std::vector<std::string> found;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    lines.feed(stream.substr(at, piece));
    while (auto line = lines.next()) found.push_back(*line);
  }
  return found;
}

}  // namespace

TEST_CASE("lines are the same however the stream was cut", "[k8s][watch]") {
  auto piece = static_cast<std::size_t>(GENERATE(1, 2, 3, 7, 1000));
  INFO(piece);
  CHECK(split("one\ntwo\r\n\n\nthree\nunfinished", piece) ==
        std::vector<std::string>{"one", "two", "three"});
}

TEST_CASE("a line that was cut off is known to be there", "[k8s][watch]") {
  LineSplitter lines;
  lines.feed("whole\nha");
  CHECK(lines.next() == "whole");
  CHECK_FALSE(lines.next());
  CHECK(lines.waiting() == 2);
  CHECK(lines.rest() == "ha");
  CHECK(lines.waiting() == 0);
}

TEST_CASE("an event of many megabytes arrives whole", "[k8s][watch]") {
  std::string big(20u << 20, 'x');
  auto found = split(big + "\nnext\n", 16 * 1024);
  REQUIRE(found.size() == 2);
  CHECK(found[0] == big);
  CHECK(found[1] == "next");
}

TEST_CASE("the five types of events are told apart, others are ignored", "[k8s][watch]") {
  struct Row {
    const char* type;
    std::optional<WatchEvent::Kind> kind;
  };
  const Row row = GENERATE(values<Row>({
      {"ADDED", WatchEvent::Kind::added},
      {"MODIFIED", WatchEvent::Kind::modified},
      {"DELETED", WatchEvent::Kind::deleted},
      {"BOOKMARK", WatchEvent::Kind::bookmark},
      {"ERROR", WatchEvent::Kind::error},
      {"LATER", std::nullopt},
  }));
  INFO(row.type);
  auto event = parse_watch_event(
      std::string(R"({"type":")") + row.type + R"(","object":{"metadata":{"name":"a"}}})", pods);
  REQUIRE(event);
  REQUIRE(event->has_value() == row.kind.has_value());
  if (row.kind) CHECK((*event)->kind == *row.kind);
}

TEST_CASE("the object of an event has its type even when the server left it out", "[k8s][watch]") {
  auto event = parse_watch_event(R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})", pods);
  REQUIRE(event);
  REQUIRE(event->has_value());
  const Json& object = (*event)->object.json();
  CHECK(text_or_empty(object, "kind") == "Pod");
  CHECK(text_or_empty(object, "apiVersion") == "v1");
}

TEST_CASE("an event that cannot be understood is a malformed answer", "[k8s][watch]") {
  std::string line = GENERATE("{", "[]", "\"x\"", R"({"object":{}})", R"({"type":"ADDED"})",
                              R"({"type":"ADDED","object":7})", R"({"type":7,"object":{}})");
  INFO(line);
  auto event = parse_watch_event(line, pods);
  REQUIRE_FALSE(event);
  CHECK(event.error().code == Errc::malformed_answer);
}

TEST_CASE("an ERROR event means gone by its code or its reason alone", "[k8s][watch]") {
  struct Row {
    const char* object;
    Errc expected;
  };
  const Row row = GENERATE(values<Row>({
      {R"({"kind":"Status","code":410,"reason":"Expired","message":"too old"})", Errc::gone},
      {R"({"code":410})", Errc::gone},
      {R"({"reason":"Expired"})", Errc::gone},
      {R"({"reason":"Gone","code":200})", Errc::gone},
      {R"({"code":500,"message":"etcd"})", Errc::server_error},
      {R"({"code":429})", Errc::too_many_requests},
      {R"({})", Errc::server_error},
  }));
  INFO(row.object);
  auto event =
      parse_watch_event(std::string(R"({"type":"ERROR","object":)") + row.object + "}", pods);
  REQUIRE(event);
  REQUIRE(event->has_value());
  CHECK(failure_of_event(**event).error.code == row.expected);
}
