// Probes of a container: when they are asked, and what their answers mean. Pure.
//
// As in a kubelet: until the startup probe has succeeded once, the others rest and the container is
// neither started nor ready. A container with a readiness probe is ready after successThreshold
// successes in a row, and no longer after failureThreshold failures. A startup or liveness probe
// that has failed so often ends the container; its restart policy decides what follows.
#pragma once

#include "base/json.hpp"
#include "base/time.hpp"

#include <string_view>
#include <vector>

namespace nvdra::sandbox {

enum class ProbeKind { startup, readiness, liveness };
std::string_view probe_word(ProbeKind kind);   // "Startup"
std::string_view probe_field(ProbeKind kind);  // "startupProbe"

struct Probe {
  ProbeKind kind;
  std::vector<std::string> command;  // of exec; others are not played and count as successes
  Duration initial_delay{};
  Duration period = std::chrono::seconds(10);
  Duration timeout = std::chrono::seconds(1);
  int failures = 3;
  int successes = 1;
};

// The container's probes, with Kubernetes' defaults; "$(NAME)" in commands is replaced.
std::vector<Probe> probes_of(const Json& container);
bool has_probe(const Json& container, ProbeKind kind);

// Counts answers in a row.
class ProbeCount {
public:
  enum class Verdict { undecided, good, bad };
  explicit ProbeCount(const Probe& probe)
      : failures_(probe.failures), successes_(probe.successes) {}
  Verdict after(bool success);

private:
  int failures_;
  int successes_;
  bool last_ = false;
  int row_ = 0;
};

}  // namespace nvdra::sandbox
