#include "dra/checkpoint.hpp"

#include "target.hpp"

using namespace nvdra;

void fuzz(std::string_view text) {
  Result<dra::Checkpoint> checkpoint = dra::parse_checkpoint(text);
  if (!checkpoint) return;
  const std::string written = dra::render(*checkpoint);
  Result<dra::Checkpoint> again = dra::parse_checkpoint(written);
  require(again.has_value(), "what render() writes can be read");
  require(dra::render(*again) == written, "reading and writing again changes nothing");
}
