// The checksum inside checkpoint.json (node-side.md 7.3) [KEEP]: 32 bit FNV-1a over the text
// "([]uint8)[" + the bytes of the input in decimal, separated by spaces + "]".
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace nvdra::dra {

// Takes the input in pieces. About one step per byte instead of one per decimal digit: what a byte
// does to the hash depends on the hash's lowest eight bits only, so it is tabulated.
class Checksum {
public:
  Checksum();
  void add(std::string_view piece);
  // The same for a piece that comes again and again: free while what came before it is the same.
  struct Memo {
    bool known = false;
    std::uint32_t before = 0;
    std::uint32_t after = 0;
  };
  void add(std::string_view piece, Memo& memo);
  std::uint32_t value() const;

private:
  std::uint32_t hash_;
  bool empty_ = true;
};

std::uint32_t checksum(std::string_view text);
// Of the concatenation of `pieces`.
std::uint32_t checksum(const std::vector<std::string_view>& pieces);

}  // namespace nvdra::dra
