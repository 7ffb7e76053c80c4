#include "imex/text.hpp"

namespace nvdra::imex {

std::string excerpt(std::string_view text) {
  constexpr std::size_t most = 400;
  std::string joined;
  while (const auto line = next_line(text)) {
    const std::string_view row = trim(*line);
    if (row.empty()) continue;
    if (!joined.empty()) joined += " | ";
    joined += row;
    if (joined.size() > most) {
      std::size_t cut = most;
      while (cut > 0 && (static_cast<unsigned char>(joined[cut]) & 0xC0) == 0x80) --cut;
      return joined.substr(0, cut) + "…";
    }
  }
  return joined.empty() ? "nothing" : joined;
}

}  // namespace nvdra::imex
