#include "dra/slices.hpp"

#include "base/log.hpp"
#include "base/task_group.hpp"
#include "base/try.hpp"
#include "k8s/informer.hpp"

#include <fmt/format.h>

namespace nvdra::dra {
namespace {

constexpr Duration ready_limit = 30s;
constexpr Duration safety_pass = 10min;
constexpr Backoff::Shape retry_shape{800ms, 30s, 1.0, 120s};
constexpr Backoff::Shape pace_shape{200ms, 30s, 0.25, 120s};

const k8s::ResourceType node_type{"", "v1", "nodes", "Node", false};

std::string selector_of(const SlicePool& pool) {
  return fmt::format("spec.driver={},spec.nodeName={}", pool.driver, pool.node.value);
}

// A 404 for a collection: this version of the API is not served.
bool is_version_gone(const Error& error) {
  return error.code == k8s::Errc::not_found || error.code == k8s::Errc::method_not_allowed;
}

}  // namespace

SlicePublisher::SlicePublisher(asio::any_io_executor executor, k8s::Client& client, Time& time,
                               Random random, SlicePool pool)
    : executor_(executor),
      client_(client),
      time_(time),
      random_(std::move(random)),
      pool_(std::move(pool)),
      wake_(executor),
      changes_(executor) {}

void SlicePublisher::set_devices(std::vector<SliceDevice> devices) {
  pool_.devices = std::move(devices);
  wish_.clear();
  wake_.notify();
}

void SlicePublisher::tell(bool published, std::string trouble) {
  if (published == published_ && trouble == trouble_) return;
  if (published && !published_)
    LOG_INFO(1, "Published the devices", {{"node", pool_.node.value}, {"driver", pool_.driver}});
  if (!trouble.empty()) LOG_WARNING("Cannot publish the devices, retrying", {{"err", trouble}});
  published_ = published;
  trouble_ = std::move(trouble);
  changes_.notify();
}

Async<Result<void>> SlicePublisher::run() {
  Backoff backoff(retry_shape, random_);
  for (;;) {
    Result<void> ended = co_await session();
    if (!ended) tell(false, ended.error().text());  // it ends well only by cancellation
    co_await time_.sleep(backoff.next(time_.now()));
  }
}

// From the choice of a version to its end.
Async<Result<void>> SlicePublisher::session() {
  CO_TRY(SliceOwner owner, co_await find_owner());
  wish_.clear();
  k8s::Informer slices(executor_, client_, time_, random_,
                       {.type = slice_type(owner.version), .field_selector = selector_of(pool_)});
  slices.store.on_change([this](const auto&, const auto&) { wake_.notify(); });
  TaskGroup tasks(executor_);
  tasks.spawn("watch resourceslices", slices.run());
  tasks.spawn("publish resourceslices", publish(&owner, &slices));
  Result<void> ended = co_await tasks.join();
  co_return ended;
}

Async<Result<SliceOwner>> SlicePublisher::find_owner() {
  CO_TRY(std::string version, co_await k8s::discover_resource_version(client_));
  Result<k8s::Object> node = co_await client_.get(node_type, {"", pool_.node.value});
  if (!node) co_return std::move(node).failure();
  co_return SliceOwner{pool_.driver, pool_.node, std::string(node->uid()), std::move(version)};
}

Async<Result<void>> SlicePublisher::publish(const SliceOwner* owner, k8s::Informer* slices) {
  for (;;) {
    Result<void> ready = co_await slices->wait_ready(ready_limit);
    if (ready) break;
    tell(false, ready.error().text());
    CO_TRY_VOID(co_await still_served(*owner));
  }
  Backoff pace(pace_shape, random_);
  Backoff retry(retry_shape, random_);
  for (;;) {
    std::uint64_t seen = wake_.count();
    Result<bool> wrote = co_await synchronise(*owner, slices->store);
    tell(wrote.has_value(), wrote ? "" : wrote.error().text());
    if (!wrote) {
      if (is_version_gone(wrote.error())) co_return std::move(wrote).failure();
      co_await time_.sleep(retry.next(time_.now()));
      continue;
    }
    if (*wrote) {
      co_await time_.sleep(pace.next(time_.now()));
      continue;
    }
    const bool woken = co_await wake_.wait_for(time_, safety_pass, seen);
    if (!woken && !slices->trouble().empty()) {
      CO_TRY_VOID(co_await still_served(*owner));
    }
  }
}

Async<Result<void>> SlicePublisher::still_served(const SliceOwner& owner) {
  Result<bool> served = co_await client_.serves(slice_type(owner.version));
  if (served && !*served)
    co_return fail(k8s::Errc::not_found,
                   fmt::format("resource.k8s.io/{} is not served any more", owner.version));
  co_return ok();  // served, or not known: the reflector goes on trying
}

// True if anything was written.
Async<Result<bool>> SlicePublisher::synchronise(const SliceOwner& owner, k8s::Store& slices) {
  if (wish_.empty()) wish_ = slice_devices(pool_.devices, owner.version);
  SlicePlan plan = plan_slices(owner, wish_, slices.all());
  for (SlicePlan::Remove& slice : plan.removes) {
    CO_TRY_VOID(co_await remove(owner, slices, std::move(slice)));
  }
  for (SlicePlan::Update& slice : plan.updates) {
    CO_TRY_VOID(co_await update(owner, slices, std::move(slice)));
  }
  for (SlicePlan::Create& slice : plan.creates) {
    CO_TRY_VOID(co_await create(owner, slices, std::move(slice)));
  }
  co_return !plan.empty();
}

Async<Result<void>> SlicePublisher::remove(const SliceOwner& owner, k8s::Store& slices,
                                           SlicePlan::Remove slice) {
  k8s::ObjectKey key{"", slice.name};
  LOG_INFO(5, "Deleting obsolete ResourceSlice", {{"slice", slice.name}});
  Result<void> removed = co_await client_.remove(
      slice_type(owner.version), key, {.uid = slice.uid, .resource_version = slice.version});
  if (!removed && removed.error().code != k8s::Errc::not_found)
    co_return std::move(removed).failure();
  slices.note_deleted(key, slice.uid);
  co_return ok();
}

Async<Result<void>> SlicePublisher::update(const SliceOwner& owner, k8s::Store& slices,
                                           SlicePlan::Update slice) {
  k8s::ObjectKey key{"", slice.name};
  LOG_INFO(5, "Updating ResourceSlice", {{"slice", slice.name}});
  k8s::ObjectPtr before = slices.get(key);
  Result<k8s::Object> written =
      co_await client_.patch(slice_type(owner.version), key, std::move(slice.patch));
  if (!written && written.error().code == k8s::Errc::not_found) {
    if (before) slices.note_deleted(key, before->uid());
    co_return ok();  // created by the next pass
  }
  if (!written) co_return std::move(written).failure();
  accept_stored(slice.slice, *written);
  slices.note_written(*std::move(written));
  co_return ok();
}

Async<Result<void>> SlicePublisher::create(const SliceOwner& owner, k8s::Store& slices,
                                           SlicePlan::Create slice) {
  Result<k8s::Object> written =
      co_await client_.create(slice_type(owner.version), "", std::move(slice.object));
  if (!written) co_return std::move(written).failure();
  LOG_INFO(5, "Created ResourceSlice", {{"slice", written->name()}});
  accept_stored(slice.slice, *written);
  slices.note_written(*std::move(written));
  co_return ok();
}

void SlicePublisher::accept_stored(std::size_t slice, const k8s::Object& stored) {
  const JsonArray& devices = array_or_empty(stored.json(), "spec/devices");
  if (slice >= wish_.size() || devices == wish_[slice]) return;
  LOG_WARNING("The API server dropped fields of the devices, publishing what is left",
              {{"slice", stored.name()}, {"stored", to_text(devices)}});
  wish_[slice] = devices;
}

Async<Result<void>> SlicePublisher::withdraw() {
  CO_TRY(std::string version, co_await k8s::discover_resource_version(client_));
  k8s::ResourceType type = slice_type(version);
  CO_TRY(k8s::ListAnswer found,
         co_await client_.list(type, "", {.field_selector = selector_of(pool_)}));
  for (const k8s::Object& slice : found.items) {
    Result<void> removed =
        co_await client_.remove(type, slice.key(), {.uid = std::string(slice.uid())});
    if (!removed && removed.error().code != k8s::Errc::not_found)
      co_return std::move(removed).failure();
  }
  tell(false, "");
  co_return ok();
}

}  // namespace nvdra::dra
