#include "dra/checkpoint_store.hpp"

#include "base/files.hpp"
#include "base/log.hpp"
#include "base/try.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

namespace nvdra::dra {
namespace {

constexpr Duration lock_limit = 10s;
constexpr Duration lock_poll = 100ms;
constexpr mode_t file_mode = 0600;

}  // namespace

CheckpointStore::CheckpointStore(int directory, std::string path, Time& time)
    : directory_(directory), path_(std::move(path) + "/" + file_name), time_(time) {}

Result<CheckpointStore::Identity> CheckpointStore::identify() const {
  struct stat found{};
  if (::fstatat(directory_, file_name, &found, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return Identity{};
    return errno_failure("look at " + path_);
  }
  if (!S_ISREG(found.st_mode))
    return fail(make_error_code(Errc::corrupt), path_ + " is not a regular file");
  return Identity{found.st_ino,
                  std::int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec,
                  found.st_size};
}

Result<void> CheckpointStore::refresh() {
  // Looked at before the read: a file that changes in between is read once more next time.
  TRY(Identity now, identify());
  if (now == seen_ || now == Identity{}) return ok();
  Result<std::string> text = read_file(directory_, file_name);
  if (!text) return std::move(text).failure().during("read " + path_);
  Result<Checkpoint> parsed = parse_checkpoint(*text);
  if (!parsed) return std::move(parsed).failure().during("read " + path_);
  current_ = *std::move(parsed);
  seen_ = now;
  loaded_ = true;
  return ok();
}

// refresh() of a store that can go on without the file. Under the lock.
Result<void> CheckpointStore::catch_up() {
  Result<void> read = refresh();
  if (read || read.error().code != Errc::corrupt || !loaded_) return read;
  TRY(std::string where, move_aside());
  std::string text =
      fmt::format("{}; it is kept as {}, and the plugin goes on with what it knows from before",
                  read.error().text(), where);
  LOG_ERROR("The checkpoint was set aside", {{"err", text}});
  if (tell_) tell_(std::move(text));
  return ok();
}

Async<Result<Fd>> CheckpointStore::lock() {
  for (Duration waited{};; waited += lock_poll) {
    Result<Fd> held = try_lock_file(directory_, lock_name);
    if (held) co_return held;
    if (held.error().code != boost::system::errc::resource_unavailable_try_again)
      co_return std::move(held).failure().during("lock " + path_);
    if (waited >= lock_limit)
      co_return fail(make_error_code(Errc::locked),
                     fmt::format("lock {}: another kubelet plugin has held {} beside it for 10 s",
                                 path_, lock_name));
    co_await time_.sleep(lock_poll);
  }
}

Async<Result<void>> CheckpointStore::update(std::function<Result<void>(Checkpoint&)> change) {
  CO_TRY(Fd held, co_await lock());
  CO_TRY_VOID(catch_up());
  Checkpoint changed = current_;
  CO_TRY_VOID(change(changed));
  if (changed.changes() == current_.changes() && seen_ != Identity{}) co_return ok();
  co_return save(std::move(changed));
}

Result<void> CheckpointStore::save(Checkpoint changed) {
  Result<void> written = replace_file(directory_, file_name, render(changed), file_mode);
  if (!written) {
    seen_ = {};  // it is not known which of the two files is there
    return std::move(written).failure().during("write " + path_);
  }
  current_ = std::move(changed);
  loaded_ = true;
  Result<Identity> now = identify();
  seen_ = now ? *now : Identity{};
  return ok();
}

Async<Result<std::string>> CheckpointStore::set_aside() {
  CO_TRY(Fd held, co_await lock());
  co_return move_aside();
}

Result<std::string> CheckpointStore::move_aside() {
  std::string suffix = ".corrupt-" + rfc3339(time_.wall());
  struct stat found{};
  std::string base = suffix;
  for (int i = 2;
       ::fstatat(directory_, (file_name + suffix).c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0; ++i)
    suffix = fmt::format("{}-{}", base, i);
  if (::renameat(directory_, file_name, directory_, (file_name + suffix).c_str()) != 0)
    return errno_failure("set aside " + path_);
  seen_ = {};
  return path_ + suffix;
}

}  // namespace nvdra::dra
