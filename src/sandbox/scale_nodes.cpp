#include "sandbox/scale_nodes.hpp"

#include "base/try.hpp"
#include "sandbox/controllers_base.hpp"
#include "sandbox/pod_status.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fmt/format.h>

#include <set>

namespace nvdra::sandbox {
namespace {

constexpr std::string_view domain_label = "resource.nvidia.com/computeDomain";
constexpr std::string_view clique_label = "resource.nvidia.com/computeDomain.cliqueID";
constexpr std::string_view node_clique_label = "nvidia.com/gpu.clique";
constexpr std::string_view cliques = "computedomaincliques.resource.nvidia.com";

std::string label_of(const Json& object, std::string_view key) {
  const Json* labels = find(object, "metadata/labels");
  const Json* value = labels ? get(*labels, key) : nullptr;
  return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

Json label_patch(std::string_view key, Json value) {
  return JsonObject{{"metadata", JsonObject{{"labels", JsonObject{{key, std::move(value)}}}}}};
}

Json device(std::string_view type) {
  return JsonObject{{"name", fmt::format("{}-0", type)},
                    {"attributes", JsonObject{{"type", JsonObject{{"string", type}}},
                                              {"id", JsonObject{{"int", 0}}}}}};
}

std::string address_of(std::string_view node) {
  std::size_t number = 0;
  for (const char c : node)
    if (c >= '0' && c <= '9') number = number * 10 + static_cast<std::size_t>(c - '0');
  return fmt::format("10.{}.{}.2", 100 + number / 250, number % 250);
}

}  // namespace

std::string scale_node(int number) {
  return fmt::format("gpu-{:05}", number);
}

std::string scale_clique(int number) {
  return fmt::format("3f2504e0-4f89-41d3-9a0c-0305e82c3301.{}", number);
}

class ScaleNodes::Player final : public Controller {
public:
  using Controller::Controller;

  void changed(const Change& change) override {
    if (is(change, "pods")) {
      if (change.after) touch(change.after->key());
      return;
    }
    if (change.resource->type.plural != "computedomaincliques" || !change.after) return;
    for (const Json& entry : array_or_empty(change.after->json(), "daemons"))
      if (const auto pod = waiting_.find(std::string(text_or_empty(entry, "nodeName")));
          pod != waiting_.end())
        touch(pod->second);
  }

private:
  void reconcile(const ObjectKey& key) override {
    const ItemPtr pod = registry_.find(of("pods"), key);
    if (!pod) return;
    const std::string node(text_or_empty(pod->json(), "spec/nodeName"));
    const bool workload = !label_of(pod->json(), scale_domain_label).empty();
    if (pod->deleting()) return workload ? end_workload(*pod, node) : end_daemon(*pod, node);
    if (node.empty() || is_ready(pod->json())) return;
    workload ? prepare_workload(pod, node) : start_daemon(pod, node);
  }

  void make_ready(const ItemPtr& pod, const std::string& node) {
    ContainerState state;
    state.name = text_or_empty(array_or_empty(pod->json(), "spec/containers").at(0), "name");
    state.kind = ContainerState::Kind::running;
    state.has_started = state.ready = true;
    const std::string now = rfc3339(registry_.time().wall());
    put_status(registry_, of("pods"), pod,
               with_status(pod->json(), {.address = address_of(node),
                                         .host = "127.0.0.1",
                                         .now = now,
                                         .started = now,
                                         .sandbox = true,
                                         .containers = {state}}));
  }

  void label_node(const std::string& node, Json value) {
    Result<ItemPtr> labelled = registry_.patch(
        of("nodes"), {"", node}, label_patch(domain_label, std::move(value)), PatchForm::merge);
    (void)labelled;  // the node has gone
  }

  std::string clique_of(const std::string& node) const {
    const ItemPtr found = registry_.find(of("nodes"), {"", node});
    return found ? label_of(found->json(), node_clique_label) : std::string();
  }

  void prepare_workload(const ItemPtr& pod, const std::string& node) {
    const std::string domain = label_of(pod->json(), scale_domain_label);
    if (waiting_.emplace(node, pod->key()).second) label_node(node, Json(domain));
    const ItemPtr clique = registry_.find(of(cliques), clique_key(domain, node));
    if (!clique) return;
    for (const Json& entry : array_or_empty(clique->json(), "daemons"))
      if (text_or_empty(entry, "nodeName") == node && text_or_empty(entry, "status") == "Ready")
        make_ready(pod, node);
  }

  void end_workload(const Item& pod, const std::string& node) {
    if (waiting_.erase(node) > 0) label_node(node, nullptr);
    forget(pod);
  }

  ObjectKey clique_key(const std::string& domain, const std::string& node) const {
    return {std::string(driver_space_), fmt::format("{}.{}", domain, clique_of(node))};
  }

  void start_daemon(const ItemPtr& pod, const std::string& node) {
    const std::string domain = label_of(pod->json(), domain_label);
    if (domain.empty()) return;
    make_ready(pod, node);
    Result<ItemPtr> labelled = registry_.patch(
        of("pods"), pod->key(), label_patch(clique_label, Json(clique_of(node))), PatchForm::merge);
    (void)labelled;
    change_clique(*pod, node, true);
  }

  void end_daemon(const Item& pod, const std::string& node) {
    change_clique(pod, node, false);
    forget(pod);
  }

  // The clique with an entry for this pod's node, or without.
  void change_clique(const Item& pod, const std::string& node, bool member) {
    const std::string domain = label_of(pod.json(), domain_label);
    const ObjectKey key = clique_key(domain, node);
    const ItemPtr old = registry_.find(of(cliques), key);
    if (!old && !member) return;
    Json object = old ? old->json() : new_clique(key, domain, node);
    JsonArray others;
    std::set<std::int64_t> taken;
    for (const Json& entry : array_or_empty(object, "daemons")) {
      if (text_or_empty(entry, "nodeName") == node) continue;
      taken.insert(int_or(entry, "index", 0));
      others.push_back(entry);
    }
    if (member) {
      std::int64_t index = 0;
      while (taken.contains(index)) ++index;
      others.push_back(JsonObject{{"nodeName", node},
                                  {"ipAddress", address_of(node)},
                                  {"cliqueID", clique_of(node)},
                                  {"index", index},
                                  {"status", "Ready"}});
      add_owner(object, pod);
    }
    object.get_object()["daemons"] = std::move(others);
    Result<ItemPtr> written = old ? registry_.update(of(cliques), key, std::move(object))
                                  : registry_.create(of(cliques), key.space, std::move(object));
    (void)written;
  }

  Json new_clique(const ObjectKey& key, const std::string& domain, const std::string& node) const {
    return JsonObject{
        {"metadata",
         JsonObject{{"name", key.name},
                    {"labels", JsonObject{{domain_label, domain}, {clique_label, clique_of(node)}}},
                    {"ownerReferences", JsonArray{}}}}};
  }

  static void add_owner(Json& object, const Item& pod) {
    JsonArray owners = array_or_empty(object, "metadata/ownerReferences");
    owners.push_back(JsonObject{
        {"apiVersion", "v1"}, {"kind", "Pod"}, {"name", pod.name()}, {"uid", pod.uid()}});
    object.get_object()["metadata"].get_object()["ownerReferences"] = std::move(owners);
  }

  void forget(const Item& pod) {
    Result<Removal> removed =
        registry_.remove(of("pods"), pod.key(), {.uid = std::string(pod.uid()), .grace = 0});
    (void)removed;
  }

  static constexpr std::string_view driver_space_ = "dra-driver-nvidia-gpu";
  std::map<std::string, ObjectKey> waiting_;  // node → its workload pod
};

ScaleNodes::ScaleNodes(asio::any_io_executor executor, Registry& registry)
    : registry_(registry),
      changed_(std::move(executor)),
      player_(std::make_unique<Player>(registry)) {
  handler_ = registry.feed().on_change([this](const ChangePtr& change) {
    player_->changed(*change);
    changed_.notify();
  });
}

ScaleNodes::~ScaleNodes() = default;

Result<void> ScaleNodes::make(int count, int per_clique) {
  const Json ready =
      JsonObject{{"conditions", JsonArray{JsonObject{{"type", "Ready"}, {"status", "True"}}}}};
  const Resource& nodes = registry_.resource("nodes");
  for (int number = 0; number < count; ++number) {
    const std::string name = scale_node(number);
    const JsonObject labels{{"kubernetes.io/hostname", name},
                            {node_clique_label, scale_clique(number / per_clique)}};
    TRY(ItemPtr made,
        registry_.create(nodes, "",
                         JsonObject{{"metadata", JsonObject{{"name", name}, {"labels", labels}}}}));
    TRY(made, registry_.patch(nodes, made->key(), JsonObject{{"status", ready}}, PatchForm::merge,
                              {.subresource = "status"}));
    const Json slice = JsonObject{
        {"metadata", JsonObject{{"name", "slice-" + name}}},
        {"spec",
         JsonObject{
             {"driver", "compute-domain.nvidia.com"},
             {"nodeName", name},
             {"pool", JsonObject{{"name", name}, {"generation", 1}, {"resourceSliceCount", 1}}},
             {"devices", JsonArray{device("channel"), device("daemon")}}}}};
    TRY(made, registry_.create(registry_.resource("resourceslices.resource.k8s.io"), "", slice));
  }
  return ok();
}

Async<Result<void>> ScaleNodes::run() {
  auto executor = co_await asio::this_coro::executor;
  for (std::uint64_t seen = changed_.count() - 1;;) {
    seen = co_await changed_.wait(seen);
    while (player_->work()) co_await asio::post(executor, asio::use_awaitable);
  }
}

}  // namespace nvdra::sandbox
