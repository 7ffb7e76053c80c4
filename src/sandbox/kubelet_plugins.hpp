// The plugins of one node: finds their sockets in the registrar directory, registers them, forgets
// them when their socket goes. A socket file that was replaced is registered anew, as after a
// restart of the plugin; a plugin that does not answer is asked again until it does.
#pragma once

#include "base/event.hpp"
#include "sandbox/kubelet_rpc.hpp"

#include <map>
#include <memory>
#include <string>

namespace nvdra::sandbox {

// A DRA driver that is registered.
struct Driver {
  std::string name;
  DraVersion version;
  std::shared_ptr<PluginChannel> channel;
};

class Plugins {
public:
  // The directory must exist.
  Plugins(asio::any_io_executor executor, Time& time, std::string directory);

  // Until cancelled.
  Async<Result<void>> run();

  const Driver* find(const std::string& name) const;
  Event& changes() { return changed_; }
  // Of the last attempts that failed: socket → why.
  const std::map<std::string, std::string>& troubles() const { return troubles_; }

private:
  struct Known {
    std::string identity;  // of the socket file
    Driver driver;
  };
  Async<void> look();
  Async<Result<Driver>> register_socket(std::string path);

  asio::any_io_executor executor_;
  Time& time_;
  std::string directory_;
  std::map<std::string, Known> known_;  // by file name
  std::map<std::string, std::string> troubles_;
  Event changed_;
};

}  // namespace nvdra::sandbox
