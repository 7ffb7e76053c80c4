// Values of flags and environment variables.
#include "base/args.hpp"
#include "base/feature_gates.hpp"
#include "roles/common/imex_overrides.hpp"
#include "target.hpp"

using namespace nvdra;

void fuzz(std::string_view text) {
  (void)parse_bool(text);
  (void)parse_duration(text);
  FeatureGates gates;
  (void)gates.set(std::string(text));
  Result<roles::ImexOverrides> overrides = roles::parse_imex_overrides(text);
  if (!overrides) return;
  const std::string written = roles::render_imex_overrides(*overrides);
  Result<roles::ImexOverrides> again = roles::parse_imex_overrides(written);
  require(again.has_value(), "what render_imex_overrides() writes can be read");
  require(roles::render_imex_overrides(*again) == written,
          "reading and writing again changes nothing");
}
