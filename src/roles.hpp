// The roles of this executable: one row each. Help text and dispatch come from the row.
#pragma once

#include "base/args.hpp"

#include <span>
#include <string>
#include <string_view>

namespace nvdra {

struct Role {
  std::string_view name;   // first argument: "nvdra controller"
  std::string_view alias;  // argv[0] of the Go driver's program, "" = none
  std::string_view summary;
  // Runs the role to its end and returns the exit status: 0 done or stopped in good order, 1
  // failed, 2 usage; roles with more say so in their run.hpp.
  int (*run)(std::span<const std::string> arguments, const Environment& environment);
};

std::span<const Role> all_roles();  // sorted by name

// By name or alias; nullptr if there is none.
const Role* find_role(std::string_view name_or_alias);

}  // namespace nvdra
