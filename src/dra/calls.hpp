// Calls: the kubelet's requests on the loop's side. gRPC's threads hand a request over by begin()
// and end() and touch nothing else; the answer is given from the loop. No thread waits meanwhile.
#pragma once

#include "base/event.hpp"
#include "base/task_group.hpp"
#include "dra/plugin.hpp"

#include <boost/asio/io_context.hpp>

#include <map>
#include <memory>

namespace nvdra::dra {

enum class Verb { prepare, unprepare };

struct ClaimResult {
  ClaimRef claim;
  Prepared devices;   // of a prepare without error; sub-request names are cut
  std::string error;  // "" = success
};

// One NodePrepareResources or NodeUnprepareResources request.
class ClaimsRequest {
public:
  virtual ~ClaimsRequest() = default;
  // Exactly one of the two is called, once, on the loop.
  virtual void answer(const std::vector<ClaimResult>& results) = 0;
  virtual void refuse(const std::string& why) = 0;

  Verb verb = Verb::prepare;
  std::string method;                // "/package.Service/Method"
  std::vector<ClaimRef> claims;      // as sent
  Duration limit = Duration::max();  // how long the kubelet will listen, from begin() on
};

// Every claim of every request is a coroutine of its own. A claim that is named twice in one
// request is worked once. Request ids count all requests of the process, in the log at level 6.
class Calls {
public:
  // `limit` caps a request's own limit; the driver gets a little less.
  Calls(asio::io_context& loop, Time& time, Plugin& plugin, Duration limit);

  // From any thread.
  void begin(std::shared_ptr<ClaimsRequest> request);
  // From any thread: the kubelet does not listen any more. Its claims are cancelled.
  void end(std::shared_ptr<ClaimsRequest> request);

  // Refuses new requests; waits up to `limit` for those in work; then cancels them and waits for
  // their end. Every request has been answered when this returns.
  Async<void> drain(Duration limit);

  std::size_t in_work() const { return claims_.size(); }
  // For the other services' log lines.
  static std::uint64_t next_id();

private:
  Async<Result<void>> serve(std::shared_ptr<ClaimsRequest> request, Instant begun);
  Async<Result<void>> work(Verb verb, Deadline deadline, ClaimResult* result);
  Async<void> attempt(Verb verb, Deadline deadline, ClaimResult* result);
  Async<Result<void>> idle();

  asio::io_context& loop_;
  Time& time_;
  Plugin& plugin_;
  Duration limit_;
  TaskGroup requests_;
  std::map<const ClaimsRequest*, TaskGroup*> claims_;  // of the requests in work
  Event changed_;
  bool stopping_ = false;
};

}  // namespace nvdra::dra
