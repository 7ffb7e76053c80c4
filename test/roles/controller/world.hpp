// Objects as the API server would show them, for tests of the controller's decisions.
#pragma once

#include "roles/common/names.hpp"
#include "roles/controller/plan.hpp"

#include <memory>
#include <string>

namespace nvdra::roles::controller::test {

inline const std::string uid = "0f8fad5b-d9cb-469f-a165-70867728950e";
inline const std::string other_uid = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";

inline k8s::ObjectPtr object(Json json) {
  return std::make_shared<const k8s::Object>(std::move(json));
}

struct DomainShape {
  std::string name = "my-compute-domain";
  std::string uid = test::uid;
  std::string template_name = "imex-channel-0";
  std::string mode = "Single";
  bool with_finalizer = true;
  bool deleting = false;
  int num_nodes = 0;
};

inline k8s::ObjectPtr domain(DomainShape shape = {}) {
  JsonObject metadata{{"namespace", "default"},
                      {"name", shape.name},
                      {"uid", shape.uid},
                      {"resourceVersion", "10"},
                      {"generation", 1}};
  if (shape.with_finalizer) metadata["finalizers"] = JsonArray{std::string(finalizer)};
  if (shape.deleting) metadata["deletionTimestamp"] = "2026-01-02T03:04:05Z";
  return object({{"apiVersion", "resource.nvidia.com/v1beta1"},
                 {"kind", "ComputeDomain"},
                 {"metadata", metadata},
                 {"spec",
                  {{"numNodes", shape.num_nodes},
                   {"channel",
                    {{"resourceClaimTemplate", {{"name", shape.template_name}}},
                     {"allocationMode", shape.mode}}}}}});
}

// The template as the server stores what the controller made: with defaults that it filled in.
inline k8s::ObjectPtr template_of(const k8s::ObjectPtr& domain, ImexMode mode,
                                  std::string own = "t-1") {
  Json json = workload_template(read_domain(*domain), mode, "v1");
  json.at("metadata").get_object()["uid"] = own;
  json.at("metadata").get_object()["resourceVersion"] = "11";
  JsonObject& exactly =
      json.at("spec").at("spec").at("devices").at("requests").at(0).at("exactly").get_object();
  exactly["allocationMode"] = "ExactCount";
  exactly["count"] = 1;
  return object(std::move(json));
}

inline k8s::ObjectPtr changed(const k8s::ObjectPtr& original, const Json& patch) {
  Json json = original->json();
  merge_patch(json, patch);
  return object(std::move(json));
}

// "create ResourceClaimTemplate default/imex-channel-0; release ComputeDomain default/x"
inline std::string told(const std::vector<Action>& actions) {
  struct Teller {
    std::string operator()(const Create& a) const {
      return "create " + k8s::Object(a.object).key().text();
    }
    std::string operator()(const Delete& a) const { return "delete " + a.object->key().text(); }
    std::string operator()(const Release& a) const { return "release " + a.object->key().text(); }
    std::string operator()(const Mark& a) const { return "mark " + a.object->key().text(); }
    std::string operator()(const Amend& a) const { return "amend " + a.object->key().text(); }
    std::string operator()(const Unlabel& a) const {
      std::string names;
      for (const auto& node : a.nodes) names += " " + node->key().text();
      return "unlabel" + names;
    }
  };
  std::string text;
  for (const Action& action : actions)
    text += (text.empty() ? "" : "; ") + std::visit(Teller{}, action);
  return text;
}

}  // namespace nvdra::roles::controller::test
