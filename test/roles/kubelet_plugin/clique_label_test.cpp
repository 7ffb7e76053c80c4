#include "roles/kubelet_plugin/clique_label.hpp"

#include "catch.hpp"
#include "roles/common/names.hpp"

using namespace nvdra;
using namespace nvdra::roles;
using namespace nvdra::roles::kubelet_plugin;

namespace {

const CliqueId clique{"11111111-2222-3333-4444-555555555555.32766"};

k8s::Object node(std::optional<std::string> label, bool ours) {
  JsonObject labels, annotations;
  if (label) labels[gpu_clique_label] = *label;
  if (ours) annotations[clique_owner_annotation] = driver_name;
  return k8s::Object(
      Json{{"metadata", {{"name", "n"}, {"labels", labels}, {"annotations", annotations}}}});
}

std::string change(const k8s::Object& node, bool enabled, std::optional<CliqueId> known) {
  auto patch = clique_label_patch(node, enabled, known);
  if (!patch) return "nothing";
  const Json& value = patch->at("metadata").at("labels").at(gpu_clique_label);
  return value.is_null() ? "remove" : std::string(value.get_string());
}

}  // namespace

TEST_CASE("the clique label has one owner and never flaps", "[plugin][clique_label]") {
  CHECK(change(node({}, false), true, clique) == clique.value);
  CHECK(change(node(clique.value, true), true, clique) == "nothing");
  CHECK(change(node("old.1", true), true, clique) == clique.value);
  // Restart: the GPUs have not been asked yet.
  CHECK(change(node(clique.value, true), true, std::nullopt) == "nothing");
  // The fabric is gone for certain.
  CHECK(change(node(clique.value, true), true, CliqueId{}) == "remove");
  // Switched off: ours goes, somebody else's stays.
  CHECK(change(node(clique.value, true), false, std::nullopt) == "remove");
  CHECK(change(node(clique.value, false), false, clique) == "nothing");
  CHECK(change(node({}, false), true, CliqueId{}) == "nothing");
}
