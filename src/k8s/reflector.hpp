// Reflector: mirrors one resource type into a Store: list, follow, repeat.
//   * The version advances with every event and bookmark; 410 → list again, filled aside and
//     swapped in at once (resume.hpp).
//   * One malformed object is skipped and counted; it does not end the watch.
//   * Failures are paced (0.8 s doubling to 30 s, times [1, 2), reset after 2 minutes of health); a
//     watch that ends at once without an event counts as a failure. What a human must cure (400,
//     401, 403, 404) is logged at warning each time, everything else at level 1.
// Log lines that tests grep: "Listing and watching" (3), "Caches populated" (2), file
// reflector.cpp.
#pragma once

#include "base/backoff.hpp"
#include "k8s/client.hpp"
#include "k8s/resume.hpp"
#include "k8s/store.hpp"

namespace nvdra::k8s {

struct Scope {
  ResourceType type;
  std::string space = {};  // "" = all namespaces
  std::string label_selector = {};
  std::string field_selector = {};
};

class Reflector {
public:
  Reflector(Client& client, Time& time, Random random, Scope scope, Store& store);

  // Runs until cancelled; never returns an error.
  Async<Result<void>> run();

  const Scope& scope() const { return scope_; }
  // Why the store is not up to date at the moment ("list computedomains: forbidden …"), or "".
  const std::string& trouble() const { return trouble_; }
  // Objects and events that could not be understood.
  std::uint64_t skipped() const { return skipped_; }

private:
  Async<bool> list();
  Async<Resume> follow();
  Async<WatchEnd> watch_once();
  Async<std::optional<Error>> read_events(Watch& watch, bool& shown);
  Async<void> pause(boost::system::error_code code, std::string why);
  void apply(WatchEvent event);
  bool understood(const Object& object);

  Client& client_;
  Time& time_;
  Random random_;
  Backoff backoff_;
  Scope scope_;
  Store& store_;
  std::string version_;
  Instant listed_{};
  int failures_ = 0;  // watches in a row
  std::string trouble_;
  std::uint64_t skipped_ = 0;
};

}  // namespace nvdra::k8s
