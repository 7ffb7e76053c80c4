#include "cdi/spec_dir.hpp"

#include "base/files.hpp"
#include "base/try.hpp"
#include "cdi/names.hpp"
#include "cdi/read.hpp"
#include "cdi/render.hpp"

#include <fmt/format.h>

#include <utility>

namespace nvdra::cdi {

Result<SpecDir> SpecDir::open(const std::string& path) {
  if (Result<void> made = make_directories(path, 0750); !made)
    return std::move(made).failure().during("create the CDI root " + path);
  Result<Fd> directory = open_directory(path);
  if (!directory) return std::move(directory).failure().during("open the CDI root " + path);
  return SpecDir(path, *std::move(directory));
}

Result<void> SpecDir::put(const std::string& file, const Spec& spec) {
  Result<void> written = replace_file(directory_.get(), file, render(spec), 0600, "spec.");
  if (written) return written;
  return std::move(written).failure().during(fmt::format("write CDI file {}/{}", path_, file));
}

Result<void> SpecDir::remove(const std::string& file) {
  Result<void> removed = remove_file(directory_.get(), file);
  if (removed) return removed;
  return std::move(removed).failure().during(fmt::format("remove CDI file {}/{}", path_, file));
}

Result<Spec> SpecDir::get(const std::string& file) const {
  const std::string step = fmt::format("read CDI file {}/{}", path_, file);
  Result<std::string> text = read_file(directory_.get(), file);
  if (!text) return std::move(text).failure().during(step);
  Result<Spec> spec = parse(*text);
  if (!spec) return std::move(spec).failure().during(step);
  return spec;
}

bool SpecDir::holds(const std::string& file, const Spec& spec) const {
  Result<std::string> text = read_file(directory_.get(), file);
  return text && *text == render(spec);
}

Result<std::vector<ClaimUid>> SpecDir::claims() const {
  Result<std::vector<Entry>> entries = list_directory(directory_.get());
  if (!entries) return std::move(entries).failure().during("list the CDI root " + path_);
  std::vector<ClaimUid> claims;
  for (const Entry& entry : *entries) {
    if (entry.is_directory) continue;
    if (auto claim = claim_of_file(entry.name)) claims.push_back(*std::move(claim));
  }
  return claims;
}

}  // namespace nvdra::cdi
