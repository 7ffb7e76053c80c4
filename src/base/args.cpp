#include "base/args.hpp"

#include "base/parse_words.hpp"
#include "base/try.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace nvdra {
namespace {

using Values = std::map<std::string, std::string, std::less<>>;

// Where a value came from, as the errors name it.
struct Origin {
  std::string_view kind;  // "flag --", "variable "
  std::string_view name;
};

Failure bad_value(const Origin& origin, std::string_view value, std::string_view expected) {
  return refuse(fmt::format("{}{}: \"{}\" is not {}", origin.kind, origin.name, value, expected));
}

Result<void> check_value(const Flag& flag, const Origin& origin, std::string_view value) {
  switch (flag.kind) {
    case FlagKind::integer:
      if (!parse_integer(value)) return bad_value(origin, value, "an integer, for example 10");
      return ok();
    case FlagKind::real:
      if (!parse_real(value)) return bad_value(origin, value, "a number, for example 2.5");
      return ok();
    case FlagKind::boolean:
      if (!parse_bool(value)) return bad_value(origin, value, "true or false");
      return ok();
    case FlagKind::duration:
      if (!parse_duration(value)) return bad_value(origin, value, "a duration, for example 1m30s");
      return ok();
    case FlagKind::text:
    case FlagKind::list:
    case FlagKind::generic: return ok();
  }
  __builtin_unreachable();
}

const Flag* find_flag(std::span<const Flag> flags, std::string_view name) {
  auto found = std::ranges::find_if(flags, [&](const Flag& flag) {
    return flag.name == name || (!flag.alias.empty() && flag.alias == name);
  });
  return found == flags.end() ? nullptr : &*found;
}

Failure unknown_flag(std::span<const Flag> flags, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Flag& flag : flags) names.push_back(flag.name);
  std::string_view near = nearest(name, names);
  return refuse(near.empty() ? fmt::format("unknown flag --{}, --help lists the flags", name)
                             : fmt::format("unknown flag --{}, did you mean --{}?", name, near));
}

// Splits "a,b" at the commas into the variables' names.
std::vector<std::string_view> variables_of(const Flag& flag) {
  std::vector<std::string_view> names;
  for (std::string_view rest = flag.environment; !rest.empty();) {
    std::size_t comma = rest.find(',');
    names.push_back(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  return names;
}

bool empty_means_unset(FlagKind kind) {
  return kind != FlagKind::text && kind != FlagKind::boolean && kind != FlagKind::list;
}

Result<void> read_variable(const Flag& flag, const Environment& environment, Values& into) {
  for (std::string_view variable : variables_of(flag)) {
    auto found = environment.find(variable);
    if (found == environment.end()) continue;
    std::string value = found->second;
    if (value.empty() && empty_means_unset(flag.kind)) return ok();
    if (value.empty() && flag.kind == FlagKind::boolean) value = "false";
    TRY_VOID(check_value(flag, {"variable ", variable}, value));
    into[std::string(flag.name)] = value;
    return ok();
  }
  return ok();
}

// The command line, split into flags' values and positional arguments.
struct CommandLine {
  Values values;
  std::vector<std::string> positional;
};

Result<CommandLine> read_command_line(std::span<const Flag> flags,
                                      std::span<const std::string> arguments) {
  CommandLine line;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string_view word = arguments[i];
    if (word == "--") {
      line.positional.insert(line.positional.end(), arguments.begin() + std::ptrdiff_t(i) + 1,
                             arguments.end());
      break;
    }
    if (word.size() < 2 || word[0] != '-') {
      line.positional.emplace_back(word);
      continue;
    }
    word.remove_prefix(word[1] == '-' ? 2 : 1);
    std::size_t equals = word.find('=');
    std::string_view name = word.substr(0, equals);
    const Flag* flag = find_flag(flags, name);
    if (!flag) return unknown_flag(flags, name);

    std::string value = "true";
    if (equals != std::string_view::npos)
      value = word.substr(equals + 1);
    else if (flag->kind != FlagKind::boolean && i + 1 == arguments.size())
      return refuse(fmt::format("flag --{} needs a value: --{}=VALUE", name, name));
    else if (flag->kind != FlagKind::boolean)
      value = arguments[++i];
    TRY_VOID(check_value(*flag, {"flag --", name}, value));

    auto [known, first] = line.values.try_emplace(std::string(flag->name), value);
    bool joins = flag->joins || flag->kind == FlagKind::list;
    if (!first) known->second = joins ? known->second + "," + value : value;
  }
  return line;
}

Failure missing(const Flag& flag) {
  std::string variables;
  for (std::string_view variable : variables_of(flag))
    variables += fmt::format("{}{}", variables.empty() ? " or set " : " or ", variable);
  return refuse(
      fmt::format("flag --{} is required: give it on the command line{}", flag.name, variables));
}

[[noreturn]] void not_in_table(std::string_view name) {
  std::string text = fmt::format("bug: flag --{} is not in this program's table\n", name);
  [[maybe_unused]] ssize_t ignored = ::write(STDERR_FILENO, text.data(), text.size());
  std::abort();
}

}  // namespace

std::string value_or_empty(const Environment& environment, std::string_view name) {
  auto found = environment.find(name);
  return found == environment.end() ? std::string{} : found->second;
}

Environment process_environment() {
  Environment all;
  for (char** entry = environ; entry && *entry; ++entry) {
    std::string_view text = *entry;
    std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    all.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return all;
}

Result<Args> parse_args(std::span<const Flag> flags, std::span<const std::string> arguments,
                        const Environment& environment, std::vector<std::string>* positional) {
  TRY(CommandLine line, read_command_line(flags, arguments));
  if (!positional && !line.positional.empty())
    return refuse(fmt::format("unexpected argument \"{}\": this program takes flags only",
                              line.positional.front()));

  bool asks_only = line.values.contains("help") || line.values.contains("version");
  Args args;
  for (const Flag& flag : flags) {
    std::string name(flag.name);
    if (!asks_only) {
      TRY_VOID(read_variable(flag, environment, args.environment_));
    }
    auto on_line = line.values.find(name);
    auto in_environment = args.environment_.find(name);
    std::string& value = args.values_[name] = flag.otherwise;
    if (in_environment != args.environment_.end()) value = in_environment->second;
    if (on_line != line.values.end()) value = on_line->second;
    if (on_line != line.values.end() || in_environment != args.environment_.end())
      args.given_.insert(name);
    else if (flag.required && !asks_only)
      return missing(flag);
  }
  if (positional) *positional = std::move(line.positional);
  return args;
}

const std::string& Args::at(std::string_view name) const {
  auto found = values_.find(name);
  if (found == values_.end()) not_in_table(name);
  return found->second;
}

// Values were checked by parse_args(); an empty one is a default that the table leaves out.
std::string Args::text(std::string_view name) const {
  return at(name);
}

std::int64_t Args::integer(std::string_view name) const {
  return parse_integer(at(name)).value_or(0);
}

double Args::real(std::string_view name) const {
  return parse_real(at(name)).value_or(0.0);
}

bool Args::boolean(std::string_view name) const {
  Result<bool> value = parse_bool(at(name));
  return value && *value;
}

std::chrono::nanoseconds Args::duration(std::string_view name) const {
  Result<std::chrono::nanoseconds> value = parse_duration(at(name));
  return value ? *value : std::chrono::nanoseconds::zero();
}

std::vector<std::string> Args::list(std::string_view name) const {
  std::vector<std::string> items;
  for (std::string_view rest = at(name); !rest.empty();) {
    std::size_t comma = rest.find(',');
    std::string_view item = trimmed(rest.substr(0, comma));
    if (!item.empty()) items.emplace_back(item);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  return items;
}

bool Args::given(std::string_view name) const {
  at(name);
  return given_.contains(name);
}

std::string Args::environment_text(std::string_view name) const {
  at(name);
  auto found = environment_.find(name);
  return found == environment_.end() ? std::string{} : found->second;
}

std::string flags_help(std::span<const Flag> flags) {
  struct Row {
    std::string left, help;
  };
  std::vector<Row> rows;
  std::size_t width = 0;
  for (const Flag& flag : flags) {
    std::string left = fmt::format("{}{}", flag.name.size() == 1 ? "  -" : "  --", flag.name);
    if (!flag.alias.empty())
      left += fmt::format(", {}{}", flag.alias.size() == 1 ? "-" : "--", flag.alias);
    std::string help(flag.help);
    if (flag.required) help += " (required)";
    if (!flag.otherwise.empty()) help += fmt::format(" (default {})", flag.otherwise);
    if (!flag.environment.empty()) help += fmt::format(" [${}]", flag.environment);
    width = std::max(width, left.size());
    rows.push_back({std::move(left), std::move(help)});
  }
  std::string text;
  for (const Row& row : rows) text += fmt::format("{:<{}}  {}\n", row.left, width, row.help);
  return text;
}

}  // namespace nvdra
