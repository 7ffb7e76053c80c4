#include "sandbox/pod_probes.hpp"

#include "sandbox/pod_environment.hpp"

#include <algorithm>

namespace nvdra::sandbox {

std::string_view probe_word(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::startup: return "Startup";
    case ProbeKind::readiness: return "Readiness";
    case ProbeKind::liveness: return "Liveness";
  }
  __builtin_unreachable();
}

std::string_view probe_field(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::startup: return "startupProbe";
    case ProbeKind::readiness: return "readinessProbe";
    case ProbeKind::liveness: return "livenessProbe";
  }
  __builtin_unreachable();
}

bool has_probe(const Json& container, ProbeKind kind) {
  const Json* probe = find(container, probe_field(kind));
  return probe && probe->is_object();
}

std::vector<Probe> probes_of(const Json& container) {
  std::vector<Probe> probes;
  for (const ProbeKind kind : {ProbeKind::startup, ProbeKind::readiness, ProbeKind::liveness}) {
    if (!has_probe(container, kind)) continue;
    const Json& json = *find(container, probe_field(kind));
    const auto number = [&](std::string_view key, std::int64_t otherwise) {
      const std::int64_t value = int_or(json, key, otherwise);
      return value > 0 ? value : otherwise;
    };
    const auto seconds = [&](std::string_view key, std::int64_t otherwise) {
      return std::chrono::seconds(number(key, otherwise));
    };
    probes.push_back(
        {.kind = kind,
         .command = expanded(array_or_empty(json, "exec/command"), literal_variables(container)),
         .initial_delay = seconds("initialDelaySeconds", 0),
         .period = seconds("periodSeconds", 10),
         .timeout = seconds("timeoutSeconds", 1),
         .failures = static_cast<int>(number("failureThreshold", 3)),
         .successes = static_cast<int>(number("successThreshold", 1))});
  }
  return probes;
}

ProbeCount::Verdict ProbeCount::after(bool success) {
  row_ = success == last_ ? row_ + 1 : 1;
  last_ = success;
  if (success) return row_ >= successes_ ? Verdict::good : Verdict::undecided;
  return row_ >= failures_ ? Verdict::bad : Verdict::undecided;
}

}  // namespace nvdra::sandbox
