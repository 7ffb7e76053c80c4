#include "k8s/work_queue.hpp"

namespace nvdra::k8s {
WorkQueue::WorkQueue(asio::any_io_executor executor, Time& time)
    : time_(time), changed_(std::move(executor)) {}

void WorkQueue::add(std::string key) {
  if (auto delayed = delayed_.find(key); delayed != delayed_.end()) {
    due_.erase({delayed->second, key});
    delayed_.erase(delayed);
  }
  if (!dirty_.insert(key).second) return;
  if (running_.contains(key)) return;
  ready_.push_back(std::move(key));
  changed_.notify();
}

void WorkQueue::add_after(std::string key, Duration delay) {
  if (delay <= Duration::zero()) return add(std::move(key));
  Instant due = time_.now() + delay;
  auto [at, added] = delayed_.try_emplace(key, due);
  if (!added) {
    if (at->second <= due) return;
    due_.erase({at->second, key});
    at->second = due;
  }
  due_.emplace(due, std::move(key));
  changed_.notify();
}

Async<std::string> WorkQueue::next() {
  for (;;) {
    release_due();
    if (!ready_.empty()) break;
    std::uint64_t seen = changed_.count();
    std::optional<Duration> limit = until_due();
    if (limit) {
      // A time-out is news too: a key has become due.
      co_await changed_.wait_for(time_, *limit, seen);
    } else {
      co_await changed_.wait(seen);
    }
  }
  std::string key = std::move(ready_.front());
  ready_.pop_front();
  dirty_.erase(key);
  running_.insert(key);
  co_return key;
}

void WorkQueue::done(const std::string& key) {
  running_.erase(key);
  if (!dirty_.contains(key)) return;
  ready_.push_back(key);
  changed_.notify();
}

void WorkQueue::release_due() {
  while (!due_.empty() && due_.begin()->first <= time_.now()) {
    std::string key = due_.begin()->second;
    add(std::move(key));
  }
}

std::optional<Duration> WorkQueue::until_due() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first - time_.now();
}

}  // namespace nvdra::k8s
