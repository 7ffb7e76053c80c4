#include "sandbox/pod_cdi.hpp"

#include "base/files.hpp"
#include "base/try.hpp"
#include "cdi/read.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace nvdra::sandbox {
namespace {

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  for (const T& one : from)
    if (std::ranges::find(to, one) == to.end()) to.push_back(one);
}

void add(cdi::ContainerEdits& to, const cdi::ContainerEdits& from) {
  append(to.env, from.env);
  append(to.device_nodes, from.device_nodes);
  append(to.hooks, from.hooks);
  append(to.mounts, from.mounts);
  append(to.additional_gids, from.additional_gids);
}

}  // namespace

Result<cdi::ContainerEdits> cdi_edits(const std::string& directory,
                                      const std::vector<std::string>& devices) {
  cdi::ContainerEdits edits;
  if (devices.empty()) return edits;
  std::vector<std::string> missing = devices;
  TRY(const std::vector<Entry> entries, list_directory(AT_FDCWD, directory));
  for (const Entry& entry : entries) {
    if (!entry.name.ends_with(".yaml") && !entry.name.ends_with(".json")) continue;
    const std::string path = directory + "/" + entry.name;
    TRY(const std::string text, read_file(path));
    Result<cdi::Spec> spec = cdi::parse(text);
    if (!spec) return std::move(spec).failure().during("CDI file " + path);
    bool used = false;
    for (const cdi::Device& device : spec->devices) {
      if (std::erase(missing, spec->kind + "=" + device.name) == 0) continue;
      add(edits, device.edits);
      used = true;
    }
    if (used) add(edits, spec->edits);
  }
  if (!missing.empty())
    return refuse(fmt::format("CDI device injection failed: unresolvable CDI devices {}",
                              fmt::join(missing, ", ")));
  return edits;
}

}  // namespace nvdra::sandbox
