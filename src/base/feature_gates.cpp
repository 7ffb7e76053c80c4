#include "base/feature_gates.hpp"

#include "base/args.hpp"
#include "base/parse_words.hpp"
#include "base/try.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace nvdra {
namespace {

enum class Stage { special, alpha, beta };

struct Gate {
  std::string_view name;
  Stage stage;
  bool otherwise;
};

// Every program accepts every gate, so one value of FEATURE_GATES serves a whole installation.
constexpr std::array gates{
    Gate{"AllAlpha", Stage::special, false},
    Gate{"AllBeta", Stage::special, false},
    Gate{"ComputeDomainCliques", Stage::beta, true},
    Gate{"ConsumableShares", Stage::alpha, false},
    Gate{"ContextualLogging", Stage::beta, true},
    Gate{"CrashOnNVLinkFabricErrors", Stage::beta, true},
    Gate{"DRAListTypeAttributes", Stage::alpha, false},
    Gate{"DeviceMetadata", Stage::alpha, false},
    Gate{"DynamicMIG", Stage::alpha, false},
    Gate{"FabricManagerPartitioning", Stage::alpha, false},
    Gate{"HostManagedIMEXDaemon", Stage::alpha, false},
    Gate{"IMEXDaemonsWithDNSNames", Stage::beta, true},
    Gate{"LoggingAlphaOptions", Stage::alpha, false},
    Gate{"LoggingBetaOptions", Stage::beta, true},
    Gate{"MPSSupport", Stage::alpha, false},
    Gate{"NVMLDeviceHealthCheck", Stage::alpha, false},
    Gate{"PassthroughSupport", Stage::alpha, false},
    Gate{"TimeSlicingSettings", Stage::alpha, false},
};
static_assert(std::ranges::is_sorted(gates, {}, &Gate::name), "keep gates sorted by name");

struct Pair {
  std::string_view first, second;
};
constexpr std::array requirements{
    Pair{"ComputeDomainCliques", "IMEXDaemonsWithDNSNames"},
    Pair{"DeviceMetadata", "PassthroughSupport"},
};
constexpr std::array exclusions{
    Pair{"DynamicMIG", "PassthroughSupport"},
    Pair{"DynamicMIG", "MPSSupport"},
    Pair{"PassthroughSupport", "NVMLDeviceHealthCheck"},
};

const Gate* find_gate(std::string_view name) {
  auto found = std::ranges::find(gates, name, &Gate::name);
  return found == gates.end() ? nullptr : &*found;
}

const Gate& known(std::string_view name) {
  const Gate* gate = find_gate(name);
  if (gate) return *gate;
  std::string text = fmt::format("bug: {} is not a feature gate\n", name);
  [[maybe_unused]] ssize_t ignored = ::write(STDERR_FILENO, text.data(), text.size());
  std::abort();
}

Failure unknown_gate(std::string_view name) {
  std::array<std::string_view, gates.size()> names;
  std::ranges::transform(gates, names.begin(), &Gate::name);
  std::string_view near = nearest(name, names);
  if (!near.empty())
    return refuse(fmt::format("unknown feature gate \"{}\", did you mean {}?", name, near));
  return refuse(fmt::format("unknown feature gate \"{}\", known are {}", name,
                            fmt::join(names.begin(), names.end(), ", ")));
}

Result<std::pair<std::string, bool>> parse_item(std::string_view item) {
  std::size_t equals = item.find('=');
  if (equals == std::string_view::npos)
    return refuse(fmt::format("feature gate item \"{}\" has no value, expected {}=true or {}=false",
                              item, item, item));
  std::string_view name = trimmed(item.substr(0, equals));
  if (!find_gate(name)) return unknown_gate(name);
  Result<bool> value = parse_bool(trimmed(item.substr(equals + 1)));
  if (!value)
    return refuse(
        fmt::format("feature gate item \"{}\" has no boolean value, expected {}=true or {}=false",
                    item, name, name));
  return std::pair(std::string(name), *value);
}

}  // namespace

// The logging library sets ContextualLogging itself, so AllBeta does not reach it.
FeatureGates::FeatureGates() : explicit_{{"ContextualLogging", true}} {}

Result<void> FeatureGates::set(std::string_view text) {
  auto settings = explicit_;
  while (!text.empty()) {
    std::size_t comma = text.find(',');
    std::string_view item = trimmed(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    if (item.empty()) continue;
    TRY(auto setting, parse_item(item));
    settings.insert_or_assign(setting.first, setting.second);
  }
  explicit_ = std::move(settings);
  return ok();
}

bool FeatureGates::enabled(std::string_view name) const {
  const Gate& gate = known(name);
  if (auto forced = forced_.find(name); forced != forced_.end()) return forced->second;
  if (auto own = explicit_.find(name); own != explicit_.end()) return own->second;
  if (gate.stage != Stage::special) {
    auto all = explicit_.find(gate.stage == Stage::alpha ? "AllAlpha" : "AllBeta");
    if (all != explicit_.end()) return all->second;
  }
  return gate.otherwise;
}

void FeatureGates::force(std::string_view name, bool value) {
  forced_.insert_or_assign(std::string(known(name).name), value);
}

Result<void> FeatureGates::check() const {
  for (const Pair& pair : requirements)
    if (enabled(pair.first) && !enabled(pair.second))
      return refuse(
          fmt::format("feature gate {} requires {} to also be enabled", pair.first, pair.second));
  for (const Pair& pair : exclusions)
    if (enabled(pair.first) && enabled(pair.second))
      return refuse(fmt::format("feature gate {} is currently mutually exclusive with {}",
                                pair.first, pair.second));
  return ok();
}

std::string FeatureGates::to_text() const {
  std::string text;
  for (const Gate& gate : gates) text += fmt::format("{}={},", gate.name, enabled(gate.name));
  return text;
}

std::string FeatureGates::to_json() const {
  std::string text;
  for (const Gate& gate : gates)
    text += fmt::format("{}\"{}\":{}", text.empty() ? "" : ",", gate.name, enabled(gate.name));
  return "{" + text + "}";
}

}  // namespace nvdra
