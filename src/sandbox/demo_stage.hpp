// What the spectator of a demonstration sees: headings, commands as they would be typed, answers,
// and progress while something takes its time.
#pragma once

#include "sandbox/demo_cluster.hpp"
#include "sandbox/demo_kubectl.hpp"
#include "sandbox/demo_words.hpp"

#include <functional>

namespace nvdra::sandbox {

class Stage {
public:
  Stage(Cluster& cluster, DemoKubectl& kubectl);

  void heading(std::string_view text);
  void say(std::string_view text);
  // The text of a manifest, saved under this name for `kubectl apply -f`.
  void manifest(const std::string& name, std::string_view text);

  // Shows and runs `kubectl …`, also with `| grep WORD` behind it; "${NAME}" is replaced by what
  // set() was given. Output is shown.
  Async<KubectlAnswer> kubectl(std::string command);
  // NAME="$(kubectl …)"
  Async<std::string> set(std::string name, std::string command);
  // On the node, as its administrator.
  Async<Result<Output>> on(std::string node, std::string command);

  // Looks again and again until `state` gives an empty text, which says what is still missing.
  // Shows that every second. After `limit` it is an error.
  using State = std::function<Async<std::string>()>;
  Async<Result<void>> until(std::string what, Duration limit, State state);

  double seconds() const;  // since the beginning

private:
  void command(std::string_view prompt, std::string_view text);
  void answer(const std::string& out, const std::string& err);

  Cluster& cluster_;
  DemoKubectl& kubectl_;
  Variables variables_;
  Instant began_;
  bool colour_;
};

}  // namespace nvdra::sandbox
