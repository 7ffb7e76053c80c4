// Feature gates: the names, stages and defaults of cluster-side.md 9 and node-side.md 2.5.
#pragma once

#include "base/result.hpp"

#include <map>
#include <string>
#include <string_view>

namespace nvdra {

class FeatureGates {
public:
  FeatureGates();  // defaults

  // "Name=bool,Name=bool,": empty items are legal. Explicit settings beat AllAlpha / AllBeta
  // regardless of order; a later call overrides per gate. On an error nothing changes. The error
  // names the item, and the nearest known gate for an unknown name.
  Result<void> set(std::string_view text);
  bool enabled(std::string_view name) const;  // aborts for a name that is not a gate
  // Overrides every setting (hostManaged forces two gates off before check(), W-F1).
  void force(std::string_view name, bool value);
  // The dependency rules; the error names both gates.
  Result<void> check() const;
  // Every gate with its effective value in byte order: "AllAlpha=false,AllBeta=false,…," with the
  // trailing comma, as the daemon's FEATURE_GATES expects.
  std::string to_text() const;
  // {"AllAlpha":false,"AllBeta":false,…}: for the start-up log.
  std::string to_json() const;

private:
  std::map<std::string, bool, std::less<>> explicit_;
  std::map<std::string, bool, std::less<>> forced_;
};

}  // namespace nvdra
