// Faults on demand. Tests in the process call ApiServer::faults(); everybody else uses HTTP:
//   POST   /sandbox/faults     one rule or a list of rules (JSON); added behind those in force
//   GET    /sandbox/faults     the rules in force, with `hits`
//   DELETE /sandbox/faults     none any more
//   POST   /sandbox/compact    forgets the history: watches from the past end with 410
//   DELETE /sandbox/watches    cuts the open watch connections; ?resource=pods only those
//   GET    /sandbox/requests   counts: [{verb, resource, subresource, userAgent, status, count}]
//   DELETE /sandbox/requests   counts from zero
// A rule:
//   {"match": {"verb": "patch",            get list watch create update patch delete
//                                          deletecollection; absent parts match everything
//              "resource": "computedomains", plural, or plural.group
//              "subresource": "status", "namespace": "…", "name": "…", "userAgent": "prefix"},
//    "skip": 0,                 the first n matching requests pass
//    "count": 1,                then n are hit; 0 = all from then on
//    "status": 409,             answers with this status instead of doing it; with
//    "reason": "Conflict", "message": "…", "retryAfterSeconds": 2       (optional)
//    "delayMilliseconds": 500,  waits first; together with the others, or alone
//    "cut": "before",           closes the connection: `before` = nothing was done, `after` = it
//    was
//                               done but no answer came, `body` = in the middle of the answer
//    "watch": {"dropEvents": 2,       the first n events of the watch are not sent
//              "silent": true,        nothing is ever sent, the connection stays open
//              "endAfterEvents": 3}}  cut after n events
// Rules are tried in order; the first that matches is used, with all it says.
#pragma once

#include "base/json.hpp"
#include "base/time.hpp"

#include <list>
#include <optional>

namespace nvdra::sandbox {

// What is asked, in the words of rules.
struct Asked {
  std::string verb;
  std::string resource;  // plural
  std::string group = {};
  std::string subresource = {};
  std::string space = {};
  std::string name = {};
  std::string user_agent = {};
};

struct Fault {
  enum class Cut { no, before, after, body };
  int status = 0;
  std::string reason = {};
  std::string message = {};
  std::optional<std::int64_t> retry_after = {};
  Duration delay{0};
  Cut cut = Cut::no;
  std::size_t drop_events = 0;
  bool silent = false;
  std::size_t end_after = 0;  // 0 = never
};

class Faults {
public:
  // A rule or a list of rules in the form above. The error names the field.
  Result<void> add(const Json& rules);
  void clear() { rules_.clear(); }
  Json to_json() const;

  // The fault that hits this request, which is counted.
  std::optional<Fault> decide(const Asked& asked);

private:
  struct Rule {
    Json text;
    Fault fault;
    std::int64_t skip;
    std::int64_t count;
    std::int64_t seen = 0;
    std::int64_t hits = 0;
  };
  Result<Rule> parse(const Json& text) const;

  std::list<Rule> rules_;
};

}  // namespace nvdra::sandbox
