// What to do so that the API server holds exactly our ResourceSlices (node-side.md 5). Pure.
//   * One pool, named after the node. A slice holds at most 128 devices; the devices are sorted, so
//     the same set always gives the same slices. No devices: one slice without devices.
//   * A slice is found again by the number at the start of its name. Slices of an older generation,
//     without such a number, beyond the last one, twice the same or of another Node object are
//     obsolete. Slices that are being deleted count as gone.
//   * At most one slice changes and none is new: it is changed in place. Otherwise all get the
//     highest generation seen + 1, so that no scheduler takes a half-written pool for a whole one.
#pragma once

#include "base/ids.hpp"
#include "k8s/object.hpp"

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace nvdra::dra {

using Attribute = std::variant<std::string, std::int64_t, bool>;
struct SliceDevice {
  std::string name;
  std::map<std::string, Attribute> attributes;
};

// Who publishes.
struct SliceOwner {
  std::string driver;
  NodeName node;
  std::string node_uid;  // the Node owns the slices: they go when it goes
  std::string version;   // of resource.k8s.io: v1, v1beta2 or v1beta1
};

k8s::ResourceType slice_type(const std::string& version);

// The devices of each slice, as they stand in `spec.devices` of that version.
std::vector<JsonArray> slice_devices(std::vector<SliceDevice> devices, const std::string& version);

// To be done in this order.
struct SlicePlan {
  struct Remove {
    std::string name;
    std::string uid;
    std::string version;
  };
  struct Update {
    std::size_t slice;  // index into the wish
    std::string name;
    Json patch;  // merge patch with the resourceVersion as a guard
  };
  struct Create {
    std::size_t slice;
    Json object;
  };
  std::vector<Remove> removes;
  std::vector<Update> updates;
  std::vector<Create> creates;

  bool empty() const { return removes.empty() && updates.empty() && creates.empty(); }
};
SlicePlan plan_slices(const SliceOwner& owner, const std::vector<JsonArray>& wish,
                      const std::vector<k8s::ObjectPtr>& found);

}  // namespace nvdra::dra
