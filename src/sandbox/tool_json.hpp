// JSON between the simulated tools.
#pragma once

#include "base/json.hpp"

namespace nvdra::sandbox {

inline Result<Json> read_json_text(std::string_view text) {
  boost::system::error_code failed;
  Json value = boost::json::parse(text, failed);
  if (failed) return fail(failed, "parse JSON");
  return value;
}

}  // namespace nvdra::sandbox
