#include "imex/imex_config.hpp"

#include "imex/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace nvdra::imex {
namespace {

constexpr std::string_view blank = " \t\r\n";

// The key of a settings line; "" for comments and anything else.
std::string_view key_of(std::string_view line) {
  const std::string_view content = trim(line);
  if (content.starts_with('#')) return {};
  const auto equals = content.find('=');
  return equals == std::string_view::npos ? std::string_view{} : trim(content.substr(0, equals));
}

void trim_end(std::string& text) {
  text.erase(text.find_last_not_of(blank) + 1);
}

Result<std::string> value_of(std::string_view action, const TemplateFields& fields,
                             std::string_view before) {
  const std::string_view name = trim(action);
  if (name == ".IMEXCmdBindInterfaceIP") return fields.command_address;
  if (name == ".IMEXDaemonNodesConfigPath") return fields.nodes_file;
  return refuse(fmt::format("line {} has {{{{ {} }}}}, which this release does not know",
                            std::ranges::count(before, '\n') + 1, excerpt(name)));
}

}  // namespace

Result<std::string> render_template(std::string_view text, const TemplateFields& fields) {
  std::string rendered;
  std::size_t at = 0;
  for (;;) {
    const auto open = text.find("{{", at);
    rendered.append(text.substr(at, open == std::string_view::npos ? open : open - at));
    if (open == std::string_view::npos) return rendered;
    const auto close = text.find("}}", open);
    if (close == std::string_view::npos)
      return refuse(fmt::format("line {} opens {{{{ without closing it",
                                std::ranges::count(text.substr(0, open), '\n') + 1));
    std::string_view action = text.substr(open + 2, close - open - 2);
    const bool eats_before = action.starts_with("- ");
    const bool eats_after = action.ends_with(" -");
    if (eats_before) action.remove_prefix(1);
    if (eats_after) action.remove_suffix(1);
    Result<std::string> value = value_of(action, fields, text.substr(0, open));
    if (!value) return value;
    if (eats_before) trim_end(rendered);
    rendered += *value;
    at = close + 2;
    if (eats_after) at = std::min(text.find_first_not_of(blank, at), text.size());
  }
}

std::string apply_settings(std::string_view text,
                           std::span<const std::pair<std::string, std::string>> settings) {
  std::vector<bool> written(settings.size(), false);
  std::string result;
  while (const auto line = next_line(text)) {
    const auto setting =
        std::ranges::find(settings, key_of(*line), &std::pair<std::string, std::string>::first);
    if (setting == settings.end()) {
      result.append(*line).append("\n");
      continue;
    }
    const auto at = static_cast<std::size_t>(setting - settings.begin());
    if (!written[at]) result.append(setting->first + "=" + setting->second + "\n");
    written[at] = true;
  }
  for (std::size_t i = 0; i < settings.size(); ++i)
    if (!written[i]) result.append(settings[i].first + "=" + settings[i].second + "\n");
  return result;
}

std::string render_config(std::string_view rendered, const TemplateFields& fields,
                          std::span<const std::pair<std::string, std::string>> overrides) {
  const std::array<std::pair<std::string, std::string>, 4> required{{
      {"DAEMONIZE", "0"},
      {"IMEX_NODE_CONFIG_FILE", fields.nodes_file},
      {"IMEX_CMD_ENABLED", "1"},
      {"IMEX_CMD_BIND_INTERFACE_IP", fields.command_address},
  }};
  return apply_settings(apply_settings(rendered, required), overrides);
}

}  // namespace nvdra::imex
