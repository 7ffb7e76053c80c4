// The scheduler: a node for every pod, and devices on it for the pod's claims.
#include "sandbox/controllers_allocator.hpp"
#include "sandbox/controllers_claims.hpp"
#include "sandbox/controllers_list.hpp"
#include "sandbox/controllers_placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace nvdra::sandbox {
namespace {

constexpr std::string_view component = "default-scheduler";

// A node for a pod, with the allocation of each claim that has none yet.
struct Plan {
  std::string node;
  std::map<std::string, Json> allocations;  // claim → status.allocation
};

class Scheduler final : public Controller {
public:
  using Controller::Controller;

  void changed(const Change& change) override {
    if (change.resource->custom) return;
    slices_.changed(change);
    if (is(change, "pods")) return pod_changed(change);
    if (is(change, "resourceclaims")) return claim_changed(change);
    if (placement_changed(change) || is(change, "resourceslices") || is(change, "deviceclasses"))
      room_ = true;
  }

  bool work() override {
    if (std::exchange(room_, false))
      for (const ObjectKey& pod : pending_) touch(pod);
    return Controller::work();
  }

private:
  static bool is_pending(const Json& pod) {
    return text_or_empty(pod, "spec/nodeName").empty() && !is_terminal(pod) &&
           !find(pod, "metadata/deletionTimestamp") &&
           array_or_empty(pod, "spec/schedulingGates").empty() &&
           text_or_empty(pod, "spec/schedulerName") == component;
  }

  void pod_changed(const Change& change) {
    const Item& pod = *subject(change);
    if (change.before) count_pod(*change.before, -1);
    if (change.after) count_pod(*change.after, 1);
    if (change.after && is_pending(pod.json())) {
      pending_.insert(pod.key());
      touch(pod.key());
    } else {
      pending_.erase(pod.key());
    }
  }
  int pods_of(std::string_view node) const {
    auto known = pods_of_node_.find(node);
    return known == pods_of_node_.end() ? 0 : known->second;
  }
  void count_pod(const Item& pod, int by) {
    std::string_view node = text_or_empty(pod.json(), "spec/nodeName");
    if (node.empty() || is_terminal(pod.json())) return;
    pods_of_node_[std::string(node)] += by;
  }
  // A claim that is new may be what its pod waits for; one that lost its devices makes room.
  void claim_changed(const Change& change) {
    std::size_t before = 0, after = 0;
    if (change.before)
      for (const DeviceId& device : devices_of(change.before->json()))
        before += in_use_.erase(device);
    if (change.after)
      for (DeviceId& device : devices_of(change.after->json()))
        after += in_use_.insert(std::move(device)).second;
    if (after < before) room_ = true;
    if (change.before || !change.after) return;
    const JsonArray& owners = array_or_empty(change.after->json(), "metadata/ownerReferences");
    if (owners.empty()) room_ = true;
    for (const Json& owner : owners)
      touch({std::string(change.after->space()), std::string(text_or_empty(owner, "name"))});
  }

  void reconcile(const ObjectKey& key) override {
    ItemPtr pod = registry_.find(of("pods"), key);
    if (!pod || !is_pending(pod->json())) return;
    std::optional<std::vector<ItemPtr>> claims = ready_claims(*pod);
    if (!claims) return;
    std::map<std::string, int> obstacles;
    std::optional<Plan> plan = best_plan(*pod, *claims, obstacles);
    if (!plan) return unschedulable(pod, obstacles);
    for (const ItemPtr& claim : *claims) reserve(*claim, *pod, *plan);
    if (!registry_.bind(key, plan->node)) return;
    record_event(registry_, *pod, "Normal", "Scheduled",
                 fmt::format("Successfully assigned {}/{} to {}", key.space, key.name, plan->node),
                 component);
  }

  // nullopt while a claim is not there yet: its creation comes back to us.
  std::optional<std::vector<ItemPtr>> ready_claims(const Item& pod) const {
    std::vector<ItemPtr> claims;
    for (const std::string& name : claims_of(pod.json())) {
      ItemPtr claim = name.empty()
                          ? nullptr
                          : registry_.find(of("resourceclaims"), {std::string(pod.space()), name});
      if (!claim || claim->deleting()) return std::nullopt;
      claims.push_back(std::move(claim));
    }
    return claims;
  }

  // The node with the fewest pods among those that fit.
  std::optional<Plan> best_plan(const Item& pod, const std::vector<ItemPtr>& claims,
                                std::map<std::string, int>& obstacles) {
    std::map<int, std::vector<ItemPtr>> fitting;  // number of pods → nodes, by name
    const Json& spec = *nvdra::find(pod.json(), "spec");
    std::vector<ItemPtr> nodes = candidates(spec, obstacles);
    for (const ItemPtr& node : nodes) {
      Fit fits = fit(spec, node->json());
      if (fits == Fit::fits)
        fitting[pods_of(node->name())].push_back(node);
      else
        ++obstacles[std::string(fit_text(fits))];
    }
    for (const auto& [pods, emptiest] : fitting) {
      for (const ItemPtr& node : emptiest) {
        Result<Plan> plan = plan_for(*node, claims);
        if (plan) return *std::move(plan);
        ++obstacles[plan.error().text()];
      }
    }
    return std::nullopt;
  }

  // The nodes that are worth a look; the others are counted as obstacles.
  std::vector<ItemPtr> candidates(const Json& spec, std::map<std::string, int>& obstacles) const {
    std::vector<ItemPtr> nodes = registry_.all(of("nodes"));
    std::erase_if(nodes, [](const ItemPtr& node) { return node->deleting(); });
    std::string_view pinned = pinned_node(spec);
    if (pinned.empty()) return nodes;
    std::size_t all = nodes.size();
    std::erase_if(nodes, [&](const ItemPtr& node) { return node->name() != pinned; });
    if (nodes.size() < all)
      obstacles[std::string(fit_text(Fit::wrong_node))] += static_cast<int>(all - nodes.size());
    return nodes;
  }

  Result<Plan> plan_for(const Item& node, const std::vector<ItemPtr>& claims) {
    Plan plan{std::string(node.name()), {}};
    DevicesInUse in_use = claims.size() < 2 ? DevicesInUse{} : in_use_;
    for (const ItemPtr& claim : claims) {
      const Json* allocation = nvdra::find(claim->json(), "status/allocation");
      if (allocation) {
        const Json* selector = get(*allocation, "nodeSelector");
        if (selector && !node_selector_matches(*selector, node.json()))
          return refuse("resourceclaim not available on the node");
        continue;
      }
      Result<Json> made = allocate(registry_, slices_, claim->json(), node.json(),
                                   claims.size() < 2 ? in_use_ : in_use);
      if (!made) return std::move(made).failure();
      Json holder = JsonObject{{"status", JsonObject{{"allocation", *made}}}};
      for (DeviceId& device : devices_of(holder)) in_use.insert(std::move(device));
      plan.allocations[std::string(claim->name())] = *std::move(made);
    }
    return plan;
  }

  // Protects, allocates and reserves the claim.
  void reserve(const Item& claim, const Item& pod, const Plan& plan) {
    Json protect =
        JsonObject{{"metadata", JsonObject{{"finalizers", JsonArray{Json(claim_protection)}}}}};
    Result<ItemPtr> kept =
        registry_.patch(of("resourceclaims"), claim.key(), protect, PatchForm::strategic);
    if (!kept) return;
    Json object = (*kept)->json();
    Json& status = object.get_object()["status"];
    if (!status.is_object()) status = JsonObject{};
    auto allocation = plan.allocations.find(std::string(claim.name()));
    if (allocation != plan.allocations.end())
      status.get_object()["allocation"] = allocation->second;
    Json& reserved = status.get_object()["reservedFor"];
    if (!reserved.is_array()) reserved = JsonArray{};
    bool there = std::ranges::any_of(reserved.get_array(), [&](const Json& consumer) {
      return text_or_empty(consumer, "uid") == pod.uid();
    });
    if (!there)
      reserved.get_array().push_back(
          JsonObject{{"resource", "pods"}, {"name", pod.name()}, {"uid", pod.uid()}});
    put_status(registry_, of("resourceclaims"), *kept, std::move(object));
  }

  void unschedulable(const ItemPtr& pod, const std::map<std::string, int>& obstacles) {
    std::size_t nodes = registry_.all(of("nodes")).size();
    std::string message = nodes == 0 ? "no nodes available to schedule pods"
                                     : fmt::format("0/{} nodes are available: ", nodes);
    std::size_t listed = 0;
    for (const auto& [text, count] : obstacles)
      message += fmt::format("{}{} {}", listed++ ? ", " : "", count, text);
    if (nodes > 0) message += ".";
    for (const Json& condition : array_or_empty(pod->json(), "status/conditions"))
      if (text_or_empty(condition, "type") == "PodScheduled" &&
          text_or_empty(condition, "message") == message)
        return;  // said before
    Json object = pod->json();
    set_condition(object,
                  {{"type", "PodScheduled"},
                   {"status", "False"},
                   {"reason", "Unschedulable"},
                   {"message", message}},
                  rfc3339(registry_.time().wall()));
    put_status(registry_, of("pods"), pod, std::move(object));
    record_event(registry_, *pod, "Warning", "FailedScheduling", message, component);
  }

  std::set<ObjectKey> pending_;
  std::map<std::string, int, std::less<>> pods_of_node_;
  DevicesInUse in_use_;
  SliceIndex slices_;
  bool room_ = false;  // something changed that may let any pending pod fit
};

}  // namespace

std::unique_ptr<Controller> make_scheduler(Registry& registry) {
  return std::make_unique<Scheduler>(registry);
}

}  // namespace nvdra::sandbox
