// argv → role → exit status. It holds no logic of any role.
#include "base/version.hpp"
#include "roles.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using nvdra::Role;

std::string_view base_name(std::string_view path) {
  std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

void print(std::FILE* stream, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stream);
}

std::string general_help() {
  std::size_t width = 0;
  for (const Role& role : nvdra::all_roles()) width = std::max(width, role.name.size());
  std::string text =
      "nvdra: ComputeDomains for Kubernetes, one program with several roles\n\n"
      "usage: nvdra ROLE [FLAGS]     run a role\n"
      "       nvdra help ROLE        its flags\n"
      "       nvdra version\n\nroles:\n";
  for (const Role& role : nvdra::all_roles()) {
    text += "  " + std::string(role.name) + std::string(width - role.name.size() + 2, ' ') +
            std::string(role.summary);
    if (!role.alias.empty()) text += " (also as " + std::string(role.alias) + ")";
    text += "\n";
  }
  return text;
}

int unknown_role(const std::string& word) {
  std::vector<std::string_view> names;
  for (const Role& role : nvdra::all_roles()) names.push_back(role.name);
  std::string text = "nvdra: there is no role '" + word + "'";
  std::string_view near = nvdra::nearest(word, names);
  if (!near.empty()) text += "; did you mean '" + std::string(near) + "'?";
  print(stderr, text + "\n\n" + general_help());
  return 2;
}

int dispatch(std::span<const std::string> arguments) {
  if (arguments.empty()) {
    print(stderr, general_help());
    return 2;
  }
  const std::string& word = arguments[0];
  std::span<const std::string> rest = arguments.subspan(1);
  if (word == "--help" || word == "-h" || (word == "help" && rest.empty())) {
    print(stdout, general_help());
    return 0;
  }
  if (word == "version" || word == "--version") {
    print(stdout, nvdra::version_text("nvdra"));
    return 0;
  }
  bool help = word == "help";
  const std::string& name = help ? rest[0] : word;
  const Role* role = nvdra::find_role(name);
  if (!role) return unknown_role(name);

  const std::vector<std::string> only_help{"--help"};
  return role->run(help ? only_help : rest, nvdra::process_environment());
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view program = argc > 0 ? base_name(argv[0]) : "nvdra";
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  // By argv[0] only the other programs' names count: "daemon" may be anybody's file name.
  for (const Role& role : nvdra::all_roles())
    if (!role.alias.empty() && role.alias == program)
      return role.run(arguments, nvdra::process_environment());
  return dispatch(arguments);
}
