// ReplicaSets, Deployments and Jobs: as much of them as demos and tests need.
#include "sandbox/controllers_list.hpp"
#include "sandbox/controllers_pods.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::sandbox {
namespace {

// A controller of workloads of one kind: looks again when a pod or another object of its own
// changes.
class WorkloadController : public Controller {
public:
  WorkloadController(Registry& registry, std::string_view plural, std::string_view kind)
      : Controller(registry), plural_(plural), kind_(kind) {}

  void changed(const Change& change) override {
    if (change.resource->custom) return;
    if (is(change, plural_) && change.after) touch(change.after->key());
    for (const Json& owner : array_or_empty(subject(change)->json(), "metadata/ownerReferences"))
      if (text_or_empty(owner, "kind") == kind_)
        touch({std::string(subject(change)->space()), std::string(text_or_empty(owner, "name"))});
  }

protected:
  // The workload's spec.template.spec.
  static Json pod_spec(const Item& owner) {
    return JsonObject(object_or_empty(owner.json(), "spec/template/spec"));
  }
  void report(const ObjectKey& key, const JsonObject& numbers) {
    ItemPtr now = registry_.find(of(plural_), key);
    if (!now) return;
    Json object = now->json();
    Json& status = object.get_object()["status"];
    if (!status.is_object()) status = JsonObject{};
    for (const auto& [name, value] : numbers) status.get_object()[name] = value;
    status.get_object()["observedGeneration"] = int_or(object, "metadata/generation", 1);
    put_status(registry_, of(plural_), now, std::move(object));
  }

private:
  std::string_view plural_;
  std::string_view kind_;
};

class ReplicaSetController final : public WorkloadController {
public:
  explicit ReplicaSetController(Registry& registry)
      : WorkloadController(registry, "replicasets", "ReplicaSet") {}

private:
  void reconcile(const ObjectKey& key) override {
    ItemPtr set = registry_.find(of("replicasets"), key);
    if (!set || set->deleting()) return;
    std::vector<ItemPtr> pods;
    for (const ItemPtr& pod : pods_of_controller(registry_, *set))
      if (!is_terminal(pod->json()) && !pod->deleting()) pods.push_back(pod);
    auto wanted = static_cast<std::size_t>(int_or(set->json(), "spec/replicas", 1));
    std::size_t there = pods.size();
    for (; there < wanted; ++there)
      if (!make_pod(registry_, *set, pod_spec(*set), "", "replicaset-controller")) break;
    // Pods that are not ready go first.
    std::ranges::sort(pods, {}, [](const ItemPtr& pod) {
      return std::pair(is_ready(pod->json()), std::string(pod->name()));
    });
    for (std::size_t i = 0; pods.size() > wanted && i < pods.size() - wanted; ++i)
      remove_pod(registry_, *pods[i]);
    std::int64_t ready =
        std::ranges::count_if(pods, [](const ItemPtr& pod) { return is_ready(pod->json()); });
    report(key, {{"replicas", there},
                 {"readyReplicas", ready},
                 {"availableReplicas", ready},
                 {"fullyLabeledReplicas", there}});
  }
};

class DeploymentController final : public WorkloadController {
public:
  explicit DeploymentController(Registry& registry)
      : WorkloadController(registry, "deployments", "Deployment") {}

private:
  void reconcile(const ObjectKey& key) override {
    ItemPtr deployment = registry_.find(of("deployments"), key);
    if (!deployment || deployment->deleting()) return;
    std::string hash = template_hash(deployment->json());
    std::int64_t wanted = int_or(deployment->json(), "spec/replicas", 1);
    std::int64_t total = 0, ready = 0;
    ItemPtr current;
    std::vector<ItemPtr> older;
    for (const ItemPtr& set : registry_.all(of("replicasets"), key.space)) {
      if (controller_uid(set->json()) != deployment->uid()) continue;
      total += int_or(set->json(), "status/replicas", 0);
      ready += int_or(set->json(), "status/readyReplicas", 0);
      if (has_hash(set->json(), hash))
        current = set;
      else
        older.push_back(set);
    }
    if (!current) make_set(*deployment, hash, wanted);
    if (current) scale(*current, wanted);
    bool done = current && int_or(current->json(), "status/readyReplicas", 0) >= wanted;
    bool recreate = text_or_empty(deployment->json(), "spec/strategy/type") == "Recreate";
    if (done || recreate)
      for (const ItemPtr& set : older) scale(*set, 0);
    tell(key, current, total, ready, wanted);
  }

  void tell(const ObjectKey& key, const ItemPtr& current, std::int64_t total, std::int64_t ready,
            std::int64_t wanted) {
    report(key, {{"replicas", total},
                 {"readyReplicas", ready},
                 {"availableReplicas", ready},
                 {"unavailableReplicas", std::max<std::int64_t>(0, wanted - ready)},
                 {"updatedReplicas", current ? int_or(current->json(), "status/replicas", 0) : 0}});
    ItemPtr now = registry_.find(of("deployments"), key);
    if (!now) return;
    Json object = now->json();
    bool available = ready >= wanted;
    set_condition(
        object,
        {{"type", "Available"},
         {"status", available ? "True" : "False"},
         {"reason", available ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable"},
         {"message", available ? "Deployment has minimum availability."
                               : "Deployment does not have minimum availability."}},
        rfc3339(registry_.time().wall()));
    put_status(registry_, of("deployments"), now, std::move(object));
  }

  void make_set(const Item& deployment, const std::string& hash, std::int64_t replicas) {
    Json pod_template = *nvdra::find(deployment.json(), "spec/template");
    JsonObject labels = object_or_empty(pod_template, "metadata/labels");
    labels["pod-template-hash"] = hash;
    metadata_of(pod_template)["labels"] = labels;
    Json set = JsonObject{
        {"metadata", JsonObject{{"name", fmt::format("{}-{}", deployment.name(), hash)},
                                {"labels", labels},
                                {"ownerReferences", JsonArray{controller_reference(deployment)}}}},
        {"spec", JsonObject{{"replicas", replicas},
                            {"selector", JsonObject{{"matchLabels", labels}}},
                            {"template", std::move(pod_template)}}}};
    Result<ItemPtr> made =
        registry_.create(of("replicasets"), std::string(deployment.space()), std::move(set));
    std::string text =
        made ? fmt::format("Scaled up replica set {} from 0 to {}", (*made)->name(), replicas)
             : made.error().doing;
    record_event(registry_, deployment, made ? "Normal" : "Warning",
                 made ? "ScalingReplicaSet" : "ReplicaSetCreateError", text,
                 "deployment-controller");
  }

  void scale(const Item& set, std::int64_t replicas) {
    Json patch = JsonObject{{"spec", JsonObject{{"replicas", replicas}}}};
    Result<ItemPtr> scaled = registry_.patch(of("replicasets"), set.key(), patch, PatchForm::merge);
    (void)scaled;  // gone already
  }
};

class JobController final : public WorkloadController {
public:
  explicit JobController(Registry& registry) : WorkloadController(registry, "jobs", "Job") {}

private:
  static constexpr const char* index_annotation = "batch.kubernetes.io/job-completion-index";

  struct Census {
    std::int64_t active = 0, succeeded = 0, failed = 0, ready = 0;
    std::set<std::int64_t> indexes;  // of active and succeeded pods
  };

  Census count(const Item& job) {
    Census census;
    for (const ItemPtr& pod : pods_of_controller(registry_, job)) {
      std::string_view phase = text_or_empty(pod->json(), "status/phase");
      const Json* annotations = nvdra::find(pod->json(), "metadata/annotations");
      const Json* index = annotations ? get(*annotations, index_annotation) : nullptr;
      if (phase == "Failed") {
        ++census.failed;
        continue;
      }
      if (index) census.indexes.insert(std::stoll(std::string(index->get_string())));
      if (phase == "Succeeded") ++census.succeeded;
      if (phase != "Succeeded" && !pod->deleting()) ++census.active;
      if (phase != "Succeeded" && is_ready(pod->json())) ++census.ready;
    }
    return census;
  }

  void reconcile(const ObjectKey& key) override {
    ItemPtr job = registry_.find(of("jobs"), key);
    if (!job || job->deleting()) return;
    Census census = count(*job);
    std::int64_t completions = int_or(job->json(), "spec/completions", 1);
    bool failed = census.failed > int_or(job->json(), "spec/backoffLimit", 6);
    bool complete = census.succeeded >= completions;
    std::int64_t wanted =
        std::min(int_or(job->json(), "spec/parallelism", 1), completions - census.succeeded);
    bool suspended = bool_or(job->json(), "spec/suspend", false);
    for (; !failed && !complete && !suspended && census.active < wanted; ++census.active)
      if (!make(*job, census)) break;
    JsonObject numbers{{"active", census.active},
                       {"succeeded", census.succeeded},
                       {"failed", census.failed},
                       {"ready", census.ready}};
    if (!nvdra::find(job->json(), "status/startTime"))
      numbers["startTime"] = rfc3339(registry_.time().wall());
    report(key, numbers);
    if (failed || complete) conclude(key, complete);
  }

  bool make(const Item& job, Census& census) {
    Json labels = JsonObject{{"batch.kubernetes.io/job-name", job.name()},
                             {"job-name", job.name()},
                             {"batch.kubernetes.io/controller-uid", job.uid()},
                             {"controller-uid", job.uid()}};
    JsonObject metadata{{"labels", std::move(labels)}};
    Json spec = pod_spec(job);
    if (text_or_empty(job.json(), "spec/completionMode") == "Indexed") {
      std::int64_t index = 0;
      while (census.indexes.contains(index)) ++index;
      census.indexes.insert(index);
      metadata["annotations"] = JsonObject{{index_annotation, std::to_string(index)}};
      spec.get_object()["hostname"] = fmt::format("{}-{}", job.name(), index);
      for (Json& container : spec.get_object()["containers"].get_array()) {
        JsonArray variables = array_or_empty(container, "env");
        variables.push_back(
            JsonObject{{"name", "JOB_COMPLETION_INDEX"}, {"value", std::to_string(index)}});
        container.get_object()["env"] = std::move(variables);
      }
    }
    Json more = JsonObject{{"metadata", std::move(metadata)}};
    return make_pod(registry_, job, std::move(spec), "", "job-controller", more);
  }

  void conclude(const ObjectKey& key, bool complete) {
    ItemPtr now = registry_.find(of("jobs"), key);
    if (!now) return;
    Json object = now->json();
    std::string time = rfc3339(registry_.time().wall());
    set_condition(object,
                  {{"type", complete ? "Complete" : "Failed"},
                   {"status", "True"},
                   {"reason", complete ? "CompletionsReached" : "BackoffLimitExceeded"},
                   {"message", complete ? "Reached expected number of succeeded pods"
                                        : "Job has reached the specified backoff limit"}},
                  time);
    JsonObject& status = object.get_object()["status"].get_object();
    if (complete && !status.contains("completionTime")) status["completionTime"] = time;
    put_status(registry_, of("jobs"), now, std::move(object));
  }
};

}  // namespace

std::unique_ptr<Controller> make_replica_set_controller(Registry& registry) {
  return std::make_unique<ReplicaSetController>(registry);
}
std::unique_ptr<Controller> make_deployment_controller(Registry& registry) {
  return std::make_unique<DeploymentController>(registry);
}
std::unique_ptr<Controller> make_job_controller(Registry& registry) {
  return std::make_unique<JobController>(registry);
}

}  // namespace nvdra::sandbox
