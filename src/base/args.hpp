// Flags and environment variables → values, once, at start (node-side.md 2.1, cluster-side.md 4.1).
// The command line wins over the environment, the environment over the default.
//   * `--name value`, `--name=value`, also with one dash; `-v 6` is the flag named "v".
//   * A variable that is set but empty: string = the empty string; bool = false; list = empty;
//     int, float, duration, and generic flags = ignored.
//   * bool flags stand alone (`--x`) or take `--x=false`.
//   * A list flag may be repeated, and so may a flag that `joins`; of any other flag the last wins.
//   * Unknown flags and positional arguments are refused with the nearest flag's name.
//   * `--` ends the flags. When the table has `help` or `version` and the command line gives it, no
//     required flag is missed.
#pragma once

#include "base/result.hpp"

#include <chrono>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nvdra {

// generic: a string whose set-but-empty variable is ignored (logging and feature-gate flags).
enum class FlagKind { text, integer, real, boolean, duration, list, generic };

struct Flag {
  std::string_view name;              // without dashes
  std::string_view environment = {};  // "" = none; several are separated by ',', first set one wins
  FlagKind kind = FlagKind::text;
  std::string_view otherwise = {};  // default, in command-line spelling
  std::string_view help = {};
  bool required = false;
  std::string_view alias = {};  // a second name for the same flag
  bool joins = false;           // repeated: the values are joined with ','; lists always are
};

using Environment = std::map<std::string, std::string, std::less<>>;
Environment process_environment();
// The variable's value; "" when it is not set.
std::string value_or_empty(const Environment& environment, std::string_view name);

// The parsed values of one table of flags. Getters of a name that is not in the table abort.
class Args {
public:
  std::string text(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  bool boolean(std::string_view name) const;
  std::chrono::nanoseconds duration(std::string_view name) const;
  std::vector<std::string> list(std::string_view name) const;  // items trimmed, empty ones dropped
  // Given on the command line or by the environment.
  bool given(std::string_view name) const;
  // What the environment says, also where the command line wins; "" when it says nothing.
  std::string environment_text(std::string_view name) const;
  // Every flag with its effective value, for the start-up log.
  const std::map<std::string, std::string, std::less<>>& values() const { return values_; }

private:
  friend Result<Args> parse_args(std::span<const Flag>, std::span<const std::string>,
                                 const Environment&, std::vector<std::string>*);
  const std::string& at(std::string_view name) const;
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, std::string, std::less<>> environment_;
  std::set<std::string, std::less<>> given_;
};

// Every error is one sentence that names the flag or variable, the value and what is accepted.
// With `positional` the arguments that are no flags go there; without it they are refused.
Result<Args> parse_args(std::span<const Flag> flags, std::span<const std::string> arguments,
                        const Environment& environment,
                        std::vector<std::string>* positional = nullptr);

// The flags' help, one aligned block: name, variable, default, help.
std::string flags_help(std::span<const Flag> flags);

Result<bool> parse_bool(std::string_view text);  // Go's spellings: 1 t T TRUE true True 0 f F …
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);  // Go's: "1h2m3.5s", "0"

// The candidate nearest to `word` (edit distance), or "" when none is near.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace nvdra
