// The link through which the init container sees the driver root. The root's parent is mounted, so
// that a driver which is installed later appears; the link may dangle until then.
#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>

namespace nvdra::roles::wait_for_driver {

// "<parent>/<last name of the root>"; the parent itself for "/". Pure.
std::string link_target(std::string_view parent, std::string_view root);

// Replaces a link of that name; anything else in its place is an error that names it.
Result<void> make_link(const std::string& path, const std::string& target);

}  // namespace nvdra::roles::wait_for_driver
