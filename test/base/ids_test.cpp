#include "base/ids.hpp"

#include "catch.hpp"

#include <set>

using namespace nvdra;

TEST_CASE("a UUID is 8-4-4-4-12 hexadecimal digits", "[base][ids]") {
  CHECK(is_uuid("01234567-89ab-cdef-ABCD-ef0123456789"));
  for (const char* bad :
       {"", "01234567-89ab-cdef-abcd-ef012345678", "01234567-89ab-cdef-abcd-ef01234567890",
        "g1234567-89ab-cdef-abcd-ef0123456789", "012345678-9ab-cdef-abcd-ef0123456789",
        "../../../../../../../../../../etc/x", "01234567-89ab-cdef-abcd-ef012345678\n"}) {
    INFO(bad);
    CHECK_FALSE(is_uuid(bad));
  }
}

TEST_CASE("a DNS subdomain is dotted labels of small letters, digits and dashes", "[base][ids]") {
  std::string longest(253, 'a');
  for (const std::string& good : {std::string("a"), std::string("0"), std::string("a-b.c-d.e"),
                                  std::string("node-1.example"), longest}) {
    INFO(good);
    CHECK(is_dns_subdomain(good));
  }
  for (const std::string& bad :
       {std::string(), longest + "a", std::string("A"), std::string("a_b"), std::string("-a"),
        std::string("a-"), std::string("a..b"), std::string(".a"), std::string("a."),
        std::string("a.-b"), std::string("a\n"), std::string("a/b")}) {
    INFO(bad);
    CHECK_FALSE(is_dns_subdomain(bad));
  }
}

TEST_CASE("a label value is short and alphanumeric at both ends", "[base][ids]") {
  for (const std::string& good :
       {std::string(), std::string("A"), std::string("a.B_c-9"), std::string(63, 'x')}) {
    INFO(good);
    CHECK(is_label_value(good));
  }
  for (const std::string& bad : {std::string(64, 'x'), std::string("-a"), std::string("a."),
                                 std::string("a b"), std::string("a/b"), std::string("\xc3\xbc")}) {
    INFO(bad);
    CHECK_FALSE(is_label_value(bad));
  }
}

TEST_CASE("random UUIDs are of version 4 and differ", "[base][ids]") {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    std::string uuid = random_uuid();
    INFO(uuid);
    CHECK(is_uuid(uuid));
    CHECK(uuid[14] == '4');
    CHECK(std::string_view("89ab").find(uuid[19]) != std::string_view::npos);
    CHECK(seen.insert(uuid).second);
  }
}

TEST_CASE("identities of one kind compare by value", "[base][ids]") {
  CHECK(ClaimUid("a") == ClaimUid("a"));
  CHECK(ClaimUid("a") < ClaimUid("b"));
  CHECK(ClaimUid().empty());
  static_assert(!std::is_convertible_v<ClaimUid, DomainUid>);
  static_assert(!std::is_convertible_v<std::string, NodeName>);
}
