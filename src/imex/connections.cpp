#include "imex/connections.hpp"

#include "base/json.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "imex/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::imex {
namespace {

constexpr std::string_view connected = "CONNECTED";
constexpr std::string_view ready = "READY";
constexpr std::size_t longest_answer = 1u << 20;

Result<std::int64_t> id_of(std::string_view key) {
  const auto id = parse_number<std::int64_t>(key);
  if (!id) return refuse(fmt::format("nvidia-imex-ctl -N -j names a member \"{}\"", key));
  return *id;
}

Result<DomainMember> parse_member(const Json& json) {
  DomainMember member{.state = std::string(text_or_empty(json, "status")),
                      .host = std::string(text_or_empty(json, "host")),
                      .connections = {}};
  for (const auto& [key, connection] : object_or_empty(json, "connections")) {
    TRY(const std::int64_t id, id_of(key));
    member.connections[id] = text_or_empty(connection, "status");
  }
  return member;
}

// "" when the connection is as it should be, or nothing is said of it.
std::string_view fault_between(const DomainView& view, std::int64_t from, std::int64_t to) {
  const auto member = view.find(from);
  if (member == view.end()) return {};
  const auto connection = member->second.connections.find(to);
  if (connection == member->second.connections.end()) return {};
  return connection->second == connected ? std::string_view{} : connection->second;
}

}  // namespace

Result<DomainView> parse_domain(std::string_view text) {
  TRY(const Json json, parse_json(text));
  const Json* nodes = find(json, "nodes");
  if (!nodes || !nodes->is_object()) return refuse("nvidia-imex-ctl -N -j has no \"nodes\"");
  DomainView view;
  for (const auto& [key, member] : nodes->get_object()) {
    TRY(const std::int64_t id, id_of(key));
    TRY(view[id], parse_member(member));
  }
  return view;
}

std::vector<Unconnected> unconnected(const DomainView& view, std::int64_t own) {
  std::vector<Unconnected> found;
  const auto self = view.find(own);
  if (self == view.end() || self->second.state != ready) return found;
  for (const auto& [id, peer] : view) {
    if (id == own) continue;
    std::string_view word = fault_between(view, own, id);
    if (word.empty()) word = fault_between(view, id, own);
    Unconnected fault{id, peer.host, std::string(word)};
    if (fault.refused() || (!word.empty() && peer.state == ready))
      found.push_back(std::move(fault));
  }
  return found;
}

Async<Result<DomainView>> ask_domain(Question question, Time& time) {
  const Limits limits{.time = question.limit, .output = longest_answer};
  CO_TRY(const Output output, co_await nvdra::run(question.command, time, limits));
  if (!output.exit.success())
    co_return refuse(
        fmt::format("nvidia-imex-ctl -N failed ({}): {}", output.exit.text(), excerpt(output.err)));
  co_return parse_domain(output.out);
}

Connections::Connections(Parts parts) : parts_(std::move(parts)) {}

Async<Result<void>> Connections::run() {
  bool looked = false;
  for (;;) {
    const auto seen = parts_.news.count();
    const std::optional<std::int64_t> own = parts_.own();
    if (!own) {
      forget();
      looked = false;
      co_await parts_.news.wait(seen);
      continue;
    }
    if (!looked) {
      looked = true;
      co_await parts_.time.sleep(first_look);
      continue;
    }
    co_await look(*own);
    co_await parts_.time.sleep(between_looks);
    if (!doubts_.empty()) continue;
    co_await parts_.news.wait_for(parts_.time, calm_look - between_looks, seen);
  }
}

Async<void> Connections::look(std::int64_t own) {
  const Result<DomainView> view = co_await parts_.ask();
  const std::string trouble = view ? std::string() : view.error().text();
  if (!trouble.empty() && trouble != trouble_)
    LOG_INFO(1, "Cannot look at the connections of nvidia-imex", {{"err", trouble}});
  trouble_ = trouble;
  if (parts_.own() != own) co_return;  // it was about another time
  if (view)
    see(unconnected(*view, own));
  else
    forget();
}

void Connections::see(const std::vector<Unconnected>& seen) {
  std::vector<Doubt> doubts;
  for (const Unconnected& what : seen) {
    const auto known =
        std::ranges::find(doubts_, what.id, [](const Doubt& d) { return d.what.id; });
    doubts.push_back({what, known == doubts_.end() ? parts_.time.now() : known->since});
  }
  doubts_ = std::move(doubts);
  conclude();
}

void Connections::forget() {
  doubts_.clear();
  conclude();
}

void Connections::conclude() {
  std::vector<Unconnected> faults;
  for (const Doubt& doubt : doubts_)
    if (parts_.time.now() - doubt.since >= settled_after) faults.push_back(doubt.what);
  if (faults == faults_) return;
  faults_ = std::move(faults);
  parts_.changed();
}

}  // namespace nvdra::imex
