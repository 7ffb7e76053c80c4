#include "dra/checkpoint.hpp"

#include "base/files.hpp"
#include "dra/checkpoint_text.hpp"
#include "dra/checksum.hpp"
#include "dra/claim_status.hpp"
#include "dra/go_json.hpp"

#include <fcntl.h>
#include <fmt/format.h>

namespace nvdra::dra {
namespace {

class Category final : public boost::system::error_category {
public:
  const char* name() const noexcept override { return "nvdra.dra"; }
  std::string message(int code) const override {
    switch (static_cast<Errc>(code)) {
      case Errc::corrupt: return "the checkpoint is corrupt";
      case Errc::locked: return "held by another process";
    }
    return "unknown error";
  }
};

void append_texts(std::string& out, const std::vector<std::string>& texts) {
  out += '[';
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) out += ',';
    append_quoted(out, texts[i]);
  }
  out += ']';
}

void append_device(std::string& out, const CheckpointDevice& item) {
  bool channel = item.kind == CheckpointDevice::Kind::channel;
  out += channel ? "{\"channel\":" : "{\"channel\":null,\"daemon\":";
  out += fmt::format("{{\"info\":{{\"id\":{}}},\"device\":{{\"Requests\":", item.id);
  append_texts(out, item.device.requests);
  out += ",\"PoolName\":";
  append_quoted(out, item.device.pool);
  out += ",\"DeviceName\":";
  append_quoted(out, item.device.device);
  out += ",\"CDIDeviceIDs\":";
  append_texts(out, item.device.cdi_ids);
  out += channel ? "}},\"daemon\":null}" : "}}}";
}

void append_groups(std::string& out, const std::vector<DeviceGroup>& groups) {
  out += '[';
  for (std::size_t i = 0; i < groups.size(); ++i) {
    out += i > 0 ? ",{\"devices\":[" : "{\"devices\":[";
    for (std::size_t j = 0; j < groups[i].devices.size(); ++j) {
      if (j > 0) out += ',';
      append_device(out, groups[i].devices[j]);
    }
    out += "],\"configState\":{\"Type\":";
    append_quoted(out, groups[i].type);
    out += ",\"ComputeDomain\":";
    append_quoted(out, groups[i].domain.value);
    out += "}}";
  }
  out += ']';
}

void append_optional(std::string& out, std::string_view key, std::string_view text) {
  if (text.empty()) return;
  out += fmt::format(",\"{}\":", key);
  append_quoted(out, text);
}

// A text and its checksum, which counts more than the text has: the beginning that it stands for.
struct Summed {
  explicit Summed(std::string_view beginning) { sum.add(beginning); }
  void add(std::string_view piece) {
    text += piece;
    sum.add(piece);
  }
  void add(const std::string& piece, Checksum::Memo& memo) {
    text += piece;
    sum.add(piece, memo);
  }
  std::string text;
  Checksum sum;
};

// `"preparedClaims":{…}` after `separator`, or nothing if no entry has such a text.
void add_claims(Summed& into, std::string_view separator, const Checkpoint::Entries& entries,
                Checkpoint::EntryText Checkpoint::Entry::* member) {
  std::size_t size = into.text.size() + 64;
  for (const auto& [uid, entry] : entries) size += ((*entry).*member).text.size() + 1;
  into.text.reserve(size);
  bool any = false;
  for (const auto& [uid, entry] : entries) {
    const Checkpoint::EntryText& body = (*entry).*member;
    if (body.text.empty()) continue;
    if (!any) into.add(separator);
    into.add(any ? "," : "\"preparedClaims\":{");
    into.add(body.text, body.memo);
    any = true;
  }
  if (any) into.add("}");
}

}  // namespace

boost::system::error_code make_error_code(Errc code) {
  static const Category category;
  return {static_cast<int>(code), category};
}

std::string_view state_name(ClaimState state) {
  switch (state) {
    case ClaimState::started: return "PrepareStarted";
    case ClaimState::completed: return "PrepareCompleted";
    case ClaimState::aborted: return "PrepareAborted";
    case ClaimState::unknown: return "";
  }
  __builtin_unreachable();
}

ClaimState state_named(std::string_view name) {
  for (ClaimState state : {ClaimState::started, ClaimState::completed, ClaimState::aborted})
    if (name == state_name(state)) return state;
  return ClaimState::unknown;
}

Prepared CheckpointClaim::prepared() const {
  Prepared all;
  for (const DeviceGroup& group : groups)
    for (const CheckpointDevice& item : group.devices) all.push_back(item.device);
  return all;
}

Checkpoint::Entry make_entry(CheckpointClaim claim) {
  std::string status = render_status(claim.status);
  Result<Json> canonical = parse_json(status);
  if (canonical) claim.status = *std::move(canonical);
  std::string common = "\"status\":" + status;
  if (!claim.groups.empty()) {
    common += ",\"preparedDevices\":";
    append_groups(common, claim.groups);
  }
  Checkpoint::Entry entry;
  entry.v2.text = "{\"checkpointState\":";
  bool known = claim.state != ClaimState::unknown;
  append_quoted(entry.v2.text, known ? state_name(claim.state) : claim.state_text);
  entry.v2.text += ',' + common;
  append_optional(entry.v2.text, "name", claim.name);
  append_optional(entry.v2.text, "namespace", claim.space);
  append_optional(entry.v2.text, "abortedAt", claim.aborted_at);
  entry.v2.text += '}';
  if (claim.state == ClaimState::completed) entry.v1.text = '{' + common + '}';
  entry.claim = std::move(claim);
  return entry;
}

void set_key(Checkpoint::Entry& entry, std::string_view quoted) {
  for (std::string* text : {&entry.v2.text, &entry.v1.text})
    if (!text->empty()) text->insert(0, std::string(quoted) + ":");
}

const CheckpointClaim* Checkpoint::find(const ClaimUid& uid) const {
  auto found = entries_.find(uid);
  return found == entries_.end() ? nullptr : &found->second->claim;
}

void Checkpoint::put(const ClaimUid& uid, CheckpointClaim claim) {
  Entry entry = make_entry(std::move(claim));
  std::string key;
  append_quoted(key, uid.value);
  set_key(entry, key);
  entries_[uid] = std::make_shared<const Entry>(std::move(entry));
  ++changes_;
}

void Checkpoint::erase(const ClaimUid& uid) {
  if (entries_.erase(uid) > 0) ++changes_;
}

void Checkpoint::set_boot_id(std::string id) {
  if (id == boot_id_) return;
  boot_id_ = std::move(id);
  ++changes_;
}

std::string CheckpointText::render(const Checkpoint& checkpoint) {
  Summed v1("{\"checksum\":0,");
  v1.add("\"v1\":{");
  add_claims(v1, "", checkpoint.entries_, &Checkpoint::Entry::v1);
  v1.add("}");
  v1.sum.add(checkpoint.unknown_);  // stands after v2, which does not count
  v1.sum.add("}");

  Summed v2("{\"checksum\":0");
  add_claims(v2, ",", checkpoint.entries_, &Checkpoint::Entry::v2);
  std::string rest;
  append_optional(rest, "nodeBootID", checkpoint.boot_id_);
  v2.add(rest + checkpoint.unknown_v2_ + "}");

  std::string out;
  out.reserve(v1.text.size() + v2.text.size() + checkpoint.unknown_.size() + 80);
  out += fmt::format("{{\"checksum\":{},", v1.sum.value());
  out += v1.text;
  out += fmt::format(",\"v2\":{{\"checksum\":{}", v2.sum.value());
  out += v2.text;
  out += checkpoint.unknown_;
  out += '}';
  return out;
}

std::string render(const Checkpoint& checkpoint) {
  return CheckpointText::render(checkpoint);
}

Result<Checkpoint> parse_checkpoint(std::string_view text) {
  return CheckpointText::parse(text);
}

Adopted adopt_boot_id(Checkpoint& checkpoint, const std::string& boot_id) {
  Adopted adopted{Boot::same, {}};
  if (checkpoint.boot_id() == boot_id) return adopted;
  adopted.boot = checkpoint.boot_id().empty() ? Boot::unrecorded : Boot::other;
  if (adopted.boot == Boot::other) {
    adopted.dropped = checkpoint.entries();
    for (const auto& dropped : adopted.dropped) checkpoint.erase(dropped.first);
  }
  checkpoint.set_boot_id(boot_id);
  return adopted;
}

Result<std::string> read_boot_id(const std::string& path) {
  Result<std::string> text = read_file(AT_FDCWD, path, 4096);
  if (!text) return std::move(text).failure().during("read boot id " + path);
  std::size_t begin = text->find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return refuse("boot id file " + path + " is empty");
  std::size_t end = text->find_last_not_of(" \t\r\n");
  return text->substr(begin, end - begin + 1);
}

}  // namespace nvdra::dra
