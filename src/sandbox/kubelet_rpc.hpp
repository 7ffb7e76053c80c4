// The kubelet's calls to a plugin, over gRPC and a Unix socket. No call blocks the loop: gRPC's
// threads only post the answer to it. Cancelling the coroutine cancels the call.
#pragma once

#include "base/time.hpp"
#include "dra/plugin.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace nvdra::sandbox {

struct PluginInfo {
  std::string type;
  std::string name;
  std::string endpoint;
  std::vector<std::string> versions;
};

// The two versions of the DRA service.
enum class DraVersion { v1, v1beta1 };

struct ClaimAnswer {
  dra::Prepared devices;
  std::string error;  // "" = done
};
// By claim UID; a claim that is missing was not finished.
using ClaimAnswers = std::map<std::string, ClaimAnswer>;

class PluginChannel {
public:
  PluginChannel(asio::any_io_executor executor, const std::string& socket);
  PluginChannel(const PluginChannel&) = delete;
  PluginChannel& operator=(const PluginChannel&) = delete;
  // Waits until calls that were cancelled have let go of the loop.
  ~PluginChannel();

  // Errors are sentences as a kubelet has them: "rpc error: code = Unavailable desc = …".
  Async<Result<PluginInfo>> get_info(Duration limit);
  Async<Result<void>> notify(bool registered, std::string error, Duration limit);
  Async<Result<ClaimAnswers>> prepare(DraVersion version, std::vector<dra::ClaimRef> claims,
                                      Duration limit);
  Async<Result<ClaimAnswers>> unprepare(DraVersion version, std::vector<dra::ClaimRef> claims,
                                        Duration limit);

private:
  struct Parts;
  std::shared_ptr<Parts> parts_;
};

}  // namespace nvdra::sandbox
