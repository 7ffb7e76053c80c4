#include "roles/controller/reconciler.hpp"

#include "base/log.hpp"
#include "base/try.hpp"
#include "roles/common/names.hpp"
#include "roles/controller/patches.hpp"

#include <fmt/format.h>

namespace nvdra::roles::controller {
namespace {

// A plan leads to the next one at most this often in one go; then the queue comes back to it.
constexpr int rounds = 10;

}  // namespace

Reconciler::Reconciler(k8s::Client& client, Time& time, k8s::EventRecorder& events, Caches& caches,
                       Settings settings)
    : client_(client),
      time_(time),
      events_(events),
      caches_(caches),
      settings_(std::move(settings)) {}

Async<Result<k8s::Again>> Reconciler::reconcile(std::string uid) {
  if (caches_.domain(uid)) {
    Result<k8s::Again> done = co_await reconcile_domain(uid);
    co_return done;
  }
  Result<k8s::Again> cleaned = co_await clean_orphans(uid);
  co_return cleaned;
}

Async<Result<k8s::Again>> Reconciler::reconcile_domain(std::string uid) {
  for (int round = 0; round < rounds; ++round) {
    k8s::ObjectPtr object = caches_.domain(uid);
    if (!object) co_return k8s::Again{};
    LOG_INFO(2, log::Plain{fmt::format("Processing added or updated ComputeDomain: {}/{} ({})",
                                       object->space(), object->name(), uid)});
    Plan plan = plan_domain(caches_.observe(object), settings_);
    if (plan.actions.empty()) {
      Result<void> written = co_await write_status(uid, std::move(plan));
      if (!written) co_return std::move(written).failure();
      co_return k8s::Again{};
    }
    for (Action& action : plan.actions) {
      Result<void> done = co_await perform(std::move(action));
      if (done) continue;
      Error error = done.error();
      if (!k8s::is_retryable(error)) {
        Plan told{{}, {{"Ready", false, "ReconcileError", error.text(), true}}, false};
        Result<void> written = co_await write_status(uid, std::move(told));
        if (!written) LOG_WARNING("Cannot write the status", {{"err", written.error().text()}});
      }
      co_return Failure{error};
    }
  }
  co_return k8s::Again{1s};
}

Async<Result<k8s::Again>> Reconciler::clean_orphans(std::string uid) {
  std::vector<k8s::ObjectPtr> left = caches_.templates_of(DomainUid(uid));
  Plan plan = plan_orphans(left, settings_);
  if (plan.actions.empty()) co_return k8s::Again{};
  // The cache may lag behind: objects are removed only when the server says that their
  // ComputeDomain does not exist.
  CO_TRY(bool exists, co_await domain_exists(uid));
  if (exists) co_return k8s::Again{1s};
  LOG_INFO(6, log::Plain{fmt::format("Cleanup: perform for {} objects of ComputeDomain {}",
                                     left.size(), uid)});
  for (Action& action : plan.actions) {
    Result<void> done = co_await perform(std::move(action));
    if (!done) co_return std::move(done).failure();
  }
  LOG_INFO(1, "Removed the objects of a ComputeDomain that no longer exists", {{"uid", uid}});
  co_return k8s::Again{};
}

Async<Result<bool>> Reconciler::domain_exists(std::string uid) {
  CO_TRY(k8s::ListAnswer answer, co_await client_.list(compute_domains(), ""));
  for (const k8s::Object& object : answer.items)
    if (object.uid() == uid) co_return true;
  co_return false;
}

Async<Result<void>> Reconciler::perform(Action action) {
  if (auto* wanted = std::get_if<Create>(&action)) {
    Result<void> done = co_await create(std::move(*wanted));
    co_return done;
  }
  if (auto* unwanted = std::get_if<Delete>(&action)) {
    Result<void> done = co_await remove(std::move(*unwanted));
    co_return done;
  }
  if (auto* held = std::get_if<Release>(&action)) {
    Result<void> done = co_await release(std::move(*held));
    co_return done;
  }
  Result<void> done = co_await mark(std::get<Mark>(std::move(action)));
  co_return done;
}

Async<Result<void>> Reconciler::create(Create action) {
  k8s::Object wanted(action.object);
  k8s::ObjectKey key = wanted.key();
  Result<k8s::Object> made =
      co_await client_.create(type_of(action.kind), key.space, std::move(action.object));
  if (made) {
    store_of(action.kind).note_written(*std::move(made));
    co_return ok();
  }
  if (made.error().code != k8s::Errc::already_exists) co_return std::move(made).failure();
  // Somebody has the name; the next plan judges who.
  Result<k8s::Object> found = co_await client_.get(type_of(action.kind), key);
  if (!found) co_return std::move(found).failure();
  store_of(action.kind).note_written(*std::move(found));
  co_return ok();
}

Async<Result<void>> Reconciler::remove(Delete action) {
  k8s::DeleteOptions options;
  options.uid = action.object->uid();
  options.propagation = "Background";
  Result<void> done =
      co_await client_.remove(type_of(action.kind), action.object->key(), std::move(options));
  if (done || done.error().code == k8s::Errc::not_found) co_return ok();
  // Another object has the name by now: ours is gone.
  if (done.error().code == k8s::Errc::conflict) {
    store_of(action.kind).note_deleted(action.object->key(), action.object->uid());
    co_return ok();
  }
  co_return done;
}

Async<Result<void>> Reconciler::release(Release action) {
  k8s::ObjectKey key = action.object->key();
  k8s::Store& store = store_of(action.kind);
  k8s::PatchOptions options;
  options.kind = k8s::PatchKind::json;
  Result<k8s::Object> left =
      co_await client_.patch(type_of(action.kind), key, release_patch(*action.object), options);
  if (!left && left.error().code == k8s::Errc::not_found) {
    store.note_deleted(key, action.object->uid());
    co_return ok();
  }
  if (!left && left.error().code == k8s::Errc::conflict) {
    // Somebody changed the finalizers: take the present state, the next plan decides anew.
    Result<k8s::Object> now = co_await client_.get(type_of(action.kind), key);
    if (now) {
      store.note_written(*std::move(now));
    } else if (now.error().code == k8s::Errc::not_found) {
      store.note_deleted(key, action.object->uid());
    }
    co_return ok();
  }
  if (!left) co_return std::move(left).failure();
  if (left->deleting() && array_or_empty(left->json(), "metadata/finalizers").empty()) {
    store.note_deleted(key, action.object->uid());
  } else {
    store.note_written(*std::move(left));
  }
  co_return ok();
}

Async<Result<void>> Reconciler::mark(Mark action) {
  k8s::PatchOptions options;
  options.kind = k8s::PatchKind::json;
  k8s::Store& store = store_of(action.kind);
  Result<k8s::Object> marked =
      co_await client_.patch(type_of(action.kind), action.object->key(),
                             mark_patch(*action.object, action.labels), options);
  if (!marked && marked.error().code == k8s::Errc::conflict) {
    Result<k8s::Object> now = co_await client_.get(type_of(action.kind), action.object->key());
    if (!now) co_return std::move(now).failure();
    store.note_written(*std::move(now));
    co_return ok();
  }
  if (!marked) co_return std::move(marked).failure();
  store.note_written(*std::move(marked));
  co_return ok();
}

Async<Result<void>> Reconciler::write_status(std::string uid, Plan plan) {
  k8s::ObjectPtr object = caches_.domain(uid);
  if (!object || plan.findings.empty()) co_return ok();
  std::optional<Json> patch = status_patch(*object, plan, time_.wall());
  if (!patch) co_return ok();
  k8s::PatchOptions options;
  options.subresource = "status";
  Result<k8s::Object> written =
      co_await client_.patch(compute_domains(), object->key(), *std::move(patch), options);
  if (!written && written.error().code == k8s::Errc::not_found) co_return ok();
  if (!written) co_return std::move(written).failure();
  tell(*object, plan);
  caches_.domains().note_written(*std::move(written));
  co_return ok();
}

void Reconciler::tell(const k8s::Object& domain, const Plan& plan) {
  for (const Finding& finding : news(domain, plan)) {
    if (finding.type != "Ready" && finding.type != "ModeConflict") continue;
    events_.record(finding.warning ? k8s::EventType::warning : k8s::EventType::normal,
                   k8s::reference_of(domain), finding.reason, finding.message);
  }
}

k8s::ResourceType Reconciler::type_of(Kind kind) const {
  switch (kind) {
    case Kind::domain: return compute_domains();
    case Kind::claim_template: return claim_templates(settings_.resource_version);
    case Kind::daemon_set: return daemon_sets();
  }
  __builtin_unreachable();
}

k8s::Store& Reconciler::store_of(Kind kind) {
  return kind == Kind::domain ? caches_.domains() : caches_.templates();
}

}  // namespace nvdra::roles::controller
