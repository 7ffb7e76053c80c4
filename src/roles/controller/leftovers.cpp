#include "roles/controller/leftovers.hpp"

#include "roles/common/clique.hpp"
#include "roles/controller/plan_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace nvdra::roles::controller {
namespace {

constexpr std::size_t most_domains = 10;
constexpr std::size_t most_nodes = 3;

// "a, b, c and 4 more"
std::string first_of(const std::vector<std::string>& names, std::size_t most) {
  std::vector<std::string> shown(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(most, names.size())));
  std::string text = fmt::format("{}", fmt::join(shown, ", "));
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

struct Daemons {
  std::vector<std::string> objects;
  std::vector<std::string> nodes;
};

std::string told(const Daemons& daemons) {
  std::vector<std::string> parts = daemons.objects;
  if (!daemons.nodes.empty())
    parts.push_back(fmt::format("the label of {} node(s): {}", daemons.nodes.size(),
                                first_of(daemons.nodes, most_nodes)));
  return fmt::format("({})", fmt::join(parts, ", "));
}

// By the domain's UID. Whatever is not ours by plan.hpp's rules is left out.
std::map<std::string, Daemons> daemons_of(const Inventory& seen, const Settings& settings) {
  std::map<std::string, Daemons> found;
  for (const k8s::ObjectPtr& object : seen.templates) {
    DomainUid uid = domain_of(*object);
    if (made_for(*object, uid) && is_daemon_template(*object, uid, settings.spaces))
      found[uid.value].objects.push_back("ResourceClaimTemplate " + object->key().text());
  }
  for (const k8s::ObjectPtr& object : seen.daemon_sets)
    if (DomainUid uid = domain_of(*object); daemon_set_made_for(*object, uid))
      found[uid.value].objects.push_back("DaemonSet " + object->key().text());
  for (const k8s::ObjectPtr& object : seen.nodes)
    if (DomainUid uid = domain_of(*object); !uid.value.empty())
      found[uid.value].nodes.emplace_back(object->name());
  return found;
}

ImexMode other(ImexMode mode) {
  return mode == ImexMode::host_managed ? ImexMode::driver_managed : ImexMode::host_managed;
}

const char* name_of(ImexMode mode) {
  return mode == ImexMode::host_managed ? "hostManaged" : "driverManaged";
}

bool made_by_other_mode(const k8s::Object& found, const Domain& domain, const Settings& settings) {
  auto fits = [&](ImexMode mode) {
    Json wanted = workload_template(domain, mode, settings.resource_version);
    const Json* spec = find(found.json(), "spec");
    return spec && contains(*spec, wanted.at("spec"));
  };
  return !fits(settings.mode) && fits(other(settings.mode));
}

std::vector<k8s::ObjectPtr> with_other_template(const Inventory& seen, const Settings& settings) {
  std::map<k8s::ObjectKey, k8s::ObjectPtr> templates;
  for (const k8s::ObjectPtr& object : seen.templates) templates.emplace(object->key(), object);
  std::vector<k8s::ObjectPtr> found;
  for (const k8s::ObjectPtr& object : seen.domains) {
    Domain domain = read_domain(*object);
    auto own = templates.find({domain.key.space, domain.template_name});
    if (!domain.deleting && own != templates.end() && made_for(*own->second, domain.uid) &&
        made_by_other_mode(*own->second, domain, settings))
      found.push_back(object);
  }
  return found;
}

}  // namespace

Leftovers find_leftovers(const Inventory& seen, const Settings& settings) {
  const std::map<std::string, Daemons> daemons = daemons_of(seen, settings);
  const bool host_managed = settings.mode == ImexMode::host_managed;
  Leftovers found{.of_daemons = {}, .with_other_template = with_other_template(seen, settings)};

  std::set<std::string> uids;
  for (const auto& [uid, each] : daemons) uids.insert(uid);
  for (const k8s::ObjectPtr& object : seen.templates)
    if (DomainUid uid = domain_of(*object); made_for(*object, uid)) uids.insert(uid.value);
  for (const k8s::ObjectPtr& object : seen.domains) {
    const std::string uid(object->uid());
    uids.erase(uid);
    auto left = daemons.find(uid);
    if (host_managed && left != daemons.end())
      found.of_daemons.push_back(object->key().text() + " " + told(left->second));
  }
  for (const auto& [uid, each] : daemons)
    if (host_managed && uids.contains(uid))
      found.of_daemons.push_back(
          fmt::format("one that no longer exists, UID {} {}", uid, told(each)));
  found.vanished = uids.size();

  // A domain that is refused keeps its template.
  if (host_managed && !settings.clean_up_other_mode)
    std::erase_if(found.with_other_template, [&](const k8s::ObjectPtr& object) {
      return daemons.contains(std::string(object->uid()));
    });
  return found;
}

std::vector<std::string> describe(const Leftovers& found, const Settings& settings) {
  std::vector<std::string> lines;
  if (!found.of_daemons.empty()) {
    std::string what =
        settings.clean_up_other_mode
            ? "they are being removed"
            : fmt::format(
                  "nothing of them is removed, DaemonSets and node labels may be among them "
                  "unseen, and those ComputeDomains are refused: set "
                  "resources.computeDomains.imex.mode back to driverManaged and delete "
                  "them, or have everything removed with {}",
                  how_to_clean_up);
    lines.push_back(fmt::format(
        "Mode hostManaged finds what driverManaged left behind of {} ComputeDomain(s): {}; {}",
        found.of_daemons.size(), first_of(found.of_daemons, most_domains), what));
  }
  if (!found.with_other_template.empty()) {
    std::vector<std::string> names;
    names.reserve(found.with_other_template.size());
    for (const k8s::ObjectPtr& domain : found.with_other_template)
      names.push_back(domain->key().text());
    lines.push_back(fmt::format(
        "Mode {} makes the workload templates that {} made again, of {} ComputeDomain(s): {}; "
        "claims that exist keep what they have",
        name_of(settings.mode), name_of(other(settings.mode)), names.size(),
        first_of(names, most_domains)));
  }
  return lines;
}

}  // namespace nvdra::roles::controller
