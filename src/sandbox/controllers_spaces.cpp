// Namespaces: what every one has, and how one ends. CRDs end the same way.
#include "sandbox/controllers_list.hpp"

#include <deque>

namespace nvdra::sandbox {
namespace {

constexpr std::string_view crd_cleanup = "customresourcecleanup.apiextensions.k8s.io";

// Keys: {"", namespace} and {"crd", CRD name}.
class SpaceController final : public Controller {
public:
  using Controller::Controller;

  void changed(const Change& change) override {
    const Item& item = *subject(change);
    if (is(change, "namespaces")) touch({"", std::string(item.name())});
    if (is(change, "customresourcedefinitions")) touch({"crd", std::string(item.name())});
    if (change.after) return;
    // Something went: perhaps the last thing that a namespace or a CRD waits for.
    if (!item.space().empty()) touch({"", std::string(item.space())});
    if (change.resource->custom) touch({"crd", change.resource->qualified()});
  }

private:
  void reconcile(const ObjectKey& key) override {
    if (key.space == "crd") return end_definition(key.name);
    ItemPtr space = registry_.find(of("namespaces"), key);
    if (!space) return;
    if (space->deleting()) return end_space(key.name);
    ensure("serviceaccounts", key.name, "default", JsonObject{});
    ensure("configmaps", key.name, "kube-root-ca.crt", JsonObject{{"data", JsonObject{}}});
  }

  void ensure(std::string_view plural, const std::string& space, const char* name, Json object) {
    if (registry_.find(of(plural), {space, name})) return;
    metadata_of(object)["name"] = name;
    Result<ItemPtr> made = registry_.create(of(plural), space, std::move(object));
    (void)made;  // the namespace is going
  }

  // Asks for the deletion of everything; true when nothing is left.
  bool empty(const Resource& resource, std::string_view space) {
    for (const ItemPtr& item : registry_.all(resource, space)) {
      if (item->deleting()) continue;
      Result<Removal> removal = registry_.remove(resource, item->key());
      (void)removal;  // gone already
    }
    return registry_.all(resource, space).empty();
  }

  void end_space(const std::string& name) {
    bool all_gone = true;
    for (const Resource* resource : registry_.catalog().all())
      if (resource->type.namespaced && !empty(*resource, name)) all_gone = false;
    if (!all_gone) return;
    Result<void> ended = registry_.finalize_space(name);
    (void)ended;  // gone already
  }

  void end_definition(const std::string& name) {
    ItemPtr definition = registry_.find(of("customresourcedefinitions"), {"", name});
    if (!definition || !definition->deleting()) return;
    const Resource* resource =
        registry_.catalog().find(text_or_empty(definition->json(), "spec/group"), "",
                                 text_or_empty(definition->json(), "spec/names/plural"));
    if (resource && !empty(*resource, {})) return;
    Json patch = JsonObject{
        {"metadata", JsonObject{{"$deleteFromPrimitiveList/finalizers", JsonArray{crd_cleanup}}}}};
    Result<ItemPtr> freed =
        registry_.patch(of("customresourcedefinitions"), {"", name}, patch, PatchForm::strategic);
    (void)freed;  // gone already
  }
};

// Pods of nodes that were removed have nobody who could confirm their end.
class PodCollector final : public Controller {
public:
  using Controller::Controller;

  void changed(const Change& change) override {
    if (is(change, "nodes") && !change.after) touch({"", std::string(change.before->name())});
  }

private:
  void reconcile(const ObjectKey& node) override {
    if (registry_.find(of("nodes"), node)) return;
    for (const ItemPtr& pod : registry_.all(of("pods"))) {
      if (text_or_empty(pod->json(), "spec/nodeName") != node.name) continue;
      Result<Removal> removal = registry_.remove(of("pods"), pod->key(), {.grace = 0});
      (void)removal;  // gone already
    }
  }
};

class EventJanitor final : public Controller {
public:
  using Controller::Controller;
  static constexpr std::size_t kept = 4096;

  void changed(const Change& change) override {
    if (!is(change, "events") || change.before || !change.after) return;
    order_.push_back(change.after->key());
    if (order_.size() <= kept) return;
    touch(order_.front());
    order_.pop_front();
  }

private:
  void reconcile(const ObjectKey& key) override {
    Result<Removal> removal = registry_.remove(of("events"), key);
    (void)removal;  // somebody else removed it
  }
  std::deque<ObjectKey> order_;
};

}  // namespace

std::unique_ptr<Controller> make_space_controller(Registry& registry) {
  return std::make_unique<SpaceController>(registry);
}
std::unique_ptr<Controller> make_pod_collector(Registry& registry) {
  return std::make_unique<PodCollector>(registry);
}
std::unique_ptr<Controller> make_event_janitor(Registry& registry) {
  return std::make_unique<EventJanitor>(registry);
}

}  // namespace nvdra::sandbox
