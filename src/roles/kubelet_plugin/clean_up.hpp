// Clean-up: what is left when claims end while the plugin or the kubelet is away (node-side.md 9.1;
// 18.1 no. 50-52). Runs once at start and then about every 10 minutes.
//   * Started and completed entries whose claim is gone, or has another UID by now, are unprepared.
//     Any other answer of the server leaves them alone.
//   * Aborted entries are dropped when their lifetime is over.
//   * A claim with a CDI file but no entry, which is still allocated to this node, gets its entry
//     back; until that is known no file and no label is removed.
//   * CDI files of claims that have no entry are removed.
//   * driverManaged: a node label that no claim here needs is removed, and then the directories of
//     domains that do not exist any more and that no claim here refers to (9.2, 9.3; 18.1 no. 18;
//     reports 38, 59). Directories are looked after whenever a domain or a claim goes, too, and a
//     label that somebody took off while a prepared claim needs it is put back.
#pragma once

#include "base/backoff.hpp"
#include "roles/kubelet_plugin/driver.hpp"

#include <optional>

namespace nvdra::roles::kubelet_plugin {

class CleanUp {
public:
  // How often domains are looked after: news come in bursts, and what kept a directory there may
  // go without any.
  struct Pace {
    Duration settle = 1s;
    Duration settle_after_failure = 2s;
    Duration after_failure = 30s;  // at most; the pauses grow from `settle`
    Duration idle = 1h;
  };

  CleanUp(DriverParts parts, Driver& driver, Random random);
  CleanUp(DriverParts parts, Driver& driver, Random random, Pace pace);

  // Until cancelled.
  Async<Result<void>> run();
  // One pass.
  Async<void> pass();
  // After a reboot: `dropped` claims that still exist will be prepared again, so the first pass
  // leaves their domain's label alone.
  void spare(dra::Checkpoint::Entries dropped) { spared_ = std::move(dropped); }

  void set_resource_version(std::string version) { resource_version_ = std::move(version); }

private:
  Async<bool> recover();
  Async<bool> is_stale(dra::ClaimRef claim, bool started);
  Async<void> drop_expired();
  void drop_files();
  Async<Result<void>> run_passes();
  Async<Result<void>> watch_domains();
  Async<void> release_label();
  Async<bool> is_spared(DomainUid holder);
  std::optional<std::vector<DomainUid>> orphans() const;
  Async<Result<void>> drop_directories();
  static void complain(const Error& error);

  DriverParts parts_;
  Driver& driver_;
  Random random_;
  Pace pace_;
  std::string resource_version_ = "v1";
  dra::Checkpoint::Entries spared_;
};

}  // namespace nvdra::roles::kubelet_plugin
