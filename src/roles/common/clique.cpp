#include "roles/common/clique.hpp"

#include "roles/common/names.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::roles {
namespace {

std::string_view name_key(MemberList list) {
  return list == MemberList::clique_daemons ? "nodeName" : "name";
}

std::string_view list_path(MemberList list) {
  return list == MemberList::clique_daemons ? "daemons" : "status/nodes";
}

std::string place(const Member& member, MemberList list) {
  return fmt::format("{}/{}", members_pointer(list), member.position);
}

Json operation(std::string_view op, std::string_view path) {
  return {{"op", op}, {"path", path}};
}

Json operation(std::string_view op, std::string_view path, Json value) {
  return {{"op", op}, {"path", path}, {"value", std::move(value)}};
}

Json still_the_node(const Member& member, MemberList list) {
  return operation("test", place(member, list) + "/" + std::string(name_key(list)),
                   Json(member.node.value));
}

}  // namespace

const Member* Members::of(const NodeName& node) const {
  auto found = std::ranges::find(all, node, &Member::node);
  return found == all.end() ? nullptr : &*found;
}

Members read_members(const Json& object, MemberList list) {
  Members members;
  std::size_t position = 0;
  for (const Json& entry : array_or_empty(object, list_path(list))) {
    Member member;
    member.position = position++;
    member.node = NodeName(std::string(text_or_empty(entry, name_key(list))));
    member.ip = text_or_empty(entry, "ipAddress");
    member.clique = CliqueId(std::string(text_or_empty(entry, "cliqueID")));
    member.index = int_or(entry, "index", -1);
    member.ready = text_or_empty(entry, "status") == "Ready";
    if (member.node.empty()) {
      members.findings.push_back(fmt::format("{}[{}] has no {} and is skipped", list_path(list),
                                             member.position, name_key(list)));
    } else if (members.of(member.node)) {
      members.findings.push_back(fmt::format("{}[{}] repeats the node {} and is skipped",
                                             list_path(list), member.position, member.node.value));
    } else {
      members.all.push_back(std::move(member));
    }
  }
  return members;
}

Json member_entry(const Member& member, MemberList list) {
  return {{name_key(list), member.node.value},
          {"ipAddress", member.ip},
          {"cliqueID", member.clique.value},
          {"index", member.index},
          {"status", member.ready ? "Ready" : "NotReady"}};
}

std::string_view members_pointer(MemberList list) {
  return list == MemberList::clique_daemons ? "/daemons" : "/status/nodes";
}

JsonArray set_status_patch(const Member& member, MemberList list, bool ready) {
  return {still_the_node(member, list),
          operation("add", place(member, list) + "/status", Json(ready ? "Ready" : "NotReady"))};
}

JsonArray replace_patch(const Member& member, MemberList list) {
  return {still_the_node(member, list),
          operation("replace", place(member, list), member_entry(member, list))};
}

JsonArray remove_patch(const Member& member, MemberList list) {
  return {still_the_node(member, list), operation("remove", place(member, list))};
}

Json version_test(const k8s::Object& object) {
  return operation("test", "/metadata/resourceVersion", Json(object.version()));
}

JsonArray append_patch(const k8s::Object& object, const Member& member, MemberList list,
                       Json guard) {
  JsonArray patch;
  patch.push_back(std::move(guard));
  std::string pointer(members_pointer(list));
  Json entry = member_entry(member, list);
  if (const Json* there = find(object.json(), list_path(list)); there && there->is_array()) {
    patch.push_back(operation("add", pointer + "/-", std::move(entry)));
    return patch;
  }
  if (list == MemberList::domain_nodes && !find(object.json(), "status"))
    patch.push_back(operation("add", "/status", Json{{"status", "NotReady"}}));
  patch.push_back(operation("add", pointer, JsonArray{std::move(entry)}));
  return patch;
}

std::optional<std::int64_t> lowest_free_index(const std::vector<Member>& members,
                                              std::int64_t limit) {
  for (std::int64_t index = 0; index < limit; ++index) {
    if (std::ranges::find(members, index, &Member::index) == members.end()) return index;
  }
  return std::nullopt;
}

CliqueId clique_of(const k8s::Object& clique) {
  std::string prefix = clique_object_name(domain_of(clique), {});
  std::string_view name = clique.name();
  if (prefix.size() > 1 && name.size() > prefix.size() && name.starts_with(prefix))
    return CliqueId(std::string(name.substr(prefix.size())));
  return CliqueId(std::string(clique.label_text(clique_label)));
}

DomainUid domain_of(const k8s::Object& object) {
  return DomainUid(std::string(object.label_text(domain_label)));
}

}  // namespace nvdra::roles
