// SlicePublisher: keeps this node's ResourceSlices on the API server as wished (slice_plan.hpp),
// whoever changes or deletes them: a kubelet that restarts deletes them all.
//   * Driven by a watch; own writes are visible at once. Writes that follow each other closely are
//     paced, so that two publishers that quarrel do not shake the server.
//   * The version of resource.k8s.io is chosen at start, and again when the server no longer has
//   it.
//   * If the server drops a field, what it stores becomes the wish, with a warning.
//   * Failures are retried for ever with back-off; trouble() holds the last one.
#pragma once

#include "base/backoff.hpp"
#include "base/event.hpp"
#include "dra/slice_plan.hpp"
#include "k8s/client.hpp"

namespace nvdra::k8s {
class Informer;
class Store;
}  // namespace nvdra::k8s

namespace nvdra::dra {

struct SlicePool {
  std::string driver;
  NodeName node;
  std::vector<SliceDevice> devices;
};

class SlicePublisher {
public:
  SlicePublisher(asio::any_io_executor executor, k8s::Client& client, Time& time, Random random,
                 SlicePool pool);

  // Until cancelled. Slices stay when it ends: a plugin that restarts does not take devices away
  // from the scheduler.
  Async<Result<void>> run();
  // Deletes this driver's slices of this node; not while run() runs.
  Async<Result<void>> withdraw();
  void set_devices(std::vector<SliceDevice> devices);

  // True while the server holds what was wished, as far as we know.
  bool published() const { return published_; }
  const std::string& trouble() const { return trouble_; }
  // Counts changes of the two.
  Event& changes() { return changes_; }

private:
  Async<Result<void>> session();
  Async<Result<SliceOwner>> find_owner();
  Async<Result<void>> publish(const SliceOwner* owner, k8s::Informer* slices);
  Async<Result<bool>> synchronise(const SliceOwner& owner, k8s::Store& slices);
  Async<Result<void>> remove(const SliceOwner& owner, k8s::Store& slices, SlicePlan::Remove slice);
  Async<Result<void>> update(const SliceOwner& owner, k8s::Store& slices, SlicePlan::Update slice);
  Async<Result<void>> create(const SliceOwner& owner, k8s::Store& slices, SlicePlan::Create slice);
  Async<Result<void>> still_served(const SliceOwner& owner);
  void accept_stored(std::size_t slice, const k8s::Object& stored);
  void tell(bool published, std::string trouble);

  asio::any_io_executor executor_;
  k8s::Client& client_;
  Time& time_;
  Random random_;
  SlicePool pool_;
  std::vector<JsonArray> wish_;  // made anew when empty
  Event wake_;
  Event changes_;
  bool published_ = false;
  std::string trouble_;
};

}  // namespace nvdra::dra
