#include "sandbox/tool_domain.hpp"

#include "base/try.hpp"
#include "imex/driver_version.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::sandbox {
namespace {

bool since(std::string_view version, std::string_view first) {
  const auto ours = imex::parse_driver_version(version);
  const auto theirs = imex::parse_driver_version(first);
  return !ours || !theirs || *ours >= *theirs;  // NO_GPU and the like are new
}

std::string legend(bool mismatches) {
  std::string text =
      "Connectivity Table Legend:\n"
      "I - Invalid - Node wasn't reachable, no connection status available\n"
      "N - Never Connected\n"
      "R - Recovering - Connection was lost, but clean up has not yet been triggered.\n"
      "D - Disconnected - Connection was lost, and clean up has been triggreed.\n"
      "A - Authenticating - If GSSAPI enabled, client has initiated mutual authentication.\n";
  if (mismatches)
    text +=
        "!V! - Version mismatch, communication disabled.\n"
        "!M! - Node map mismatch, communication disabled.\n";
  return text + "C - Connected - Ready for operation\n";
}

std::string cell(char letter) {
  return letter == 'V' || letter == 'M' ? fmt::format("!{}!", letter) : std::string(1, letter);
}

std::string_view word(char letter) {
  switch (letter) {
    case 'C': return "CONNECTED";
    case 'N': return "NEVER_CONNECTED";
    case 'R': return "RECOVERING";
    case 'D': return "DISCONNECTED";
    case 'A': return "AUTHENTICATING";
    case 'V': return "VERSION_MISMATCH";
    case 'M': return "NODE_MAP_MISMATCH";
    default: return "INVALID";
  }
}

// "       0        C   C": one row of the matrix; the last column is not padded.
std::string matrix_row(std::string_view head, const std::vector<std::string>& cells,
                       std::size_t width) {
  std::string text(head);
  for (std::size_t i = 0; i < cells.size(); ++i)
    text += i + 1 < cells.size() ? fmt::format("{:<{}}", cells[i], width) : cells[i];
  return text + "\n";
}

std::string node_line(const DomainView& view, std::size_t index, bool versions, bool marks) {
  const Member& member = view.members[index];
  const std::size_t width = std::max<std::size_t>(16, member.host.size() + 1);
  if (marks && index == view.asked)
    return fmt::format("Node #{:<4}* {} *  - {:<18}- Version: {}\n", index, member.host,
                       member.state, member.version);
  std::string line = fmt::format("Node #{:<4}- {:<{}}- ", index, member.host, width);
  if (!versions) return line + member.state + "\n";
  return line + fmt::format("{:<21}- Version: {}\n", member.state, member.version);
}

}  // namespace

DomainView absent_domain(const std::vector<std::string>& nodes) {
  DomainView view;
  for (const std::string& node : nodes)
    view.members.push_back({node, "", "UNAVAILABLE", "", std::string(nodes.size(), 'I')});
  return view;
}

std::string_view domain_state(const DomainView& view) {
  const auto ready = [](const Member& member) { return member.state == "READY"; };
  const auto connected = [](const Member& member) {
    return member.row.find_first_not_of('C') == std::string::npos;
  };
  if (std::ranges::none_of(view.members, ready)) return "DOWN";
  return std::ranges::all_of(view.members, ready) && std::ranges::all_of(view.members, connected)
             ? "UP"
             : "DEGRADED";
}

std::string domain_table(const DomainView& view, std::string_view version, std::string_view now) {
  const bool versions = since(version, "570.100");
  const bool marks = since(version, "590.0");
  std::string text = legend(versions) + "\n" + std::string(now) + "\nNodes:\n";
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < view.members.size(); ++i) {
    text += node_line(view, i, versions, marks);
    ids.push_back(std::to_string(i));
  }
  const std::size_t width = versions ? 4 : 3;
  text += "\n" + matrix_row(" Nodes From\\To  ", ids, width);
  for (std::size_t i = 0; i < view.members.size(); ++i) {
    std::vector<std::string> cells;
    for (const char letter : view.members[i].row) cells.push_back(cell(letter));
    text += matrix_row(fmt::format("{:>8}        ", i), cells, width);
  }
  if (versions) text += "\n";
  return text + fmt::format("Domain State: {}\n", domain_state(view));
}

std::string domain_json(const DomainView& view, bool host_names, std::string_view now) {
  const auto quoted = [](std::string_view text) { return to_text(Json(text)); };
  std::string text = "{\n  \"nodes\": {";
  for (std::size_t i = 0; i < view.members.size(); ++i) {
    const Member& member = view.members[i];
    text += fmt::format("{}\n    \"{}\": {{\n      \"status\": {},\n      \"host\": {},\n",
                        i == 0 ? "" : ",", i, quoted(member.state), quoted(member.host));
    if (host_names && !member.host_name.empty())
      text += fmt::format("      \"hostName\": {},\n", quoted(member.host_name));
    text += "      \"connections\": {";
    for (std::size_t to = 0; to < member.row.size(); ++to)
      text +=
          fmt::format("{}\n        \"{}\": {{\"host\": {}, \"status\": \"{}\", \"changed\": true}}",
                      to == 0 ? "" : ",", to, quoted(view.members[to].host), word(member.row[to]));
    text += fmt::format("\n      }},\n      \"changed\": true,\n      \"version\": {}\n    }}",
                        quoted(member.version));
  }
  return text + fmt::format("\n  }},\n  \"timestamp\": {},\n  \"status\": \"{}\"\n}}\n",
                            quoted(now), domain_state(view));
}

Json to_json(const DomainView& view) {
  JsonArray members;
  for (const Member& member : view.members)
    members.push_back(JsonObject{{"host", member.host},
                                 {"hostName", member.host_name},
                                 {"state", member.state},
                                 {"version", member.version},
                                 {"row", member.row}});
  return JsonObject{{"asked", static_cast<std::int64_t>(view.asked)},
                    {"members", std::move(members)}};
}

Result<DomainView> domain_from(const Json& json) {
  DomainView view;
  TRY(const std::int64_t asked, int_at(json, "asked"));
  view.asked = static_cast<std::size_t>(asked);
  for (const Json& member : array_or_empty(json, "members"))
    view.members.push_back(
        {std::string(text_or_empty(member, "host")), std::string(text_or_empty(member, "hostName")),
         std::string(text_or_empty(member, "state")), std::string(text_or_empty(member, "version")),
         std::string(text_or_empty(member, "row"))});
  for (const Member& member : view.members)
    if (member.row.size() != view.members.size())
      return refuse("the daemon's answer has a row that does not fit its members");
  return view;
}

}  // namespace nvdra::sandbox
