#include "roles/controller/burst.hpp"

namespace nvdra::roles::controller {

Duration Burst::gather(const std::string& domain, Instant now) {
  std::erase_if(last_, [&](const auto& entry) { return now - entry.second > memory; });
  const bool first = last_.insert_or_assign(domain, now).second;
  return first ? single : many;
}

}  // namespace nvdra::roles::controller
