#include "cdi/spec_dir.hpp"

#include "base/files.hpp"
#include "base/try.hpp"
#include "cdi/names.hpp"
#include "cdi/read.hpp"
#include "cdi/render.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <utility>

namespace nvdra::cdi {

namespace {

Result<Fd> open_root(const std::string& path) {
  if (Result<void> made = make_directories(path, 0750); !made)
    return std::move(made).failure().during("create the CDI root " + path);
  Result<Fd> directory = open_directory(path);
  if (!directory) return std::move(directory).failure().during("open the CDI root " + path);
  return directory;
}

}  // namespace

Result<SpecDir> SpecDir::open(const std::string& path) {
  TRY(Fd directory, open_root(path));
  return SpecDir(path, std::move(directory));
}

Result<int> SpecDir::directory() const {
  struct stat held{}, named{};
  bool same = ::fstat(directory_.get(), &held) == 0 && ::stat(path_.c_str(), &named) == 0 &&
              held.st_dev == named.st_dev && held.st_ino == named.st_ino;
  if (!same) {
    TRY(directory_, open_root(path_));
    if (::fstat(directory_.get(), &held) != 0)
      return errno_failure("look at the CDI root " + path_);
  }
  // A container keeps seeing the host's directory that was mounted into it.
  if (held.st_nlink == 0)
    return refuse(
        fmt::format("the CDI root {} was removed from the host under this container: "
                    "create it there and restart this plugin's pod",
                    path_));
  return directory_.get();
}

Result<void> SpecDir::put(const std::string& file, const Spec& spec) {
  Result<int> root = directory();
  Result<void> written = root ? replace_file(*root, file, render(spec), 0600, "spec.")
                              : Result<void>(std::move(root).failure());
  if (written) return written;
  return std::move(written).failure().during(fmt::format("write CDI file {}/{}", path_, file));
}

Result<void> SpecDir::remove(const std::string& file) {
  Result<int> root = directory();
  Result<void> removed = root ? remove_file(*root, file) : Result<void>(std::move(root).failure());
  if (removed) return removed;
  return std::move(removed).failure().during(fmt::format("remove CDI file {}/{}", path_, file));
}

Result<Spec> SpecDir::get(const std::string& file) const {
  const std::string step = fmt::format("read CDI file {}/{}", path_, file);
  TRY(int root, directory());
  Result<std::string> text = read_file(root, file);
  if (!text) return std::move(text).failure().during(step);
  Result<Spec> spec = parse(*text);
  if (!spec) return std::move(spec).failure().during(step);
  return spec;
}

bool SpecDir::holds(const std::string& file, const Spec& spec) const {
  Result<int> root = directory();
  if (!root) return false;
  Result<std::string> text = read_file(*root, file);
  return text && *text == render(spec);
}

Result<std::vector<ClaimUid>> SpecDir::claims() const {
  TRY(int root, directory());
  Result<std::vector<Entry>> entries = list_directory(root);
  if (!entries) return std::move(entries).failure().during("list the CDI root " + path_);
  std::vector<ClaimUid> claims;
  for (const Entry& entry : *entries) {
    if (entry.is_directory) continue;
    if (auto claim = claim_of_file(entry.name)) claims.push_back(*std::move(claim));
  }
  return claims;
}

}  // namespace nvdra::cdi
