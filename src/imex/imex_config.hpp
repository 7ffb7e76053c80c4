// The configuration file of the nvidia-imex that a daemon supervises: a template that the kubelet
// plugin has put into the domain's directory, two values of our own, and the administrator's
// settings (node-side.md 11.3 step 5 and 12, newer.md A15). Pure.
#pragma once

#include "base/result.hpp"

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace nvdra::imex {

struct TemplateFields {
  std::string command_address;  // .IMEXCmdBindInterfaceIP: the pod's address
  std::string nodes_file;       // .IMEXDaemonNodesConfigPath
};

// The template's actions are `{{ .Field }}`, also with `{{-` and `-}}`. An action that is not one
// of the two fields is an error that names it and its line: plugin and daemon come from different
// releases.
Result<std::string> render_template(std::string_view text, const TemplateFields& fields);

// Sets KEY=VALUE lines: the first line of a key is replaced in place and its repetitions go, so
// that exactly one is left; a key without a line is appended. Comments are never touched. What
// already stands as wanted stays byte by byte.
std::string apply_settings(std::string_view text,
                           std::span<const std::pair<std::string, std::string>> settings);

// What must hold for any template, because the daemon relies on it: nvidia-imex in the foreground,
// its command service on, at our address, with our nodes file.
std::string render_config(std::string_view rendered, const TemplateFields& fields,
                          std::span<const std::pair<std::string, std::string>> overrides);

}  // namespace nvdra::imex
