#include "roles/controller/caches.hpp"

#include "roles/common/names.hpp"
#include "roles/controller/daemon_pod.hpp"

#include <algorithm>

namespace nvdra::roles::controller {
namespace {

std::vector<std::string> label_uid(const k8s::Object& object) {
  const Json* label = object.label(domain_label);
  if (!label || !label->is_string()) return {};
  return {std::string(label->get_string())};
}

std::vector<std::string> own_uid(const k8s::Object& object) {
  return {std::string(object.uid())};
}

std::vector<std::string> wanted_template(const k8s::Object& object) {
  Domain domain = read_domain(object);
  return {domain.key.space + "/" + domain.template_name};
}

k8s::Scope labelled(k8s::ResourceType type, std::string space) {
  return {.type = std::move(type),
          .space = std::move(space),
          .label_selector = std::string(domain_label)};
}

}  // namespace

Caches::Caches(asio::any_io_executor executor, k8s::Client& client, Time& time, Settings settings)
    : settings_(std::move(settings)),
      domains_(executor, client, time, real_random(), {compute_domains()}),
      templates_(executor, client, time, real_random(),
                 {claim_templates(settings_.resource_version)}) {
  domains_.store.keep(trim_metadata);
  domains_.store.add_index("uid", own_uid);
  domains_.store.add_index("template", wanted_template);
  templates_.store.keep(trim_template);
  templates_.store.add_index("uid", label_uid);
  domains_.store.on_change([this](const k8s::ObjectPtr& before, const k8s::ObjectPtr& after) {
    for (const k8s::ObjectPtr& object : {before, after})
      if (object && queue_) queue_(std::string(object->uid()), Pace::now);
  });
  templates_.store.on_change([this](const k8s::ObjectPtr& before, const k8s::ObjectPtr& after) {
    for (const k8s::ObjectPtr& object : {before, after})
      if (object && queue_) queue_template(object);
  });
  if (settings_.manages_daemons()) watch_daemons(std::move(executor), client, time);
}

void Caches::watch_daemons(asio::any_io_executor executor, k8s::Client& client, Time& time) {
  auto watch = [&](Informers& informers, k8s::Scope scope, Json (*trim)(const Json&), Pace pace) {
    k8s::Informer& made =
        informers.emplace_back(executor, client, time, real_random(), std::move(scope));
    made.store.keep(trim);
    made.store.add_index("uid", label_uid);
    queue_by_label(made.store, pace);
  };
  for (const std::string& space : settings_.spaces) {
    watch(daemon_sets_, labelled(daemon_sets(), space), trim_daemon_set, Pace::soon);
    watch(cliques_, labelled(cliques(), space), trim_metadata, Pace::soon);
    watch(pods_, labelled(pods(), space), trim_pod, Pace::soon);
  }
  watch(nodes_, labelled(nodes(), ""), trim_node, Pace::soon);
}

void Caches::queue_by_label(k8s::Store& store, Pace pace) {
  store.on_change([this, pace](const k8s::ObjectPtr& before, const k8s::ObjectPtr& after) {
    if (!queue_) return;
    // What is going or gone lets a deletion advance.
    bool leaving = !after || after->deleting();
    for (const k8s::ObjectPtr& object : {before, after})
      if (object)
        for (std::string& uid : label_uid(*object))
          queue_(std::move(uid), leaving ? Pace::now : pace);
  });
}

void Caches::on_event(std::function<void(std::string, Pace)> queue) {
  queue_ = std::move(queue);
}

void Caches::queue_template(const k8s::ObjectPtr& object) {
  for (std::string& uid : label_uid(*object)) queue_(std::move(uid), Pace::now);
  for (const k8s::ObjectPtr& domain : domains_.store.by_index("template", object->key().text()))
    queue_(std::string(domain->uid()), Pace::now);
}

void Caches::start(TaskGroup& tasks) {
  tasks.spawn("watch computedomains", domains_.run());
  tasks.spawn("watch resourceclaimtemplates", templates_.run());
  for (k8s::Informer& each : daemon_sets_) tasks.spawn("watch daemonsets", each.run());
  for (k8s::Informer& each : cliques_) tasks.spawn("watch computedomaincliques", each.run());
  for (k8s::Informer& each : pods_) tasks.spawn("watch pods", each.run());
  for (k8s::Informer& each : nodes_) tasks.spawn("watch nodes", each.run());
}

Async<void> Caches::wait_ready() {
  co_await domains_.store.wait_ready();
  co_await templates_.store.wait_ready();
  for (Informers* informers : {&daemon_sets_, &cliques_, &pods_, &nodes_})
    for (k8s::Informer& each : *informers) co_await each.store.wait_ready();
}

k8s::Store* Caches::store(Kind kind, const std::string& space) {
  auto in_space = [&](Informers& informers) -> k8s::Store* {
    auto at = std::ranges::find(settings_.spaces, space);
    auto position = static_cast<std::size_t>(at - settings_.spaces.begin());
    return position < informers.size() ? &informers[position].store : nullptr;
  };
  switch (kind) {
    case Kind::domain: return &domains_.store;
    case Kind::claim_template: return &templates_.store;
    case Kind::daemon_set: return in_space(daemon_sets_);
    case Kind::clique: return in_space(cliques_);
    case Kind::node: return nodes_.empty() ? nullptr : &nodes_.front().store;
  }
  __builtin_unreachable();
}

k8s::ObjectPtr Caches::domain(const std::string& uid) const {
  auto found = domains_.store.by_index("uid", uid);
  return found.empty() ? nullptr : found.front();
}

std::vector<k8s::ObjectPtr> Caches::templates_of(const DomainUid& uid) const {
  auto found = templates_.store.by_index("uid", uid.value);
  std::erase_if(found, [&](const k8s::ObjectPtr& object) { return !made_for(*object, uid); });
  return found;
}

// By name, so that a stranger that holds the name is seen too.
std::vector<k8s::ObjectPtr> Caches::daemon_sets_of(const DomainUid& uid) const {
  std::vector<k8s::ObjectPtr> found;
  for (std::size_t i = 0; i < daemon_sets_.size(); ++i)
    if (auto object = daemon_sets_[i].store.get({settings_.spaces[i], daemon_object_name(uid)}))
      found.push_back(std::move(object));
  return found;
}

std::vector<k8s::ObjectPtr> Caches::of(const Informers& informers, const std::string& uid) const {
  std::vector<k8s::ObjectPtr> found;
  for (const k8s::Informer& each : informers)
    for (k8s::ObjectPtr& object : each.store.by_index("uid", uid))
      found.push_back(std::move(object));
  return found;
}

Observed Caches::observe(const k8s::ObjectPtr& object) const {
  Domain wanted = read_domain(*object);
  Observed observed;
  observed.domain = object;
  observed.occupant = templates_.store.get({wanted.key.space, wanted.template_name});
  observed.templates = templates_of(wanted.uid);
  observed.daemon_sets = daemon_sets_of(wanted.uid);
  observed.cliques = of(cliques_, wanted.uid.value);
  observed.pods = of(pods_, wanted.uid.value);
  observed.nodes = of(nodes_, wanted.uid.value);
  if (!observed.occupant) return observed;
  for (const std::string& uid : label_uid(*observed.occupant))
    if (uid != wanted.uid.value)
      if (k8s::ObjectPtr owner = domain(uid)) observed.occupant_owner = owner->key().text();
  return observed;
}

Remains Caches::remains(const DomainUid& uid) const {
  return {uid, templates_of(uid), daemon_sets_of(uid), of(nodes_, uid.value)};
}

Inventory Caches::inventory() const {
  auto everything = [](const Informers& informers) {
    std::vector<k8s::ObjectPtr> found;
    for (const k8s::Informer& each : informers)
      for (k8s::ObjectPtr& object : each.store.all()) found.push_back(std::move(object));
    return found;
  };
  Inventory seen{domains_.store.all(), templates_.store.all(), everything(daemon_sets_),
                 everything(nodes_)};
  std::erase_if(seen.templates,
                [](const k8s::ObjectPtr& object) { return label_uid(*object).empty(); });
  return seen;
}

std::vector<const k8s::Informer*> Caches::all() const {
  std::vector<const k8s::Informer*> informers{&domains_, &templates_};
  for (const Informers* list : {&daemon_sets_, &cliques_, &pods_, &nodes_})
    for (const k8s::Informer& each : *list) informers.push_back(&each);
  return informers;
}

std::vector<std::string> Caches::troubles() const {
  std::vector<std::string> causes;
  for (const k8s::Informer* informer : all())
    if (!informer->trouble().empty()) causes.push_back(informer->trouble());
  return causes;
}

bool Caches::ready() const {
  return std::ranges::all_of(all(), [](const k8s::Informer* each) { return each->store.ready(); });
}

}  // namespace nvdra::roles::controller
