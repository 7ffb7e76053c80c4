// DaemonSets: one pod on every node that the template fits.
#include "sandbox/controllers_list.hpp"
#include "sandbox/controllers_placement.hpp"
#include "sandbox/controllers_pods.hpp"

#include <algorithm>
#include <map>

namespace nvdra::sandbox {
namespace {

// What a pod's spec gets so that it can only run on `node`.
void pin(JsonObject& spec, std::string_view node) {
  Json field =
      JsonObject{{"key", "metadata.name"}, {"operator", "In"}, {"values", JsonArray{Json(node)}}};
  JsonObject affinity = object_or_empty(Json(spec), "affinity");
  JsonObject node_affinity = object_or_empty(Json(affinity), "nodeAffinity");
  JsonArray terms = array_or_empty(
      Json(node_affinity), "requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
  if (terms.empty()) terms.push_back(JsonObject{});
  for (Json& term : terms) term.get_object()["matchFields"] = JsonArray{field};
  node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] =
      JsonObject{{"nodeSelectorTerms", std::move(terms)}};
  affinity["nodeAffinity"] = std::move(node_affinity);
  spec["affinity"] = std::move(affinity);
}

// The node that a daemon pod is on, or is pinned to.
std::string node_of(const Json& pod) {
  std::string_view assigned = text_or_empty(pod, "spec/nodeName");
  if (!assigned.empty()) return std::string(assigned);
  for (const Json& term :
       array_or_empty(pod,
                      "spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
                      "nodeSelectorTerms"))
    for (const Json& field : array_or_empty(term, "matchFields"))
      for (const Json& value : array_or_empty(field, "values"))
        return std::string(value.get_string());
  return {};
}

using Daemons = std::map<std::string, std::vector<ItemPtr>, std::less<>>;  // node → its pods

class DaemonSetController final : public Controller {
public:
  using Controller::Controller;

  void changed(const Change& change) override {
    if (is(change, "daemonsets") && change.after) touch(change.after->key());
    if (placement_changed(change))
      for (const ItemPtr& set : registry_.all(of("daemonsets")))
        if (concerns(change, *set)) touch(set->key());
    if (!is(change, "pods")) return;
    std::string owner(controller_uid(subject(change)->json()));
    if (change.after && !owner.empty())
      pods_[owner].insert(change.after->key());
    else if (auto known = pods_.find(owner); !change.after && known != pods_.end())
      if (known->second.erase(change.before->key()); known->second.empty()) pods_.erase(known);
    touch_owner(*subject(change));
  }

private:
  // A pod's spec as the set would make it, before it is pinned to a node.
  static Json pod_spec(const Item& set) {
    JsonObject spec = object_or_empty(set.json(), "spec/template/spec");
    JsonArray tolerations = array_or_empty(set.json(), "spec/template/spec/tolerations");
    for (Json& toleration : daemon_tolerations()) tolerations.push_back(std::move(toleration));
    spec["tolerations"] = std::move(tolerations);
    return spec;
  }
  // The node comes or goes for this set.
  static bool concerns(const Change& change, const Item& set) {
    Json spec = pod_spec(set);
    bool before = change.before && fit(spec, change.before->json()) == Fit::fits;
    bool after = change.after && fit(spec, change.after->json()) == Fit::fits;
    return before != after;
  }
  void touch_owner(const Item& pod) {
    for (const Json& owner : array_or_empty(pod.json(), "metadata/ownerReferences"))
      if (text_or_empty(owner, "kind") == "DaemonSet")
        touch({std::string(pod.space()), std::string(text_or_empty(owner, "name"))});
  }

  struct Census {
    std::int64_t desired = 0, current = 0, misplaced = 0, ready = 0, updated = 0;
  };

  void reconcile(const ObjectKey& key) override {
    ItemPtr set = registry_.find(of("daemonsets"), key);
    if (!set || set->deleting()) return;
    std::string hash = template_hash(set->json());
    Daemons pods;
    for (const ItemPtr& pod : pods_of(*set))
      if (!replace_ended(pod)) pods[node_of(pod->json())].push_back(pod);

    Json spec = pod_spec(*set);
    Census census;
    for (const ItemPtr& node : registry_.all(of("nodes"))) {
      bool wanted = fit(spec, node->json()) == Fit::fits;
      auto there = pods.find(node->name());
      if (there == pods.end()) {
        if (!wanted) continue;
        ++census.desired;
        if (make(*set, spec, std::string(node->name()), hash)) ++census.current, ++census.updated;
        continue;
      }
      count(there->second, wanted, hash, census);
      if (!wanted)
        for (const ItemPtr& pod : there->second) end(*set, pod);
      for (std::size_t i = 1; wanted && i < there->second.size(); ++i) end(*set, there->second[i]);
    }
    replace_old(*set, pods, hash, census);
    report(set, census);
  }

  std::vector<ItemPtr> pods_of(const Item& set) const {
    std::vector<ItemPtr> pods;
    auto known = pods_.find(std::string(set.uid()));
    if (known == pods_.end()) return pods;
    for (const ObjectKey& key : known->second)
      if (ItemPtr pod = registry_.find(of("pods"), key)) pods.push_back(std::move(pod));
    return pods;
  }

  // A pod that has ended is removed, and counts as not there: a new one takes its place.
  bool replace_ended(const ItemPtr& pod) {
    if (!is_terminal(pod->json())) return false;
    if (!pod->deleting()) remove_pod(registry_, *pod);
    return true;
  }

  static void count(const std::vector<ItemPtr>& pods, bool wanted, const std::string& hash,
                    Census& census) {
    const ItemPtr& pod = pods.front();
    if (!wanted) {
      ++census.misplaced;
      return;
    }
    ++census.desired;
    ++census.current;
    if (is_ready(pod->json()) && !pod->deleting()) ++census.ready;
    if (has_hash(pod->json(), hash)) ++census.updated;
  }

  bool make(const Item& set, const Json& spec, const std::string& node, const std::string& hash) {
    Json pinned = spec;
    pin(pinned.get_object(), node);
    return make_pod(registry_, set, std::move(pinned), hash, "daemonset-controller");
  }
  void end(const Item& set, const ItemPtr& pod) {
    if (pod->deleting()) return;
    record_event(registry_, set, "Normal", "SuccessfulDelete",
                 "Deleted pod: " + std::string(pod->name()), "daemonset-controller");
    remove_pod(registry_, *pod);
  }

  // RollingUpdate: pods of an older template go, while few enough nodes are without a ready one.
  void replace_old(const Item& set, const Daemons& pods, const std::string& hash,
                   const Census& census) {
    if (text_or_empty(set.json(), "spec/updateStrategy/type") != "RollingUpdate") return;
    std::int64_t allowed =
        int_or(set.json(), "spec/updateStrategy/rollingUpdate/maxUnavailable", 1);
    std::int64_t unavailable = census.desired - census.ready;
    for (const auto& [node, list] : pods) {
      const ItemPtr& pod = list.front();
      if (has_hash(pod->json(), hash) || pod->deleting()) continue;
      bool ready = is_ready(pod->json());
      if (ready && unavailable >= allowed) continue;
      if (ready) ++unavailable;
      end(set, pod);
    }
  }

  void report(const ItemPtr& set, const Census& census) {
    ItemPtr now = registry_.find(of("daemonsets"), set->key());
    if (!now) return;
    Json object = now->json();
    Json& status = object.get_object()["status"];
    if (!status.is_object()) status = JsonObject{};
    JsonObject& numbers = status.get_object();
    numbers["currentNumberScheduled"] = census.current;
    numbers["numberMisscheduled"] = census.misplaced;
    numbers["desiredNumberScheduled"] = census.desired;
    numbers["numberReady"] = census.ready;
    numbers["observedGeneration"] = int_or(object, "metadata/generation", 1);
    numbers["updatedNumberScheduled"] = census.updated;
    numbers["numberAvailable"] = census.ready;
    numbers["numberUnavailable"] = census.desired - census.ready;
    for (std::string_view zero : {"updatedNumberScheduled", "numberAvailable", "numberUnavailable"})
      if (numbers[zero] == Json(0)) numbers.erase(zero);
    put_status(registry_, of("daemonsets"), now, std::move(object));
  }

  std::map<std::string, std::set<ObjectKey>> pods_;  // controller's uid → pods
};

}  // namespace

std::unique_ptr<Controller> make_daemon_set_controller(Registry& registry) {
  return std::make_unique<DaemonSetController>(registry);
}

}  // namespace nvdra::sandbox
