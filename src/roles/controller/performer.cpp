#include "roles/controller/performer.hpp"

#include "base/try.hpp"
#include "roles/common/clique.hpp"
#include "roles/common/names.hpp"
#include "roles/common/node_label.hpp"
#include "roles/controller/patches.hpp"

#include <boost/asio/this_coro.hpp>

#include <memory>

namespace nvdra::roles::controller {
namespace {

constexpr std::size_t nodes_at_once = 16;

// Nodes to be worked on by several tasks, and the first error among them. One node's trouble does
// not stop the others.
struct Batch {
  std::deque<k8s::ObjectPtr> nodes;
  std::optional<Error> failed;
};

// Whether a DaemonSet of ours has lost the label by which it is watched: no cache can hold it.
bool out_of_sight(const k8s::Object& found, const k8s::Object& wanted) {
  const DomainUid uid = domain_of(wanted);
  return !uid.empty() && !found.label(domain_label) && !found.deleting() &&
         daemon_set_made_for(found, uid);
}

}  // namespace

Async<Result<void>> Performer::perform(Action action) {
  Result<void> done =
      co_await std::visit([this](auto& each) { return act(std::move(each)); }, action);
  co_return done;
}

Async<Result<void>> Performer::act(Create action) {
  k8s::Object wanted(action.object);
  k8s::ObjectKey key = wanted.key();
  Result<k8s::Object> made =
      co_await client_.create(type_of(action.kind), key.space, std::move(action.object));
  if (made) {
    note(action.kind, *std::move(made));
    co_return ok();
  }
  if (made.error().code != k8s::Errc::already_exists) co_return std::move(made).failure();
  // Somebody has the name; the next plan judges who.
  Result<k8s::Object> found = co_await client_.get(type_of(action.kind), key);
  if (!found) co_return std::move(found).failure();
  if (action.kind == Kind::daemon_set && out_of_sight(*found, wanted)) {
    auto object = std::make_shared<const k8s::Object>(*std::move(found));
    JsonObject labels = object_or_empty(wanted.json(), "metadata/labels");
    Result<void> done = co_await act(Mark{action.kind, std::move(object), std::move(labels)});
    co_return done;
  }
  note(action.kind, *std::move(found));
  co_return ok();
}

Async<Result<void>> Performer::act(Delete action) {
  k8s::DeleteOptions options;
  options.uid = action.object->uid();
  options.propagation = "Background";
  Result<void> done =
      co_await client_.remove(type_of(action.kind), action.object->key(), std::move(options));
  if (done || done.error().code == k8s::Errc::not_found) co_return ok();
  // Another object has the name by now: ours is gone.
  if (done.error().code == k8s::Errc::conflict) {
    note_gone(action.kind, *action.object);
    co_return ok();
  }
  co_return done;
}

Async<Result<void>> Performer::act(Release action) {
  Result<void> done =
      co_await act(Amend{action.kind, action.object, release_patch(*action.object)});
  co_return done;
}

Async<Result<void>> Performer::act(Mark action) {
  Json patch = mark_patch(*action.object, action.labels);
  Result<void> done = co_await act(Amend{action.kind, action.object, std::move(patch)});
  co_return done;
}

Async<Result<void>> Performer::act(Amend action) {
  k8s::PatchOptions options;
  options.kind = k8s::PatchKind::json;
  Result<k8s::Object> changed = co_await client_.patch(type_of(action.kind), action.object->key(),
                                                       std::move(action.patch), std::move(options));
  if (!changed && changed.error().code == k8s::Errc::not_found) {
    note_gone(action.kind, *action.object);
    co_return ok();
  }
  // Somebody changed it: take the present state, the next plan decides anew.
  if (!changed && changed.error().code == k8s::Errc::conflict) {
    Result<void> seen = co_await refresh(action.kind, action.object);
    co_return seen;
  }
  if (!changed) co_return std::move(changed).failure();
  bool last = changed->deleting() && array_or_empty(changed->json(), "metadata/finalizers").empty();
  // Noted before it is noted as gone: news of the deletion's beginning, which the watch may still
  // bring, are then known to be old.
  note(action.kind, *std::move(changed));
  if (last) note_gone(action.kind, *action.object);
  co_return ok();
}

Async<Result<void>> Performer::refresh(Kind kind, k8s::ObjectPtr object) {
  Result<k8s::Object> now = co_await client_.get(type_of(kind), object->key());
  if (now) {
    note(kind, *std::move(now));
  } else if (now.error().code == k8s::Errc::not_found) {
    note_gone(kind, *object);
  } else {
    co_return std::move(now).failure();
  }
  co_return ok();
}

Async<Result<void>> Performer::act(Unlabel action) {
  auto executor = co_await asio::this_coro::executor;
  auto batch = std::make_shared<Batch>();
  batch->nodes.assign(action.nodes.begin(), action.nodes.end());
  auto work = [](Performer* self, std::shared_ptr<Batch> shared,
                 DomainUid uid) -> Async<Result<void>> {
    while (!shared->nodes.empty()) {
      k8s::ObjectPtr node = std::move(shared->nodes.front());
      shared->nodes.pop_front();
      Result<void> done = co_await self->act(Amend{Kind::node, node, remove_label_patch(uid)});
      if (!done && !shared->failed) shared->failed = done.error();
    }
    co_return ok();
  };
  TaskGroup tasks(executor);
  for (std::size_t i = 0; i < std::min(nodes_at_once, action.nodes.size()); ++i)
    tasks.spawn("remove node labels", work(this, batch, action.uid));
  Result<void> ended = co_await tasks.join();
  if (ended && batch->failed) co_return Failure{*batch->failed};
  co_return ended;
}

void Performer::note(Kind kind, k8s::Object object) {
  std::string space(object.space());
  if (k8s::Store* store = caches_.store(kind, space)) store->note_written(std::move(object));
}

void Performer::note_gone(Kind kind, const k8s::Object& object) {
  k8s::Store* store = caches_.store(kind, std::string(object.space()));
  if (store) store->note_deleted(object.key(), object.uid());
}

k8s::ResourceType Performer::type_of(Kind kind) const {
  switch (kind) {
    case Kind::domain: return compute_domains();
    case Kind::claim_template: return claim_templates(settings_.resource_version);
    case Kind::daemon_set: return daemon_sets();
    case Kind::clique: return cliques();
    case Kind::node: return nodes();
  }
  __builtin_unreachable();
}

}  // namespace nvdra::roles::controller
