// Why a claim is not prepared (node-side.md 6.10).
#pragma once

#include <string>
#include <variant>

namespace nvdra::roles::kubelet_plugin {

struct Trouble {
  enum class Kind {
    permanent,  // cannot heal without a change of the claim: answered at once
    retry,      // may heal by itself: the claim is held, then answered, and the kubelet asks again
  };
  Kind kind;
  std::string text;  // one sentence: object, place, remedy
};

inline Trouble permanent(std::string text) {
  return {Trouble::Kind::permanent, std::move(text)};
}
inline Trouble retry(std::string text) {
  return {Trouble::Kind::retry, std::move(text)};
}

// A value, or why there is none.
template <class T>
using Attempt = std::variant<T, Trouble>;

template <class T>
Trouble* trouble_of(Attempt<T>& attempt) {
  return std::get_if<Trouble>(&attempt);
}

}  // namespace nvdra::roles::kubelet_plugin
