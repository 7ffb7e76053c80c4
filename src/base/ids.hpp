// Identities have types, so that they cannot be swapped.
#pragma once

#include <compare>
#include <functional>
#include <string>
#include <string_view>

namespace nvdra {

template <class Tag>
struct Id {
  std::string value;

  Id() = default;
  explicit Id(std::string text) : value(std::move(text)) {}
  bool empty() const { return value.empty(); }
  auto operator<=>(const Id&) const = default;
};

using ClaimUid = Id<struct ClaimUidTag>;
using DomainUid = Id<struct DomainUidTag>;  // ComputeDomain metadata.uid
using NodeName = Id<struct NodeNameTag>;
using CliqueId = Id<struct CliqueIdTag>;  // "<cluster uuid>.<number>", empty = no fabric

// 8-4-4-4-12 hexadecimal digits.
bool is_uuid(std::string_view text);
// RFC 1123 subdomain of at most 253 characters: names of most Kubernetes objects.
bool is_dns_subdomain(std::string_view text);
// A legal label value: at most 63 characters, alphanumeric at both ends (or empty).
bool is_label_value(std::string_view text);
// A random version 4 UUID.
std::string random_uuid();

}  // namespace nvdra
