#include "cdi/read.hpp"
#include "cdi/render.hpp"
#include "target.hpp"

using namespace nvdra;

void fuzz(std::string_view text) {
  Result<cdi::Spec> spec = cdi::parse(text);
  if (!spec) return;
  const std::string written = cdi::render(*spec);
  Result<cdi::Spec> again = cdi::parse(written);
  require(again.has_value(), "what render() writes can be read");
  require(cdi::render(*again) == written, "reading and writing again changes nothing");
}
