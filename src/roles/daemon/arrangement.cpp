#include "roles/daemon/arrangement.hpp"

#include "base/files.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "imex/hosts_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <variant>

namespace nvdra::roles::daemon {
namespace {

constexpr Duration try_again = 2s;

// Where addresses are used everybody must be there before anybody starts (node-side.md 11.6).
std::string missing_nodes(const k8s::Object& domain) {
  const auto wanted = int_or(domain.json(), "spec/numNodes", 0);
  const auto there =
      static_cast<std::int64_t>(read_members(domain.json(), MemberList::domain_nodes).all.size());
  if (wanted == there) return {};
  if (wanted == 0)
    return "numNodes of the ComputeDomain is 0, but without the gate IMEXDaemonsWithDNSNames "
           "nvidia-imex needs to know the number of nodes: set numNodes, or enable the gate";
  return fmt::format("the ComputeDomain's status lists {} nodes, and numNodes is {}", there,
                     wanted);
}

}  // namespace

Plan lay_out(const k8s::Object* object, MemberList list, const Self& self, bool names) {
  if (!object) return {Unknown{}, {}};
  const Circle circle = circle_of(*object, list, self.clique);
  const Member* own = circle.own(self);
  if (!own || own->ip != self.address) return {Unknown{}, {}};
  Layout layout{.own = own->index, .slots = {}, .addresses = {}};
  if (!names) {
    for (const Member& member : circle.members) {
      if (!imex::is_reachable(member.ip))
        return {Unknown{imex::no_address({member.node, member.ip, member.index})}, {}};
      layout.addresses.push_back(member.ip);
    }
    std::string missing = missing_nodes(*object);
    if (!missing.empty()) return {Unknown{std::move(missing)}, {}};
    return {std::move(layout), {}};
  }
  std::vector<imex::Peer> peers;
  peers.reserve(circle.members.size());
  for (const Member& member : circle.members)
    peers.push_back({member.node, member.ip, member.index});
  imex::Slots slots = imex::place_peers(peers, self.domain.value, self.slots);
  const bool placed = own->index >= 0 && own->index < self.slots &&
                      slots.all[static_cast<std::size_t>(own->index)].address == self.address;
  if (!placed) return {Unknown{}, std::move(slots.findings)};
  layout.slots = std::move(slots.all);
  return {std::move(layout), std::move(slots.findings)};
}

Arrangement::Arrangement(Parts parts, Settings settings, Self self)
    : parts_(std::move(parts)), settings_(std::move(settings)), self_(std::move(self)) {}

std::optional<std::int64_t> Arrangement::applied() const {
  if (!applied_) return std::nullopt;
  return applied_->own;
}

Async<Result<void>> Arrangement::run() {
  k8s::ObjectPtr done;
  for (bool first = true;; first = false) {
    const auto seen = parts_.news.count();
    const k8s::ObjectPtr object = parts_.object();
    if (object == done && !first) {
      co_await parts_.news.wait(seen);
      continue;
    }
    const bool arranged = arrange(object.get());
    if (arranged) done = object;
    LOG_INFO(1, log::Plain{"Wait for updated ComputeDomainDaemonInfo list"});
    if (arranged) continue;
    co_await parts_.news.wait_for(parts_.time, try_again, seen);
  }
}

// False: something could not be written.
bool Arrangement::arrange(const k8s::Object* object) {
  Plan plan = lay_out(object, settings_.list, self_, settings_.names);
  if (const auto* unknown = std::get_if<Unknown>(&plan.layout)) {
    note(unknown->why, std::move(plan.findings));
    return true;
  }
  const Result<void> done = apply(std::get<Layout>(plan.layout));
  note(done ? "" : done.error().text(), std::move(plan.findings));
  return done.has_value();
}

Result<void> Arrangement::apply(const Layout& layout) {
  if (applied_ == layout) return ok();
  TRY_VOID(settings_.names ? apply_names(layout) : apply_addresses(layout));
  applied_ = layout;
  parts_.news.notify();
  return ok();
}

Result<void> Arrangement::apply_names(const Layout& layout) {
  TRY(const bool changed, imex::update_hosts(settings_.hosts_file, layout.slots));
  (void)changed;
  for (const imex::Slot& slot : layout.slots)
    LOG_INFO(0, log::Plain{fmt::format("{} -> {}", slot.name, slot.address)});
  if (!applied_ || applied_->own != layout.own) {
    restart();
  } else {
    parts_.refresher.want();
  }
  return ok();
}

Result<void> Arrangement::apply_addresses(const Layout& layout) {
  const bool same = applied_ && applied_->addresses == layout.addresses;
  if (same) return ok();
  TRY_VOID(
      replace_file(AT_FDCWD, settings_.nodes_file, imex::render_nodes(layout.addresses), 0644));
  LOG_INFO(0, "Wrote the nodes file",
           {{"file", settings_.nodes_file},
            {"nodes", fmt::format("{}", fmt::join(layout.addresses, " "))}});
  restart();
  return ok();
}

// Starts it, too.
void Arrangement::restart() {
  imex::Wish wish = parts_.supervisor.wished();
  wish.run = true;
  ++wish.edition;
  parts_.supervisor.wish(wish);
}

void Arrangement::note(std::string trouble, std::vector<std::string> findings) {
  if (findings != findings_)
    for (const std::string& finding : findings)
      LOG_WARNING("A member has no place", {{"why", finding}, {"list", self_.clique.value}});
  if (trouble == trouble_ && findings == findings_) return;
  if (trouble != trouble_ && !trouble.empty())
    LOG_WARNING("The members cannot be handed to nvidia-imex yet", {{"why", trouble}});
  trouble_ = std::move(trouble);
  findings_ = std::move(findings);
  parts_.news.notify();
}

}  // namespace nvdra::roles::daemon
