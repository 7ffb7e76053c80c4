// The flags of check-host-socket → values.
#pragma once

#include "base/args.hpp"
#include "base/result.hpp"
#include "imex/host_state.hpp"

#include <span>
#include <string>

namespace nvdra::roles::check_host_socket {

enum class Format { text, json };

struct Config {
  imex::HostService service;
  Duration wait{};  // zero = ask once
  Format format = Format::text;
};

std::span<const Flag> flags();

// Errors are sentences that name the flag.
Result<Config> configure(std::span<const std::string> arguments, const Environment& environment);

}  // namespace nvdra::roles::check_host_socket
