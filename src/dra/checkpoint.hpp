// checkpoint.json: which claims this node has prepared, is preparing, or has given up [KEEP].
// Layout, checksums and versions: node-side.md section 7. Pure; the file is checkpoint_store.hpp's.
//   * Read: the current layout (v2), the one before (only v1), and the oldest (v1 with bare
//   arrays).
//   * Written: v2, and a v1 copy of the completed claims for a release that knows no v2.
//   * An entry that nobody changes keeps its bytes, with fields and states that we do not know.
//     Unknown fields of the file and of v2 are kept; a newer layout beside v2 ("v3") is dropped by
//     the first change, as a release that knows it would otherwise believe it instead of ours.
#pragma once

#include "base/ids.hpp"
#include "base/json.hpp"
#include "base/time.hpp"
#include "dra/checksum.hpp"
#include "dra/plugin.hpp"

#include <map>
#include <memory>
#include <optional>

namespace nvdra::dra {

enum class Errc {
  corrupt = 1,  // the checkpoint is no checkpoint: set it aside
  locked,       // another process holds the lock
};
boost::system::error_code make_error_code(Errc code);

enum class ClaimState {
  started,    // "PrepareStarted": intent written, effects may exist
  completed,  // "PrepareCompleted"
  aborted,    // "PrepareAborted": unprepared before it was completed
  unknown,    // any other text, or an entry that could not be understood
};

struct CheckpointDevice {
  enum class Kind { channel, daemon };
  Kind kind;
  std::int64_t id;  // of the channel or daemon: 0
  PreparedDevice device;
  bool operator==(const CheckpointDevice&) const = default;
};

// The devices that one config was applied to.
struct DeviceGroup {
  std::vector<CheckpointDevice> devices;
  std::string type;  // "channel" or "daemon"
  DomainUid domain;
  bool operator==(const DeviceGroup&) const = default;
};

struct CheckpointClaim {
  ClaimState state = ClaimState::started;
  // The claim's status when it was prepared, as claim_status.hpp spells it. {} in entries of the
  // oldest layout: their allocation is not known.
  Json status = JsonObject{};
  std::vector<DeviceGroup> groups;
  std::string name;  // "" in entries of older layouts, as is `space`
  std::string space;
  std::string aborted_at = {};  // RFC 3339; only of aborted ones
  std::string state_text = {};  // of state unknown: what stood there, or why it was not understood

  // The devices of all groups, in order, as prepare answers them.
  Prepared prepared() const;
};

class Checkpoint {
public:
  struct EntryText {
    std::string text;                  // `"<uid>":{…}`
    mutable Checksum::Memo memo = {};  // only speed
  };
  struct Entry {
    CheckpointClaim claim;
    EntryText v2;  // as in the file
    EntryText v1;  // the copy for the older layout, "" if there is none
  };
  // Sorted by UID. Copying a Checkpoint shares its entries.
  using Entries = std::map<ClaimUid, std::shared_ptr<const Entry>>;

  const Entries& entries() const { return entries_; }
  const CheckpointClaim* find(const ClaimUid& uid) const;  // nullptr if there is none
  void put(const ClaimUid& uid, CheckpointClaim claim);
  void erase(const ClaimUid& uid);

  // Of the boot in which the entries were made; "" = not recorded.
  const std::string& boot_id() const { return boot_id_; }
  void set_boot_id(std::string id);

  // Changes since it was parsed or made; a file need not be written when it is 0.
  std::uint64_t changes() const { return changes_; }

private:
  friend struct CheckpointText;
  Entries entries_;
  std::string boot_id_;
  std::string unknown_;     // members of the file that we do not know: `,"key":value…`
  std::string unknown_v2_;  // the same of v2
  std::uint64_t changes_ = 0;
};

// The bytes of the file; one line without an end.
std::string render(const Checkpoint& checkpoint);
// Every error is Errc::corrupt and says what is wrong.
Result<Checkpoint> parse_checkpoint(std::string_view text);

// What a boot id means for the entries (node-side.md 7.5).
enum class Boot {
  same,
  unrecorded,  // the file had none: the entries are taken to be of this boot
  other,       // the entries are worthless; they are gone from the checkpoint now
};
struct Adopted {
  Boot boot;
  Checkpoint::Entries dropped;  // of another boot: what the caller may have to undo
};
Adopted adopt_boot_id(Checkpoint& checkpoint, const std::string& boot_id);

// The running kernel's boot id, trimmed.
Result<std::string> read_boot_id(const std::string& path = "/proc/sys/kernel/random/boot_id");

}  // namespace nvdra::dra

template <>
struct boost::system::is_error_code_enum<nvdra::dra::Errc> : std::true_type {};
