#include "dra/calls.hpp"

#include "base/json.hpp"
#include "base/log.hpp"
#include "base/within.hpp"

#include <boost/asio/post.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::dra {
namespace {

// The answer must be on its way before the kubelet stops listening.
Duration without_margin(Duration limit) {
  return limit - std::min<Duration>(1s, limit / 10);
}

std::string what(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "unknown exception";
  }
}

// A bug in one claim's work is that claim's error, and ends nothing else.
template <class T>
Async<Result<T>> contained(Async<Result<T>> work) {
  try {
    Result<T> done = co_await std::move(work);
    co_return done;
  } catch (...) {
    std::exception_ptr thrown = std::current_exception();
    if (is_cancellation(thrown)) throw;
    LOG_ERROR("A claim's work was given up", {{"err", what(thrown)}});
    co_return refuse("internal error: " + what(thrown));
  }
}

const char* name_of(Verb verb) {
  return verb == Verb::prepare ? "prepare" : "unprepare";
}

// UIDs become parts of file names.
bool is_safe(const std::string& uid) {
  return !uid.empty() && uid.size() <= 64 && std::ranges::all_of(uid, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
  });
}

std::vector<ClaimResult> open_results(const std::vector<ClaimRef>& claims) {
  std::vector<ClaimResult> results;
  for (const ClaimRef& claim : claims) {
    bool known =
        std::ranges::any_of(results, [&](const auto& r) { return r.claim.uid == claim.uid; });
    if (!known) results.push_back({claim, {}, {}});
  }
  return results;
}

void cut_subrequests(Prepared& devices) {
  for (PreparedDevice& device : devices)
    for (std::string& request : device.requests)
      request.resize(std::min(request.find('/'), request.size()));
}

std::string text_of(const std::vector<ClaimRef>& claims) {
  JsonArray list;
  for (const ClaimRef& claim : claims) list.emplace_back(claim.text());
  return to_text(list);
}

JsonArray list_of(const std::vector<std::string>& texts) {
  return JsonArray(texts.begin(), texts.end());
}

std::string text_of(const std::vector<ClaimResult>& results) {
  JsonObject claims;
  for (const ClaimResult& result : results) {
    JsonArray devices;
    for (const PreparedDevice& device : result.devices)
      devices.push_back(JsonObject{{"requests", list_of(device.requests)},
                                   {"pool", device.pool},
                                   {"device", device.device},
                                   {"cdi", list_of(device.cdi_ids)}});
    JsonObject entry;
    if (!devices.empty()) entry["devices"] = std::move(devices);
    if (!result.error.empty()) entry["error"] = result.error;
    claims[result.claim.uid.value] = std::move(entry);
  }
  return to_text(claims);
}

}  // namespace

Calls::Calls(asio::io_context& loop, Time& time, Plugin& plugin, Duration limit)
    : loop_(loop),
      time_(time),
      plugin_(plugin),
      limit_(limit),
      requests_(loop.get_executor()),
      changed_(loop.get_executor()) {}

std::uint64_t Calls::next_id() {
  static std::uint64_t last = 0;
  return ++last;
}

void Calls::begin(std::shared_ptr<ClaimsRequest> request) {
  asio::post(loop_, [this, request = std::move(request)] {
    if (stopping_) {
      request->refuse("the kubelet plugin is stopping");
      return;
    }
    claims_.emplace(request.get(), nullptr);
    requests_.spawn(request->method, serve(request, time_.now()));
  });
}

void Calls::end(std::shared_ptr<ClaimsRequest> request) {
  asio::post(loop_, [this, request = std::move(request)] {
    auto found = claims_.find(request.get());
    if (found == claims_.end()) return;
    if (found->second) {
      found->second->stop();
    } else {
      request->claims.clear();  // not begun yet
    }
  });
}

Async<Result<void>> Calls::serve(std::shared_ptr<ClaimsRequest> request, Instant begun) {
  std::uint64_t id = next_id();
  LOG_INFO(6, "gRPC request",
           {{"requestID", id}, {"method", request->method}, {"claims", text_of(request->claims)}});
  Deadline deadline = begun + without_margin(std::min(limit_, request->limit));
  std::vector<ClaimResult> results = open_results(request->claims);
  TaskGroup claims(loop_.get_executor());
  claims_[request.get()] = &claims;
  for (ClaimResult& result : results)
    claims.spawn(result.claim.text(), work(request->verb, deadline, &result));
  Result<void> joined = co_await claims.join();
  (void)joined;  // each claim's error is in its result
  claims_.erase(request.get());
  LOG_INFO(6, "gRPC response",
           {{"requestID", id}, {"method", request->method}, {"claims", text_of(results)}});
  request->answer(results);
  changed_.notify();
  co_return ok();
}

// Never fails and never throws, so that no claim can stop another one.
Async<Result<void>> Calls::work(Verb verb, Deadline deadline, ClaimResult* result) {
  try {
    co_await attempt(verb, deadline, result);
  } catch (...) {
    result->error = fmt::format("{} claim {}: the kubelet plugin is stopping or was not waited for",
                                name_of(verb), result->claim.text());
  }
  if (!result->error.empty()) result->devices.clear();
  co_return ok();
}

Async<void> Calls::attempt(Verb verb, Deadline deadline, ClaimResult* result) {
  const ClaimRef& claim = result->claim;
  if (!is_safe(claim.uid.value)) {
    result->error = fmt::format("claim {}: this is no UID", claim.text());
    co_return;
  }
  Duration left = std::max(deadline - time_.now(), Duration{});
  std::optional<Error> error;
  if (verb == Verb::prepare) {
    Result<Prepared> prepared =
        co_await within(time_, left, contained(plugin_.prepare(claim, deadline)));
    if (!prepared) error = prepared.error();
    if (prepared) result->devices = *std::move(prepared);
    cut_subrequests(result->devices);
  } else {
    Result<void> done = co_await within(time_, left, contained(plugin_.unprepare(claim, deadline)));
    if (!done) error = done.error();
  }
  if (!error) co_return;
  bool late = error->doing.empty() && error->code == boost::system::errc::timed_out;
  result->error = late ? fmt::format("{} claim {}: no answer in time", name_of(verb), claim.text())
                       : error->text();
  // An empty text would be a success.
  if (result->error.empty()) result->error = fmt::format("{} failed", name_of(verb));
}

Async<Result<void>> Calls::idle() {
  while (!claims_.empty()) {
    std::uint64_t seen = changed_.count();
    co_await changed_.wait(seen);
  }
  co_return ok();
}

Async<void> Calls::drain(Duration limit) {
  stopping_ = true;
  Result<void> emptied = co_await within(time_, limit, idle());
  if (!emptied) LOG_INFO(1, "Requests are cut off", {{"requests", claims_.size()}});
  requests_.stop();
  Result<void> joined = co_await requests_.join();
  (void)joined;
}

}  // namespace nvdra::dra
