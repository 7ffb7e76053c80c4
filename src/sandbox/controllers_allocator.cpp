#include "sandbox/controllers_allocator.hpp"

#include "base/try.hpp"
#include "sandbox/controllers_base.hpp"
#include "sandbox/controllers_placement.hpp"
#include "sandbox/store_cel.hpp"

#include <fmt/format.h>

#include <map>

namespace nvdra::sandbox {
namespace {

struct Candidate {
  DeviceId id;
  Json device;
};

// The devices that the node can reach, of complete pools of the newest generation.
std::vector<Candidate> candidates(const SliceIndex& slices, const Json& node) {
  struct Pool {
    std::int64_t generation = -1;
    std::int64_t expected = 0;
    std::vector<ItemPtr> slices;
  };
  std::map<std::pair<std::string, std::string>, Pool> pools;
  for (const ItemPtr& slice : slices.of_node(node)) {
    const Json& json = slice->json();
    Pool& pool = pools[{std::string(text_or_empty(json, "spec/driver")),
                        std::string(text_or_empty(json, "spec/pool/name"))}];
    std::int64_t generation = int_or(json, "spec/pool/generation", 0);
    if (generation < pool.generation) continue;
    if (generation > pool.generation)
      pool = {generation, int_or(json, "spec/pool/resourceSliceCount", 1), {}};
    pool.slices.push_back(slice);
  }
  std::vector<Candidate> found;
  for (const auto& [name, pool] : pools) {
    if (static_cast<std::int64_t>(pool.slices.size()) != pool.expected) continue;
    for (const ItemPtr& slice : pool.slices)
      for (const Json& device : array_or_empty(slice->json(), "spec/devices"))
        found.push_back(
            {{name.first, name.second, std::string(text_or_empty(device, "name"))}, device});
  }
  return found;
}

// {string: x} → x; versions stay texts.
Json attribute_value(const Json& attribute) {
  for (std::string_view type : {"string", "int", "bool", "version"})
    if (const Json* value = get(attribute, type)) return *value;
  return nullptr;
}

// The variable `device` of selectors: names without a domain belong to the driver's.
Json device_variable(const Candidate& candidate) {
  JsonObject attributes;
  for (const auto& [name, attribute] : object_or_empty(candidate.device, "attributes")) {
    std::string_view full = name;
    std::size_t slash = full.find('/');
    bool qualified = slash != std::string_view::npos;
    std::string_view domain = qualified ? full.substr(0, slash) : candidate.id.driver;
    Json& inner = attributes[domain];
    if (!inner.is_object()) inner = JsonObject{};
    inner.get_object()[qualified ? full.substr(slash + 1) : full] = attribute_value(attribute);
  }
  return JsonObject{{"driver", candidate.id.driver}, {"attributes", std::move(attributes)}};
}

class Allocation {
public:
  Allocation(Registry& registry, std::vector<Candidate> candidates, const Json& claim,
             const Json& node, const DevicesInUse& in_use)
      : registry_(registry),
        claim_(claim),
        node_(node),
        in_use_(in_use),
        candidates_(std::move(candidates)) {}

  Result<Json> make() {
    for (const Json& request : array_or_empty(claim_, "spec/devices/requests")) {
      TRY_VOID(satisfy(request));
    }
    for (Json config : array_or_empty(claim_, "spec/devices/config")) {
      config.get_object()["source"] = "FromClaim";
      configs_.push_back(std::move(config));
    }
    JsonObject devices{{"results", std::move(results_)}};
    if (!configs_.empty()) devices["config"] = std::move(configs_);
    Json name = JsonObject{{"key", "metadata.name"},
                           {"operator", "In"},
                           {"values", JsonArray{text_or_empty(node_, "metadata/name")}}};
    Json term = JsonObject{{"matchFields", JsonArray{std::move(name)}}};
    return Json(JsonObject{
        {"devices", std::move(devices)},
        {"nodeSelector", JsonObject{{"nodeSelectorTerms", JsonArray{std::move(term)}}}}});
  }

private:
  Result<void> satisfy(const Json& request) {
    std::string name(text_or_empty(request, "name"));
    if (const Json* exactly = get(request, "exactly")) return satisfy_with(*exactly, name);
    Result<void> last = refuse(fmt::format("request {}: no alternative", name));
    for (const Json& alternative : array_or_empty(request, "firstAvailable")) {
      last =
          satisfy_with(alternative, fmt::format("{}/{}", name, text_or_empty(alternative, "name")));
      if (last) return last;
    }
    return last;
  }

  Result<void> satisfy_with(const Json& wanted, const std::string& name) {
    std::string class_name(text_or_empty(wanted, "deviceClassName"));
    ItemPtr device_class = registry_.find(registry_.resource("deviceclasses"), {"", class_name});
    if (!device_class)
      return refuse(fmt::format("request {}: device class {} does not exist", name, class_name));
    bool all = text_or_empty(wanted, "allocationMode") == "All";
    bool admin = bool_or(wanted, "adminAccess", false);
    auto missing = all ? std::int64_t{-1} : int_or(wanted, "count", 1);
    std::size_t before = results_.size();
    for (const Candidate& candidate : candidates_) {
      if (missing == 0) break;
      bool taken = !admin && (in_use_.contains(candidate.id) || taken_.contains(candidate.id));
      if (taken && !all) continue;
      TRY(bool chosen, selected(candidate, device_class->json(), wanted));
      if (!chosen) continue;
      if (taken) return refuse("cannot allocate all claims");
      if (!admin) taken_.insert(candidate.id);
      take(candidate, name, admin);
      if (missing > 0) --missing;
    }
    bool nothing = all && results_.size() == before;
    if (missing > 0 || nothing) return refuse("cannot allocate all claims");
    for (Json config : array_or_empty(device_class->json(), "spec/config")) {
      config.get_object()["source"] = "FromClass";
      config.get_object()["requests"] = JsonArray{Json(name)};
      configs_.push_back(std::move(config));
    }
    return ok();
  }

  Result<bool> selected(const Candidate& candidate, const Json& device_class, const Json& wanted) {
    CelVariables variables{{"device", device_variable(candidate)}};
    for (const JsonArray* selectors :
         {&array_or_empty(device_class, "spec/selectors"), &array_or_empty(wanted, "selectors")})
      for (const Json& selector : *selectors) {
        Result<bool> held =
            evaluate_condition(text_or_empty(selector, "cel/expression"), variables);
        if (!held) return std::move(held).failure().during("selector");
        if (!*held) return false;
      }
    return true;
  }

  void take(const Candidate& candidate, const std::string& name, bool admin) {
    JsonObject result{{"request", name},
                      {"driver", candidate.id.driver},
                      {"pool", candidate.id.pool},
                      {"device", candidate.id.device}};
    if (admin) result["adminAccess"] = true;
    results_.push_back(std::move(result));
  }

  Registry& registry_;
  const Json& claim_;
  const Json& node_;
  const DevicesInUse& in_use_;
  DevicesInUse taken_;
  std::vector<Candidate> candidates_;
  JsonArray results_;
  JsonArray configs_;
};

}  // namespace

std::vector<DeviceId> devices_of(const Json& claim) {
  std::vector<DeviceId> devices;
  for (const Json& result : array_or_empty(claim, "status/allocation/devices/results"))
    if (!bool_or(result, "adminAccess", false))
      devices.push_back({std::string(text_or_empty(result, "driver")),
                         std::string(text_or_empty(result, "pool")),
                         std::string(text_or_empty(result, "device"))});
  return devices;
}

void SliceIndex::changed(const Change& change) {
  if (!is(change, "resourceslices")) return;
  const Item& slice = *subject(change);
  std::string node(text_or_empty(slice.json(), "spec/nodeName"));
  auto& slices = node.empty() ? others_ : by_node_[node];
  if (change.after)
    slices[std::string(slice.name())] = change.after;
  else
    slices.erase(std::string(slice.name()));
}

std::vector<ItemPtr> SliceIndex::of_node(const Json& node) const {
  std::vector<ItemPtr> found;
  auto own = by_node_.find(std::string(text_or_empty(node, "metadata/name")));
  if (own != by_node_.end())
    for (const auto& [name, slice] : own->second) found.push_back(slice);
  for (const auto& [name, slice] : others_) {
    const Json* selector = find(slice->json(), "spec/nodeSelector");
    if (bool_or(slice->json(), "spec/allNodes", false) ||
        (selector && node_selector_matches(*selector, node)))
      found.push_back(slice);
  }
  return found;
}

Result<Json> allocate(Registry& registry, const SliceIndex& slices, const Json& claim,
                      const Json& node, const DevicesInUse& in_use) {
  return Allocation(registry, candidates(slices, node), claim, node, in_use).make();
}

}  // namespace nvdra::sandbox
