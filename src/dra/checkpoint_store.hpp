// CheckpointStore: checkpoint.json in the plugin's directory, shared with other processes of this
// driver (an old plugin that is still ending, or the original's) by flock(2) on pu.lock [KEEP].
//   * The lock is held for one change only: read what somebody else wrote, change, write. Nothing
//     else happens meanwhile: no API call, no child process, no wait.
//   * The copy in memory is the truth as long as the file is the one that we wrote or read last.
//   * A write is a draft, fsync, rename, fsync of the directory: a full disk leaves the old file
//   and
//     the old copy, and is an error that names the file.
#pragma once

#include "base/fd.hpp"
#include "dra/checkpoint.hpp"

#include <functional>

namespace nvdra::dra {

class CheckpointStore {
public:
  static constexpr const char* file_name = "checkpoint.json";
  static constexpr const char* lock_name = "pu.lock";

  // `directory` is an open descriptor that outlives the store; `path` is its name for messages.
  CheckpointStore(int directory, std::string path, Time& time);

  // Reads the file unless the copy is up to date. No file: at first empty, later the copy stays
  // (and the next change writes it again). Errc::corrupt with the reason when it is not a
  // checkpoint, a directory of that name included; the copy is kept. Needs no lock.
  Result<void> refresh();

  // The checkpoint as of the last refresh or update.
  const Checkpoint& current() const { return current_; }

  // Takes the lock, refreshes, applies `change` and, if it changed anything, saves. On any error
  // nothing has changed, neither in the file nor in the copy; `change` may refuse. It is called at
  // most once and must not touch the store. A corrupt file does not stop a store that has read or
  // written a good one before: it is set aside, and the copy goes on. Waits at most 10 s for the
  // lock (Errc::locked), looking every 100 ms. Changes of one process do not wait for each other.
  Async<Result<void>> update(std::function<Result<void>(Checkpoint&)> change);

  // Renames the file to checkpoint.json.corrupt-<time> and goes on with the copy (at first an empty
  // one). Returns the new path. To be called once refresh() or update() said Errc::corrupt.
  Async<Result<std::string>> set_aside();

  // Told what was wrong with a file that update() has set aside, and where it is now.
  void on_set_aside(std::function<void(std::string)> tell) { tell_ = std::move(tell); }

private:
  // Which file was last read or written; all zero: none.
  struct Identity {
    std::uint64_t inode = 0;
    std::int64_t modified = 0;  // ns
    std::int64_t size = 0;
    bool operator==(const Identity&) const = default;
  };
  Result<Identity> identify() const;
  Async<Result<Fd>> lock();
  Result<void> catch_up();
  Result<std::string> move_aside();
  Result<void> save(Checkpoint changed);

  int directory_;
  std::string path_;
  Time& time_;
  Checkpoint current_;
  Identity seen_;
  bool loaded_ = false;  // the copy comes from a good file
  std::function<void(std::string)> tell_;
};

}  // namespace nvdra::dra
