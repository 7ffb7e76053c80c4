#include "roles/daemon/files.hpp"

#include "base/files.hpp"
#include "base/try.hpp"
#include "base/version.hpp"
#include "imex/imex_config.hpp"
#include "imex/peers.hpp"

#include <fcntl.h>
#include <fmt/format.h>

namespace nvdra::roles::daemon {
namespace {

constexpr mode_t file_mode = 0644;

Result<void> write_if_new(const std::string& path, const std::string& text) {
  const Result<std::string> before = read_file(path);
  if (before && *before == text) return ok();
  const Result<void> written = replace_file(AT_FDCWD, path, text, file_mode);
  if (written) return ok();
  return refuse(fmt::format("{}; the directory of the domain must be writable for its daemon",
                            written.error().text()));
}

Result<std::string> read_template(const std::string& path) {
  Result<std::string> text = read_file(path);
  if (text) return text;
  return refuse(
      fmt::format("{}; the kubelet plugin writes it into the domain's directory and mounts that "
                  "when it prepares "
                  "the pod's daemon claim, so check that the claim's CDI edits were applied",
                  text.error().text()));
}

}  // namespace

Result<void> write_imex_files(const Config& config) {
  TRY(const std::string text, read_template(config.template_file()));
  const imex::TemplateFields fields{config.pod_ip, config.nodes_file()};
  const Result<std::string> rendered = imex::render_template(text, fields);
  if (!rendered)
    return refuse(fmt::format(
        "the template {} is not of this release: {}; kubelet plugin and daemon come from different "
        "versions, so upgrade the older one and restart this pod",
        config.template_file(), rendered.error().text()));
  TRY_VOID(
      write_if_new(config.config_file(), imex::render_config(*rendered, fields, config.overrides)));
  if (!config.names()) return ok();
  return write_if_new(config.nodes_file(),
                      imex::render_slot_names(config.domain.value, config.slots));
}

}  // namespace nvdra::roles::daemon
