// A registry with its controllers, nodes and devices, for tests.
#pragma once

#include "catch.hpp"
#include "sandbox/controllers.hpp"
#include "sandbox/controllers_allocator.hpp"
#include "sandbox/controllers_placement.hpp"
#include "world.hpp"

#include <set>

namespace nvdra::sandbox::controllers_test {

inline const std::string driver = "compute-domain.nvidia.com";

struct Cluster : World {
  Controllers controllers{loop.get_executor(), registry};

  Cluster() {
    device_class("channel",
                 "device.driver == 'D' && device.attributes['D'].type == 'channel' && "
                 "device.attributes['D'].id == 0");
    device_class("daemon", "device.driver == 'D' && device.attributes['D'].type == 'daemon'");
  }
  void device_class(const std::string& name, std::string expression) {
    for (std::size_t at; (at = expression.find("'D'")) != std::string::npos;)
      expression.replace(at, 3, "'" + driver + "'");
    Json object = json("{'metadata': {'name': '" + name + "'}}");
    object.get_object()["spec"] = JsonObject{
        {"selectors", JsonArray{JsonObject{{"cel", JsonObject{{"expression", expression}}}}}}};
    REQUIRE(registry.create(of("deviceclasses"), "", std::move(object)));
  }
  // A node with one channel and one daemon device.
  void node(const std::string& name, const std::string& labels = "") {
    make(
        "nodes", "",
        "{'metadata': {'name': '" + name + "', 'labels': {'name': '" + name + "'" + labels + "}}}");
    make("resourceslices", "",
         "{'metadata': {'name': 's-" + name + "'}, 'spec': {'driver': '" + driver +
             "', 'nodeName': '" + name + "', 'pool': {'name': '" + name +
             "', 'generation': 1, 'resourceSliceCount': 1}, 'devices': ["
             "{'name': 'channel-0', 'attributes': {'type': {'string': 'channel'}, 'id': {'int': "
             "0}}},"
             "{'name': 'daemon-0', 'attributes': {'type': {'string': 'daemon'}, 'id': {'int': "
             "0}}}]}}");
  }
  void claim_template(const std::string& name, const std::string& device_class_name = "channel") {
    make("resourceclaimtemplates", "default",
         "{'metadata': {'name': '" + name +
             "'}, 'spec': {'spec': {'devices': {'requests': [{'name': 'r', "
             "'exactly': {'deviceClassName': '" +
             device_class_name +
             "'}}], 'config': [{'requests': ['r'], "
             "'opaque': {'driver': '" +
             driver + "', 'parameters': {'domainID': 'x'}}}]}}}}");
  }
  ItemPtr pod(const std::string& name, const std::string& more = "") {
    return make("pods", "default",
                "{'metadata': {'name': '" + name +
                    "'}, 'spec': {'containers': [{'name': 'c', 'image': "
                    "'i'}]" +
                    more + "}}");
  }
  static std::string claiming(const std::string& claim_template) {
    return ", 'resourceClaims': [{'name': 'ch', 'resourceClaimTemplateName': '" + claim_template +
           "'}]";
  }
  Json get(std::string_view resource, const std::string& name,
           const std::string& space = "default") {
    ItemPtr item = registry.find(of(resource), {of(resource).type.namespaced ? space : "", name});
    return item ? item->json() : Json();
  }
  std::string node_of(const std::string& name) {
    return std::string(text_or_empty(get("pods", name), "spec/nodeName"));
  }
  void set_phase(const std::string& name, const std::string& phase) {
    REQUIRE(registry.patch(of("pods"), {"default", name},
                           json("{'status': {'phase': '" + phase + "'}}"), PatchForm::merge,
                           {.subresource = "status"}));
  }
  void confirm_end(const std::string& name) {
    REQUIRE(registry.remove(of("pods"), {"default", name}, {.grace = 0}));
  }
  std::vector<std::string> reasons() {
    std::vector<std::string> list;
    for (const ItemPtr& event : registry.all(of("events")))
      list.emplace_back(text_or_empty(event->json(), "reason"));
    return list;
  }
};

}  // namespace nvdra::sandbox::controllers_test
