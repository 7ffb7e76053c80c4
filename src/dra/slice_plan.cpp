#include "dra/slice_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace nvdra::dra {
namespace {

constexpr std::size_t devices_per_slice = 128;  // the API's limit
constexpr std::size_t index_digits = 5;

Json attribute_value(const Attribute& attribute) {
  if (const auto* text = std::get_if<std::string>(&attribute)) return JsonObject{{"string", *text}};
  if (const auto* number = std::get_if<std::int64_t>(&attribute))
    return JsonObject{{"int", *number}};
  return JsonObject{{"bool", std::get<bool>(attribute)}};
}

Json device_value(const SliceDevice& device, const std::string& version) {
  JsonObject attributes;
  for (const auto& [name, attribute] : device.attributes)
    attributes[name] = attribute_value(attribute);
  if (version == "v1beta1")
    return JsonObject{{"name", device.name},
                      {"basic", JsonObject{{"attributes", std::move(attributes)}}}};
  return JsonObject{{"name", device.name}, {"attributes", std::move(attributes)}};
}

// "0000a-driver-node-x7k2p" → 10.
std::optional<std::size_t> index_of(std::string_view name) {
  std::size_t index = 0;
  std::string_view digits = name.substr(0, name.find('-'));
  auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), index, 16);
  if (digits.size() < index_digits || failed != std::errc{} || end != digits.data() + digits.size())
    return std::nullopt;
  return index;
}

std::int64_t generation_of(const k8s::Object& slice) {
  return int_or(slice.json(), "spec/pool/generation", 0);
}

// False if an owner is named and it is not the Node that we are on.
bool is_of_node(const k8s::Object& slice, const std::string& node_uid) {
  const JsonArray& owners = array_or_empty(slice.json(), "metadata/ownerReferences");
  return std::ranges::all_of(owners, [&](const Json& owner) {
    return text_or_empty(owner, "kind") != "Node" || text_or_empty(owner, "uid") == node_uid;
  });
}

Json pool_value(const SliceOwner& owner, std::int64_t generation, std::size_t count) {
  return JsonObject{
      {"name", owner.node.value}, {"generation", generation}, {"resourceSliceCount", count}};
}

// Apart from the generation.
bool is_as_wished(const k8s::Object& slice, const JsonArray& devices, std::size_t count) {
  return int_or(slice.json(), "spec/pool/resourceSliceCount", 0) ==
             static_cast<std::int64_t>(count) &&
         array_or_empty(slice.json(), "spec/devices") == devices;
}

Json new_slice(const SliceOwner& owner, std::size_t index, const JsonArray& devices, Json pool) {
  JsonObject node{{"apiVersion", "v1"},
                  {"kind", "Node"},
                  {"name", owner.node.value},
                  {"uid", owner.node_uid},
                  {"controller", true}};
  JsonObject metadata{
      {"generateName", fmt::format("{:05x}-{}-{}-", index, owner.driver, owner.node.value)},
      {"ownerReferences", JsonArray{std::move(node)}}};
  k8s::ResourceType type = slice_type(owner.version);
  return JsonObject{{"apiVersion", type.api_version()},
                    {"kind", type.kind},
                    {"metadata", std::move(metadata)},
                    {"spec", JsonObject{{"driver", owner.driver},
                                        {"nodeName", owner.node.value},
                                        {"pool", std::move(pool)},
                                        {"devices", devices}}}};
}

Json patch_of(const k8s::Object& slice, const JsonArray& devices, Json pool) {
  return JsonObject{{"metadata", JsonObject{{"resourceVersion", slice.version()}}},
                    {"spec", JsonObject{{"pool", std::move(pool)}, {"devices", devices}}}};
}

// The slices to keep by their index; the others go to `removes`.
std::vector<k8s::ObjectPtr> sort_out(const SliceOwner& owner, std::size_t count,
                                     const std::vector<k8s::ObjectPtr>& found,
                                     std::vector<SlicePlan::Remove>& removes) {
  std::int64_t highest = 0;
  for (const auto& slice : found) highest = std::max(highest, generation_of(*slice));
  std::vector<k8s::ObjectPtr> kept(count);
  for (const auto& slice : found) {
    if (slice->deleting()) continue;
    std::optional<std::size_t> index = index_of(slice->name());
    bool ours = text_or_empty(slice->json(), "spec/nodeName") == owner.node.value &&
                text_or_empty(slice->json(), "spec/pool/name") == owner.node.value &&
                is_of_node(*slice, owner.node_uid);
    if (ours && index && *index < count && !kept[*index] && generation_of(*slice) == highest) {
      kept[*index] = slice;
    } else {
      removes.push_back(
          {std::string(slice->name()), std::string(slice->uid()), std::string(slice->version())});
    }
  }
  return kept;
}

}  // namespace

k8s::ResourceType slice_type(const std::string& version) {
  return {"resource.k8s.io", version, "resourceslices", "ResourceSlice", false};
}

std::vector<JsonArray> slice_devices(std::vector<SliceDevice> devices, const std::string& version) {
  std::ranges::sort(devices, {}, &SliceDevice::name);
  std::vector<JsonArray> slices(1);
  for (const SliceDevice& device : devices) {
    if (slices.back().size() == devices_per_slice) slices.emplace_back();
    slices.back().push_back(device_value(device, version));
  }
  return slices;
}

SlicePlan plan_slices(const SliceOwner& owner, const std::vector<JsonArray>& wish,
                      const std::vector<k8s::ObjectPtr>& found) {
  SlicePlan plan;
  std::vector<k8s::ObjectPtr> kept = sort_out(owner, wish.size(), found, plan.removes);
  std::size_t changed = 0;
  bool complete = true;
  for (std::size_t i = 0; i < wish.size(); ++i) {
    if (!kept[i]) complete = false;
    if (kept[i] && !is_as_wished(*kept[i], wish[i], wish.size())) ++changed;
  }
  if (complete && changed == 0) return plan;

  std::int64_t generation = 0;
  for (const auto& slice : found) generation = std::max(generation, generation_of(*slice));
  bool in_place = complete && changed == 1;
  if (!in_place) ++generation;
  Json pool = pool_value(owner, generation, wish.size());
  for (std::size_t i = 0; i < wish.size(); ++i) {
    if (!kept[i]) {
      plan.creates.push_back({i, new_slice(owner, i, wish[i], pool)});
    } else if (!in_place || !is_as_wished(*kept[i], wish[i], wish.size())) {
      plan.updates.push_back({i, std::string(kept[i]->name()), patch_of(*kept[i], wish[i], pool)});
    }
  }
  return plan;
}

}  // namespace nvdra::dra
