#include "base/common_flags.hpp"

#include "base/log.hpp"
#include "base/try.hpp"
#include "base/version.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace nvdra {
namespace {

using K = FlagKind;

// clang-format off
constexpr std::array logging{
  Flag{"v", "V", K::integer, "0", "verbosity of the log"},
  Flag{.name = "vmodule", .environment = "VMODULE", .kind = K::generic, .help = "verbosity per file: pattern=N,… (text format only)", .joins = true},
  Flag{"logging-format", "LOGGING_FORMAT", K::generic, "text", "text or json"},
  Flag{"log-flush-frequency", "LOG_FLUSH_FREQUENCY", K::duration, "5s", "accepted; every line is written at once"},
  Flag{"log-text-split-stream", "LOG_TEXT_SPLIT_STREAM", K::boolean, "false", "errors to stderr, the rest to stdout; needs the gate LoggingAlphaOptions"},
  Flag{"log-json-split-stream", "LOG_JSON_SPLIT_STREAM", K::boolean, "false", "the same for json"},
  Flag{"log-text-info-buffer-size", "LOG_TEXT_INFO_BUFFER_SIZE", K::generic, "0", "accepted with the gate LoggingAlphaOptions; every line is written at once"},
  Flag{"log-json-info-buffer-size", "LOG_JSON_INFO_BUFFER_SIZE", K::generic, "0", "accepted with the gate LoggingAlphaOptions; every line is written at once"},
};
constexpr std::array kube_client{
  Flag{"kubeconfig", "KUBECONFIG", K::text, "", "kubeconfig file; empty = the pod's service account"},
  Flag{"kube-api-qps", "KUBE_API_QPS", K::real, "0", "accepted for compatibility; requests are not rate limited"},
  Flag{"kube-api-burst", "KUBE_API_BURST", K::integer, "0", "accepted for compatibility"},
};
constexpr std::array feature_gates{
  Flag{.name = "feature-gates", .environment = "FEATURE_GATES", .kind = K::generic, .help = "Name=true|false,…", .joins = true},
};
// clang-format on

// "node-name" → "nodeName", "max-nodes-per-imex-domain" → "maxNodesPerIMEXDomain": the names that
// readers of the log look for.
std::string field_name(std::string_view flag) {
  if (flag == "v") return "klogVerbosity";
  constexpr std::array<std::string_view, 7> acronyms{"api",  "cd", "http", "id",
                                                     "imex", "ip", "uid"};
  std::string name;
  while (!flag.empty()) {
    std::size_t dash = flag.find_first_of("-_");
    std::string word(flag.substr(0, dash));
    flag = dash == std::string_view::npos ? std::string_view{} : flag.substr(dash + 1);
    bool whole = std::ranges::find(acronyms, word) != acronyms.end();
    for (std::size_t i = 0; !name.empty() && i < word.size() && (whole || i == 0); ++i)
      word[i] = static_cast<char>(std::toupper(static_cast<unsigned char>(word[i])));
    name += word;
  }
  return name;
}

bool is_set(const Flag& flag, const Args& args) {
  return flag.kind == K::boolean ? args.boolean(flag.name) : args.text(flag.name) != flag.otherwise;
}

// Refuses the first option that is set although it needs a gate that is off.
Result<void> check_alpha_options(const Args& args) {
  constexpr std::string_view gate = "LoggingAlphaOptions";
  FeatureGates gates;
  if (args.values().contains("feature-gates")) {
    TRY_VOID(gates.set(args.environment_text("feature-gates")));
    TRY_VOID(gates.set(args.text("feature-gates")));
  }
  if (gates.enabled(gate)) return ok();
  for (const Flag& flag : logging)
    if ((flag.name.starts_with("log-text-") || flag.name.starts_with("log-json-")) &&
        is_set(flag, args))
      return refuse(fmt::format("--{} ({}) needs the feature gate {}: set --feature-gates={}=true",
                                flag.name, flag.environment, gate, gate));
  return ok();
}

}  // namespace

std::span<const Flag> logging_flags() {
  return logging;
}
std::span<const Flag> kube_client_flags() {
  return kube_client;
}
std::span<const Flag> feature_gate_flags() {
  return feature_gates;
}

std::vector<Flag> with_common_flags(std::span<const Flag> own) {
  std::vector<Flag> all(own.begin(), own.end());
  for (std::span<const Flag> table : {feature_gate_flags(), kube_client_flags(), logging_flags()})
    all.insert(all.end(), table.begin(), table.end());
  return all;
}

Result<void> apply_logging(const Args& args) {
  log::Options options;
  std::int64_t verbosity = args.integer("v");
  if (verbosity < 0 || verbosity > 2147483647)
    return refuse(fmt::format("-v (V) is {}: use a number from 0 to 2147483647", verbosity));
  options.verbosity = static_cast<int>(verbosity);
  options.vmodule = args.text("vmodule");
  std::string format = args.text("logging-format");
  if (format != "text" && format != "json")
    return refuse(
        fmt::format("--logging-format (LOGGING_FORMAT) is \"{}\": use text or json", format));
  options.format = format == "json" ? log::Format::json : log::Format::text;
  if (args.duration("log-flush-frequency") <= std::chrono::nanoseconds::zero())
    return refuse("--log-flush-frequency (LOG_FLUSH_FREQUENCY) must be above 0");
  if (options.format == log::Format::json && !options.vmodule.empty())
    return refuse(
        "--vmodule (VMODULE) works with --logging-format=text only: leave one of them out");
  TRY_VOID(check_alpha_options(args));
  options.split_stream = args.boolean(fmt::format("log-{}-split-stream", format));
  TRY_VOID(log::configure(options));
  LOG_INFO(6, "Logging configuration",
           {{"verbosity", verbosity},
            {"vmodule", options.vmodule},
            {"format", format},
            {"splitStream", options.split_stream}});
  return ok();
}

Result<FeatureGates> gates_of(const Args& args, const Environment& environment) {
  FeatureGates gates;
  auto found = environment.find("FEATURE_GATES");
  TRY_VOID(gates.set(found == environment.end() ? std::string_view{} : found->second));
  TRY_VOID(gates.set(args.text("feature-gates")));
  return gates;
}

std::string startup_dump(const Args& args, const FeatureGates& gates) {
  std::string flags;
  for (const auto& [name, value] : args.values())
    flags += fmt::format("{}{}: {}", flags.empty() ? "" : ", ", field_name(name), value);
  return fmt::format("Commit: {} Verbosity: {} featureGates: {} flags: {{{}}}", commit(),
                     args.integer("v"), gates.to_json(), flags);
}

}  // namespace nvdra
