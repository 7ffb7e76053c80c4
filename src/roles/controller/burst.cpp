#include "roles/controller/burst.hpp"

namespace nvdra::roles::controller {

Duration Burst::gather(const std::string& domain, Instant now) {
  if (now - swept_ > memory) {
    std::erase_if(last_, [&](const auto& entry) { return now - entry.second > memory; });
    swept_ = now;
  }
  const auto [entry, first] = last_.try_emplace(domain, now);
  const bool alone = first || now - entry->second > memory;
  entry->second = now;
  return alone ? single : many;
}

}  // namespace nvdra::roles::controller
