#include "roles/controller/caches.hpp"

#include "roles/common/names.hpp"

#include <algorithm>
#include <set>

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

}  // namespace

Caches::Caches(asio::any_io_executor executor, k8s::Client& client, Time& time, Settings settings)
    : domains_(executor, client, time, real_random(), {compute_domains()}),
      templates_(executor, client, time, real_random(),
                 {claim_templates(settings.resource_version)}) {
  domains_.store.add_index("uid", own_uid);
  domains_.store.add_index("template", wanted_template);
  templates_.store.add_index("uid", label_uid);
  domains_.store.on_change([this](const k8s::ObjectPtr& before, const k8s::ObjectPtr& after) {
    for (const k8s::ObjectPtr& object : {before, after})
      if (object && queue_) queue_(std::string(object->uid()));
  });
  templates_.store.on_change([this](const k8s::ObjectPtr& before, const k8s::ObjectPtr& after) {
    for (const k8s::ObjectPtr& object : {before, after})
      if (object && queue_) queue_template(object);
  });
}

void Caches::on_event(std::function<void(std::string)> queue) {
  queue_ = std::move(queue);
}

void Caches::queue_template(const k8s::ObjectPtr& object) {
  for (std::string& uid : label_uid(*object)) queue_(std::move(uid));
  for (const k8s::ObjectPtr& domain : domains_.store.by_index("template", object->key().text()))
    queue_(std::string(domain->uid()));
}

void Caches::start(TaskGroup& tasks) {
  tasks.spawn("watch computedomains", domains_.run());
  tasks.spawn("watch resourceclaimtemplates", templates_.run());
}

Async<void> Caches::wait_ready() {
  co_await domains_.store.wait_ready();
  co_await templates_.store.wait_ready();
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

Observed Caches::observe(const k8s::ObjectPtr& object) const {
  Domain wanted = read_domain(*object);
  Observed observed;
  observed.domain = object;
  observed.occupant = templates_.store.get({wanted.key.space, wanted.template_name});
  observed.templates = templates_of(wanted.uid);
  if (!observed.occupant) return observed;
  for (const std::string& uid : label_uid(*observed.occupant))
    if (uid != wanted.uid.value)
      if (k8s::ObjectPtr owner = domain(uid)) observed.occupant_owner = owner->key().text();
  return observed;
}

std::vector<std::string> Caches::unknown_uids() const {
  std::set<std::string> unknown;
  for (const k8s::ObjectPtr& object : templates_.store.all())
    for (const std::string& uid : label_uid(*object))
      if (!domain(uid)) unknown.insert(uid);
  return {unknown.begin(), unknown.end()};
}

std::vector<std::string> Caches::troubles() const {
  std::vector<std::string> causes;
  for (const k8s::Informer* informer : {&domains_, &templates_})
    if (!informer->trouble().empty()) causes.push_back(informer->trouble());
  return causes;
}

bool Caches::ready() const {
  return domains_.store.ready() && templates_.store.ready();
}

}  // namespace nvdra::roles::controller
