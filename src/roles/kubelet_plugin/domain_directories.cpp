#include "roles/kubelet_plugin/domain_directories.hpp"

#include "base/files.hpp"
#include "base/try.hpp"
#include "roles/common/opaque_config.hpp"
#include "roles/kubelet_plugin/imex_template.hpp"

#include <sys/stat.h>

namespace nvdra::roles::kubelet_plugin {
namespace {

constexpr const char* parent_name = "domains";
constexpr mode_t directory_mode = 0755;
constexpr mode_t file_mode = 0644;

// Opens `name` below `parent` and makes it first if it is missing; a link is an error.
Result<Fd> make_directory(int parent, const std::string& name) {
  bool made = ::mkdirat(parent, name.c_str(), directory_mode) == 0;
  if (!made && errno != EEXIST) return errno_failure("make directory " + name);
  TRY(Fd directory, open_directory(parent, name));
  if (made && ::fchmod(directory.get(), directory_mode) != 0)
    return errno_failure("set the mode of directory " + name);
  return directory;
}

Result<void> write_template(int directory, const DomainUid& domain) {
  TRY(Fd parent, make_directory(directory, parent_name));
  TRY(Fd own, make_directory(parent.get(), domain.value));
  return replace_file(own.get(), std::string(imex_template_file), imex_template(), file_mode);
}

bool is_missing(const Error& error) {
  return error.code == boost::system::errc::no_such_file_or_directory;
}

}  // namespace

DomainDirectories::DomainDirectories(int directory, std::string path)
    : directory_(directory), path_(std::move(path)) {}

std::string DomainDirectories::parent() const {
  return path_ + "/" + parent_name;
}

std::string DomainDirectories::path_of(const DomainUid& domain) const {
  return parent() + "/" + domain.value;
}

Result<void> DomainDirectories::prepare(const DomainUid& domain) {
  // Once more, next to the path that is made of it.
  TRY_VOID(validate_domain_id(domain.value));
  Result<void> written = write_template(directory_, domain);
  if (!written)
    return std::move(written).failure().during("prepare the domain's directory " + path_of(domain));
  return ok();
}

Result<std::vector<DomainUid>> DomainDirectories::all() const {
  std::vector<DomainUid> found;
  Result<Fd> parent = open_directory(directory_, parent_name);
  if (!parent && is_missing(parent.error())) return found;
  if (!parent) return std::move(parent).failure();
  TRY(std::vector<Entry> entries, list_directory(parent->get()));
  for (Entry& entry : entries)
    if (entry.is_directory) found.emplace_back(std::move(entry.name));
  return found;
}

Result<void> DomainDirectories::remove(const DomainUid& domain) {
  Result<Fd> parent = open_directory(directory_, parent_name);
  if (!parent && is_missing(parent.error())) return ok();
  if (!parent) return std::move(parent).failure();
  Result<void> removed = remove_tree(parent->get(), domain.value);
  if (!removed)
    return std::move(removed).failure().during("remove the domain's directory " + path_of(domain));
  return ok();
}

}  // namespace nvdra::roles::kubelet_plugin
