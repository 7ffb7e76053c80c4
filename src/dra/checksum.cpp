#include "dra/checksum.hpp"

#include <array>
#include <string>

namespace nvdra::dra {
namespace {

constexpr std::uint32_t offset = 2166136261u;
constexpr std::uint32_t prime = 16777619u;

constexpr std::uint32_t fnv(std::uint32_t hash, std::string_view text) {
  for (char c : text) hash = (hash ^ static_cast<std::uint8_t>(c)) * prime;
  return hash;
}

// What " <decimal>" does to a hash. x ^ c equals x plus something that depends on the lowest eight
// bits of x only; so a whole text maps x to x * prime^length + addend[x & 255] (modulo 2^32), and
// the lowest eight bits to low[x & 255].
struct Effect {
  bool known = false;
  std::uint32_t factor = 0;
  std::array<std::uint32_t, 256> addend{};
  std::array<std::uint8_t, 256> low{};
};

Effect effect_of(std::string_view text) {
  Effect effect;
  effect.known = true;
  effect.factor = 1;
  for (std::size_t i = 0; i < text.size(); ++i) effect.factor *= prime;
  for (std::uint32_t x = 0; x < 256; ++x) {
    std::uint32_t hash = fnv(x, text);
    effect.addend[x] = hash - x * effect.factor;
    effect.low[x] = static_cast<std::uint8_t>(hash);
  }
  return effect;
}

// Made on first use: JSON uses about seventy of the 256 bytes.
const Effect& effect_of(std::uint8_t byte) {
  static std::array<Effect, 256> effects{};
  if (!effects[byte].known) effects[byte] = effect_of(" " + std::to_string(byte));
  return effects[byte];
}

}  // namespace

Checksum::Checksum() : hash_(fnv(offset, "([]uint8)[")) {}

void Checksum::add(std::string_view piece) {
  if (piece.empty()) return;
  if (empty_) {  // the only byte without a space before it
    hash_ = fnv(hash_, std::to_string(static_cast<std::uint8_t>(piece.front())));
    piece.remove_prefix(1);
    empty_ = false;
  }
  std::uint32_t hash = hash_;
  std::uint8_t low = static_cast<std::uint8_t>(hash);
  for (char c : piece) {
    const Effect& effect = effect_of(static_cast<std::uint8_t>(c));
    hash = hash * effect.factor + effect.addend[low];
    low = effect.low[low];  // the chain that the next byte waits for: one look-up
  }
  hash_ = hash;
}

void Checksum::add(std::string_view piece, Memo& memo) {
  if (memo.known && !empty_ && memo.before == hash_) {
    hash_ = memo.after;
    return;
  }
  bool first = empty_;
  std::uint32_t before = hash_;
  add(piece);
  memo = {!first, before, hash_};
}

std::uint32_t Checksum::value() const {
  return fnv(hash_, "]");
}

std::uint32_t checksum(std::string_view text) {
  Checksum sum;
  sum.add(text);
  return sum.value();
}

std::uint32_t checksum(const std::vector<std::string_view>& pieces) {
  Checksum sum;
  for (std::string_view piece : pieces) sum.add(piece);
  return sum.value();
}

}  // namespace nvdra::dra
