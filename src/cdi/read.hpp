// File text → spec: reading back what we wrote, for example after a checkpoint was lost.
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"
#include "cdi/spec.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace nvdra::cdi {

// The fields of spec.hpp; others are ignored. The error names the field and line, or is the YAML
// parser's own sentence. parse(render(s)) has the content of s.
Result<Spec> parse(std::string_view text);

// The devices, as allocated ("channel-0"), that a claim's file holds. An error when the file is
// not ours or belongs to another claim: another kind, or a device of another name.
Result<std::vector<std::string>> claim_devices(const Spec& spec, const ClaimUid& claim);

}  // namespace nvdra::cdi
