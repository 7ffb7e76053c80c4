#include "roles/common/opaque_config.hpp"

#include "target.hpp"

using namespace nvdra;

void fuzz(std::string_view text) {
  if (roles::validate_domain_id(text)) {
    require(text.find('/') == std::string_view::npos, "an accepted domain ID has no slash");
    require(text != "." && text != "..", "an accepted domain ID is no folder of its own");
  }
  Result<Json> json = parse_json(text);
  if (!json) return;
  Result<roles::OpaqueConfig> strict = roles::decode_strict(*json, text);
  if (strict)
    require(roles::decode_lenient(*json).has_value(), "what is strictly right can be read back");
}
