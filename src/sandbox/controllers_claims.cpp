// ResourceClaims of pods: made from templates, given back when the pod has ended.
#include "sandbox/controllers_claims.hpp"

#include "sandbox/controllers_list.hpp"
#include "sandbox/store_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace nvdra::sandbox {
namespace {

constexpr std::string_view pod_claim_name = "resource.kubernetes.io/pod-claim-name";

std::string_view status_claim_name(const Json& pod, std::string_view name) {
  for (const Json& status : array_or_empty(pod, "status/resourceClaimStatuses"))
    if (text_or_empty(status, "name") == name) return text_or_empty(status, "resourceClaimName");
  return {};
}

class ClaimMaker final : public Controller {
public:
  using Controller::Controller;

  void changed(const Change& change) override {
    if (is(change, "resourceclaims")) {
      const Item& claim = *subject(change);
      std::string owner(controller_uid(claim.json()));
      if (change.after)
        claims_[owner].insert(claim.key());
      else if (auto known = claims_.find(owner); known != claims_.end())
        if (known->second.erase(claim.key()); known->second.empty()) claims_.erase(known);
    }
    if (is(change, "pods") && change.after) touch(change.after->key());
    if (is(change, "resourceclaimtemplates") && change.after && !change.before)
      for (const ItemPtr& pod : registry_.all(of("pods"), change.after->space())) touch(pod->key());
  }

private:
  void reconcile(const ObjectKey& key) override {
    ItemPtr pod = registry_.find(of("pods"), key);
    if (!pod || pod->deleting() || is_terminal(pod->json())) return;
    JsonArray statuses = array_or_empty(pod->json(), "status/resourceClaimStatuses");
    std::size_t before = statuses.size();
    for (const Json& wanted : array_or_empty(pod->json(), "spec/resourceClaims")) {
      std::string_view from = text_or_empty(wanted, "resourceClaimTemplateName");
      std::string_view name = text_or_empty(wanted, "name");
      if (from.empty() || !status_claim_name(pod->json(), name).empty()) continue;
      ItemPtr claim = existing(*pod, name);
      if (!claim) claim = make(*pod, name, std::string(from));
      if (claim)
        statuses.push_back(JsonObject{{"name", name}, {"resourceClaimName", claim->name()}});
    }
    if (statuses.size() == before) return;
    Json patch = JsonObject{{"status", JsonObject{{"resourceClaimStatuses", std::move(statuses)}}}};
    Result<ItemPtr> told =
        registry_.patch(of("pods"), key, patch, PatchForm::merge, {.subresource = "status"});
    (void)told;  // the pod is gone
  }

  // Made earlier, but the pod's status does not say so.
  ItemPtr existing(const Item& pod, std::string_view name) const {
    auto known = claims_.find(std::string(pod.uid()));
    if (known == claims_.end()) return nullptr;
    for (const ObjectKey& key : known->second) {
      ItemPtr claim = registry_.find(of("resourceclaims"), key);
      const Json* annotations =
          claim ? nvdra::find(claim->json(), "metadata/annotations") : nullptr;
      const Json* named = annotations ? get(*annotations, pod_claim_name) : nullptr;
      if (named && *named == Json(name)) return claim;
    }
    return nullptr;
  }

  ItemPtr make(const Item& pod, std::string_view name, const std::string& template_name) {
    std::string space(pod.space());
    ItemPtr source = registry_.find(of("resourceclaimtemplates"), {space, template_name});
    auto failed = [&](std::string_view why) -> ItemPtr {
      record_event(registry_, pod, "Warning", "FailedResourceClaimCreation",
                   fmt::format("PodResourceClaim {}: {}", name, why), "resource_claim");
      return nullptr;
    };
    if (!source)
      return failed(
          fmt::format("resource claim template \"{}\": resourceclaimtemplate.resource.k8s.io "
                      "\"{}\" not found",
                      template_name, template_name));
    const JsonObject& given = object_or_empty(source->json(), "spec/metadata");
    Json claim =
        JsonObject{{"metadata", given}, {"spec", *nvdra::find(source->json(), "spec/spec")}};
    JsonObject& metadata = metadata_of(claim);
    metadata["generateName"] = fmt::format("{}-{}-", pod.name(), name);
    JsonObject annotations = object_or_empty(claim, "metadata/annotations");
    annotations[pod_claim_name] = name;
    metadata["annotations"] = std::move(annotations);
    metadata["ownerReferences"] = JsonArray{controller_reference(pod)};
    Result<ItemPtr> made = registry_.create(of("resourceclaims"), space, std::move(claim));
    if (!made) return failed(made.error().doing);
    return *made;
  }

  std::map<std::string, std::set<ObjectKey>> claims_;  // controller's uid → claims
};

class ClaimReleaser final : public Controller {
public:
  using Controller::Controller;

  void changed(const Change& change) override {
    if (is(change, "resourceclaims") && change.after) touch(change.after->key());
    if (!is(change, "pods")) return;
    const Item& pod = *subject(change);
    if (change.after && !is_terminal(pod.json())) return;
    for (const std::string& claim : claims_of(pod.json())) touch({std::string(pod.space()), claim});
  }

private:
  bool uses(const Item& claim, const Json& consumer) const {
    if (text_or_empty(consumer, "resource") != "pods") return true;
    ItemPtr pod = registry_.find(
        of("pods"), {std::string(claim.space()), std::string(text_or_empty(consumer, "name"))});
    return pod && pod->uid() == text_or_empty(consumer, "uid") && !is_terminal(pod->json());
  }

  void reconcile(const ObjectKey& key) override {
    ItemPtr claim = registry_.find(of("resourceclaims"), key);
    if (!claim) return;
    const JsonArray& reserved = array_or_empty(claim->json(), "status/reservedFor");
    JsonArray users;
    for (const Json& consumer : reserved)
      if (uses(*claim, consumer)) users.push_back(consumer);
    bool allocated = nvdra::find(claim->json(), "status/allocation");
    bool release = users.empty() && (!reserved.empty() || claim->deleting());
    if (users.size() == reserved.size() && !release) return end_with_pod(claim);

    Json object = claim->json();
    JsonObject& status = object.get_object()["status"].emplace_object();
    if (!users.empty()) {
      status = object_or_empty(claim->json(), "status");
      status["reservedFor"] = std::move(users);
    }
    if (users.size() != reserved.size() || allocated)
      put_status(registry_, of("resourceclaims"), claim, std::move(object));
    if (release) unprotect(key);
    if (ItemPtr now = registry_.find(of("resourceclaims"), key)) end_with_pod(now);
  }

  // The claim that was made for a pod goes when the pod has ended, even if the pod's object stays.
  void end_with_pod(const ItemPtr& claim) {
    std::string_view uid = controller_uid(claim->json());
    if (uid.empty() || claim->deleting()) return;
    for (const Json& owner : array_or_empty(claim->json(), "metadata/ownerReferences")) {
      if (text_or_empty(owner, "kind") != "Pod") continue;
      ItemPtr pod = registry_.find(
          of("pods"), {std::string(claim->space()), std::string(text_or_empty(owner, "name"))});
      if (!pod || pod->uid() != uid || !is_terminal(pod->json())) continue;
      Result<Removal> removal = registry_.remove(of("resourceclaims"), claim->key());
      (void)removal;  // gone already
      return;
    }
  }

  void unprotect(const ObjectKey& key) {
    Json patch = JsonObject{{"metadata", JsonObject{{"$deleteFromPrimitiveList/finalizers",
                                                     JsonArray{claim_protection}}}}};
    Result<ItemPtr> freed = registry_.patch(of("resourceclaims"), key, patch, PatchForm::strategic);
    (void)freed;  // gone already
  }
};

}  // namespace

std::vector<std::string> claims_of(const Json& pod) {
  std::vector<std::string> names;
  for (const Json& wanted : array_or_empty(pod, "spec/resourceClaims")) {
    std::string_view direct = text_or_empty(wanted, "resourceClaimName");
    names.emplace_back(direct.empty() ? status_claim_name(pod, text_or_empty(wanted, "name"))
                                      : direct);
  }
  return names;
}

std::unique_ptr<Controller> make_claim_maker(Registry& registry) {
  return std::make_unique<ClaimMaker>(registry);
}
std::unique_ptr<Controller> make_claim_releaser(Registry& registry) {
  return std::make_unique<ClaimReleaser>(registry);
}

}  // namespace nvdra::sandbox
