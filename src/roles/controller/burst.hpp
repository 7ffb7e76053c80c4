// How long the events of a domain's members are gathered before the domain is looked at. A single
// one is in the status soon; of many, as when a large domain forms, a few writes tell.
#pragma once

#include "base/time.hpp"

#include <map>
#include <string>

namespace nvdra::roles::controller {

class Burst {
public:
  static constexpr Duration single = 50ms;
  static constexpr Duration many = 120ms;  // the status follows a daemon within 200 ms
  static constexpr Duration memory = 500ms;

  // Until the domain is to be looked at for an event that has come now.
  Duration gather(const std::string& domain, Instant now);

private:
  std::map<std::string, Instant> last_;  // event of each domain
  Instant swept_{};                      // when those older than `memory` were dropped last
};

}  // namespace nvdra::roles::controller
