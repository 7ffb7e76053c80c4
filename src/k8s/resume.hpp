// Where a reflector goes when its watch has ended, and whether it pauses first. Pure.
#pragma once

#include "base/time.hpp"
#include "k8s/status.hpp"

#include <optional>

namespace nvdra::k8s {

// The story of one watch.
struct WatchEnd {
  std::optional<boost::system::error_code> error = {};  // none: ended in good order
  bool opened = true;
  bool shown = false;       // an event or a bookmark came
  Duration lasted = {};     // since the request was sent
  int failures_before = 0;  // watches that failed since the last one that did not
};

enum class Resume { watch, list };

// Five failures in a row: the version itself may be what the server cannot serve (it was set up
// anew from an older copy, say), so it is asked for a new one.
constexpr int patience = 5;

// A watch is healthy when it has shown something, or has at least stood for a while.
inline bool healthy(const WatchEnd& end) {
  return end.opened && (end.shown || end.lasted >= 1s);
}

inline Resume resume(const WatchEnd& end) {
  if (!healthy(end) && end.failures_before + 1 >= patience) return Resume::list;
  if (!end.error) return Resume::watch;  // the server's own time limit
  bool version_is_bad = *end.error == Errc::gone || *end.error == Errc::bad_request;
  // 404: the type is not served any more; the list will say so, or find it again.
  if (version_is_bad || *end.error == Errc::not_found) return Resume::list;
  return Resume::watch;  // a dead connection, a restarted server, a missing permission
}

}  // namespace nvdra::k8s
