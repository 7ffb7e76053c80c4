#include "sandbox/controllers.hpp"

#include "sandbox/controllers_list.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace nvdra::sandbox {

Controllers::Controllers(asio::any_io_executor executor, Registry& registry)
    : changed_(std::move(executor)) {
  for (auto make :
       {make_space_controller, make_garbage_collector, make_claim_maker, make_claim_releaser,
        make_scheduler, make_daemon_set_controller, make_replica_set_controller,
        make_deployment_controller, make_job_controller, make_pod_collector, make_event_janitor})
    controllers_.push_back(make(registry));
  for (const Resource* resource : registry.catalog().all())
    for (const ItemPtr& item : registry.all(*resource))
      for (const auto& controller : controllers_)
        controller->changed({resource, registry.version(), nullptr, item, nullptr});
  handler_ = registry.feed().on_change([this](const ChangePtr& change) {
    for (const auto& controller : controllers_) controller->changed(*change);
    changed_.notify();
  });
}

Controllers::~Controllers() = default;

bool Controllers::work() {
  bool worked = false;
  for (const auto& controller : controllers_) worked |= controller->work();
  return worked;
}

void Controllers::settle() {
  while (work()) {
  }
}

Async<Result<void>> Controllers::run() {
  auto executor = co_await asio::this_coro::executor;
  std::uint64_t seen = changed_.count() - 1;
  for (;;) {
    seen = co_await changed_.wait(seen);
    while (work()) co_await asio::post(executor, asio::use_awaitable);
  }
}

}  // namespace nvdra::sandbox
