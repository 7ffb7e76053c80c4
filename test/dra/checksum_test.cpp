#include "dra/checksum.hpp"

#include "catch.hpp"

#include <random>
#include <string>

using namespace nvdra::dra;

namespace {

// The definition, word for word.
std::uint32_t by_definition(std::string_view input) {
  std::string printed = "([]uint8)[";
  for (std::size_t i = 0; i < input.size(); ++i)
    printed += (i > 0 ? " " : "") + std::to_string(static_cast<unsigned char>(input[i]));
  printed += "]";
  std::uint32_t hash = 2166136261u;
  for (char c : printed) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

}  // namespace

TEST_CASE("checksums are those that the original writes", "[dra][checksum]") {
  CHECK(checksum(R"({"checksum":0})") == 4166374854u);
  CHECK(checksum(R"({"checksum":0,"v1":{}})") == 1083090442u);
  CHECK(checksum(R"({"checksum":0,"nodeBootID":"beef-beef-beef-beef-beefbeef0001"})") ==
        540943066u);
}

TEST_CASE("the tabulated checksum equals its definition for any bytes", "[dra][checksum]") {
  std::mt19937 random(7);
  for (std::size_t length : {0u, 1u, 2u, 3u, 255u, 4096u}) {
    std::string bytes(length, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    INFO(length);
    CHECK(checksum(bytes) == by_definition(bytes));
  }
}

TEST_CASE("a checksum does not depend on how its input is cut", "[dra][checksum]") {
  std::string text = R"({"checksum":0,"v1":{"preparedClaims":{}}})";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    std::string_view view = text;
    CHECK(checksum({"", view.substr(0, cut), "", view.substr(cut)}) == by_definition(text));
  }
}

TEST_CASE("a remembered piece counts as if it were added", "[dra][checksum]") {
  Checksum::Memo memo;
  std::string piece = R"({"status":{}})";
  for (std::string before : {"", "{", "{", "{\"a\":", "", "{"}) {
    Checksum sum;
    sum.add(before);
    sum.add(piece, memo);
    sum.add("}");
    INFO(before);
    CHECK(sum.value() == by_definition(before + piece + "}"));
  }
}
