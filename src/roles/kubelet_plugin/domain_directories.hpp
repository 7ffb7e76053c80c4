// The directories <plugin directory>/domains/<ComputeDomain UID>, which the domain's daemon sees as
// /imexd (node-side.md 3.10, 6.8.2, 9.2; newer.md B5; 18.2 no. 36, 38).
// A container can write to such a directory, so nothing in it is trusted: every step is relative to
// an open directory and follows no link.
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"

#include <string>
#include <vector>

namespace nvdra::roles::kubelet_plugin {

class DomainDirectories {
public:
  // `directory` is the open plugin directory and outlives this; `path` is its path on the host.
  DomainDirectories(int directory, std::string path);

  // "<plugin directory>/domains", and below it "<uid>", on the host.
  std::string parent() const;
  std::string path_of(const DomainUid& domain) const;

  // Makes the directory (0755) and writes the template (0644) anew. The error names the path; a
  // link in the place of a directory is one. `domain` has passed validate_domain_id().
  Result<void> prepare(const DomainUid& domain);

  // The domains that have a directory, sorted; other files are passed over.
  Result<std::vector<DomainUid>> all() const;
  // With everything in it. Missing: success.
  Result<void> remove(const DomainUid& domain);

private:
  int directory_;
  std::string path_;
};

}  // namespace nvdra::roles::kubelet_plugin
