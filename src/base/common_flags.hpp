// The flags that every role has: logging, feature gates, API client (node-side.md 2.2, 2.5, 2.7).
#pragma once

#include "base/args.hpp"
#include "base/feature_gates.hpp"

#include <span>
#include <string>
#include <vector>

namespace nvdra {

// v, vmodule, logging-format, log-flush-frequency, log-{text,json}-{split-stream,info-buffer-size}.
std::span<const Flag> logging_flags();
// kubeconfig, kube-api-qps, kube-api-burst. The two rates are accepted for compatibility; 0 or
// unset is no limit, and no limit is ever applied.
std::span<const Flag> kube_client_flags();
// feature-gates
std::span<const Flag> feature_gate_flags();

// `own`, then all of the above, as one table.
std::vector<Flag> with_common_flags(std::span<const Flag> own);

// Configures logging and logs the configuration at level 6. Split streams and buffers need the gate
// LoggingAlphaOptions, a wrong spelling of which is an error here, too.
Result<void> apply_logging(const Args& args);

// FEATURE_GATES first, then --feature-gates on top, per gate (cluster-side.md 9.2).
Result<FeatureGates> gates_of(const Args& args, const Environment& environment);

// The start-up record (node-side.md 2.4): commit, all gates as {"Name":bool,…}, all flags with
// their values under the names that log readers know ("nodeName:", "Verbosity:", "klogVerbosity").
std::string startup_dump(const Args& args, const FeatureGates& gates);

}  // namespace nvdra
