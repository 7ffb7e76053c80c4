#include "sandbox/demo_kubectl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace nvdra::sandbox {
namespace {

struct FlagName {
  std::string_view given;
  std::string_view name;
  bool has_value;
};
constexpr std::array flag_names = {
    FlagName{"-A", "all-namespaces", false},
    FlagName{"-f", "filename", true},
    FlagName{"-l", "selector", true},
    FlagName{"-n", "namespace", true},
    FlagName{"-o", "output", true},
    FlagName{"--all-namespaces", "all-namespaces", false},
    FlagName{"--field-selector", "field-selector", true},
    FlagName{"--filename", "filename", true},
    FlagName{"--for", "for", true},
    FlagName{"--force", "force", false},
    FlagName{"--grace-period", "grace-period", true},
    FlagName{"--namespace", "namespace", true},
    FlagName{"--output", "output", true},
    FlagName{"--selector", "selector", true},
    FlagName{"--sort-by", "sort-by", true},
    FlagName{"--tail", "tail", true},
    FlagName{"--timeout", "timeout", true},
};

}  // namespace

std::string KubectlArguments::flag(std::string_view name) const {
  const auto found = flags.find(name);
  return found == flags.end() ? std::string() : found->second;
}

std::string KubectlArguments::word(std::size_t index) const {
  return index < words.size() ? words[index] : std::string();
}

Result<KubectlArguments> kubectl_arguments(const std::vector<std::string>& arguments) {
  KubectlArguments taken;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--") {
      taken.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end());
      return taken;
    }
    if (!word.starts_with('-')) {
      taken.words.push_back(word);
      continue;
    }
    const auto equals = word.find('=');
    const auto* known = std::ranges::find(flag_names, word.substr(0, equals), &FlagName::given);
    if (known == flag_names.end()) return refuse(fmt::format("error: unknown flag: {}", word));
    std::string value = "true";
    if (equals != std::string::npos)
      value = word.substr(equals + 1);
    else if (known->has_value && i + 1 < arguments.size())
      value = arguments[++i];
    taken.flags[std::string(known->name)] = value;
  }
  return taken;
}

}  // namespace nvdra::sandbox
