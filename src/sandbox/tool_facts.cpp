#include "sandbox/tool_facts.hpp"

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/try.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <thread>

namespace nvdra::sandbox {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view usual_version = "580.95.05";
constexpr std::string_view usual_cluster = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
constexpr unsigned usual_clique = 32766;

Result<std::optional<Json>> read_json(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0) return std::optional<Json>{};
  Result<std::string> text = read_file(path);
  if (!text) return std::move(text).failure().during("read " + path);
  Result<Json> json = parse_json(*text);
  if (!json) return std::move(json).failure().during(path);
  if (!json->is_object()) return refuse(path + " holds no JSON object");
  return std::optional<Json>(*std::move(json));
}

// One key of an object: its name and where its value goes; false = the value has the wrong type.
struct Key {
  std::string_view name;
  std::function<bool(const Json&)> take;
};

bool take_text(const Json& value, std::string& into) {
  if (value.is_string()) into = std::string(value.get_string());
  return value.is_string();
}
bool take_flag(const Json& value, bool& into) {
  if (value.is_bool()) into = value.get_bool();
  return value.is_bool();
}
bool take_number(const Json& value, double& into) {
  if (!value.is_number()) return false;
  into = value.to_number<double>();
  return true;
}
bool take_status(const Json& value, int& into) {
  if (!value.is_int64() || value.get_int64() < 0 || value.get_int64() > 255) return false;
  into = static_cast<int>(value.get_int64());
  return true;
}
template <class T>
bool take_into(std::optional<T>& into, bool (*take)(const Json&, T&), const Json& value) {
  return take(value, into.emplace());
}

Result<void> take_all(const Json& object, std::string_view where, std::initializer_list<Key> keys) {
  if (!object.is_object()) return refuse(fmt::format("{} is no JSON object", where));
  for (const auto& [name, value] : object.get_object()) {
    const auto key = std::ranges::find(keys, std::string_view(name), &Key::name);
    if (key == keys.end())
      return refuse(fmt::format("{} has the unknown key \"{}\"", where, std::string_view(name)));
    if (!key->take(value))
      return refuse(fmt::format("{} has {}: {}, which is of the wrong type", where, key->name,
                                to_text(value)));
  }
  return ok();
}

Result<ToolFaults> tool_faults(const Json& object, const std::string& where) {
  ToolFaults faults;
  bool garbage = false;
  TRY_VOID(
      take_all(object, where,
               {{"delay", [&](const Json& v) { return take_number(v, faults.delay); }},
                {"hang", [&](const Json& v) { return take_flag(v, faults.hang); }},
                {"exit", [&](const Json& v) { return take_into(faults.exit, take_status, v); }},
                {"stdout", [&](const Json& v) { return take_into(faults.out, take_text, v); }},
                {"stderr", [&](const Json& v) { return take_into(faults.err, take_text, v); }},
                {"garbage", [&](const Json& v) { return take_flag(v, garbage); }}}));
  if (garbage)
    faults.out =
        "\x7f"
        "ELF\x02 %!s(<nil>)\n";
  return faults;
}

Result<ImexFaults> imex_faults(const Json& object, const std::string& where) {
  ImexFaults faults;
  TRY_VOID(take_all(
      object, where,
      {{"slowStart", [&](const Json& v) { return take_number(v, faults.slow_start); }},
       {"state", [&](const Json& v) { return take_text(v, faults.state); }},
       {"hang", [&](const Json& v) { return take_flag(v, faults.hang); }},
       {"answer", [&](const Json& v) { return take_text(v, faults.answer); }},
       {"exitAtStart",
        [&](const Json& v) { return take_into(faults.exit_at_start, take_status, v); }},
       {"crashAfter", [&](const Json& v) { return take_into(faults.crash_after, take_number, v); }},
       {"exit", [&](const Json& v) { return take_status(v, faults.exit); }},
       {"driverVersion", [&](const Json& v) { return take_text(v, faults.driver_version); }},
       {"inUse", [&](const Json& v) { return take_flag(v, faults.in_use); }},
       {"ignoreTerm", [&](const Json& v) { return take_flag(v, faults.ignore_term); }},
       {"unconnected", [&](const Json& v) { return take_flag(v, faults.unconnected); }}}));
  return faults;
}

// The version in the name of the driver's library, "" if there is none.
std::string installed_version(const std::string& root) {
  constexpr std::string_view name = "libnvidia-ml.so.";
  for (const char* folder :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/aarch64-linux-gnu"}) {
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(root + folder, failed)) {
      const std::string file = entry.path().filename();
      if (file.starts_with(name) && file.find('.', name.size()) != std::string::npos)
        return file.substr(name.size());
    }
  }
  return {};
}

// A UUID of its own for each GPU of each host.
std::string made_up_uuid(unsigned index) {
  std::array<char, HOST_NAME_MAX + 1> host{};
  (void)::gethostname(host.data(), host.size() - 1);
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char* c = host.data(); *c != 0; ++c)
    hash = (hash ^ static_cast<unsigned char>(*c)) * 1099511628211ULL;
  return fmt::format("GPU-{:08x}-{:04x}-4{:03x}-8000-{:012x}", hash >> 32, (hash >> 16) & 0xffff,
                     hash & 0xfff, index + 1);
}

void put_fabric(const Json& fabric, imex::Gpu& gpu) {
  const std::string_view state = text_or_empty(fabric, "state");
  gpu.state = imex::FabricState::completed;
  for (const auto known : {imex::FabricState::not_supported, imex::FabricState::not_started,
                           imex::FabricState::in_progress})
    if (state == imex::words(known)) gpu.state = known;
  const Json* status = find(fabric, "status");
  gpu.status = status && status->is_string() ? std::string(status->get_string()) : "Success";
  gpu.clique_number = static_cast<std::uint32_t>(int_or(fabric, "cliqueId", usual_clique));
  const Json* cluster = find(fabric, "clusterUuid");
  gpu.cluster_uuid = cluster && cluster->is_string() ? std::string(cluster->get_string())
                                                     : std::string(usual_cluster);
}

}  // namespace

std::string own_root() {
  std::array<char, PATH_MAX> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0) return {};
  fs::path directory(std::string(path.data(), static_cast<std::size_t>(size)));
  for (directory = directory.parent_path(); directory != "/"; directory = directory.parent_path())
    if (::access((directory / "etc/nvdra-sandbox").c_str(), F_OK) == 0) return directory;
  return {};
}

Result<NodeFacts> read_facts(const std::string& root) {
  TRY(const std::optional<Json> file, read_json(root + "/etc/nvdra-sandbox/node.json"));
  const Json json = file ? *file : Json(JsonObject{});
  NodeFacts facts;
  facts.driver_version = text_or_empty(json, "driverVersion");
  if (facts.driver_version.empty()) facts.driver_version = installed_version(root);
  if (facts.driver_version.empty()) facts.driver_version = usual_version;
  facts.imex_version = text_or_empty(json, "imexVersion");
  if (facts.imex_version.empty()) facts.imex_version = facts.driver_version;

  std::string name(text_or_empty(json, "gpuName"));
  if (name.empty()) name = "NVIDIA GB200";
  const JsonArray& uuids = array_or_empty(json, "gpuUuids");
  const auto count =
      static_cast<unsigned>(std::clamp<std::int64_t>(int_or(json, "gpus", 2), 0, 64));
  const Json none = JsonObject{};
  const Json* fabric = find(json, "fabric");
  for (unsigned i = 0; i < count; ++i) {
    imex::Gpu gpu;
    gpu.index = i;
    gpu.name = name;
    gpu.uuid = i < uuids.size() && uuids[i].is_string() ? std::string(uuids[i].get_string())
                                                        : made_up_uuid(i);
    gpu.driver_version = facts.driver_version;
    put_fabric(fabric ? *fabric : none, gpu);
    facts.gpus.push_back(std::move(gpu));
  }
  return facts;
}

Result<NodeFaults> read_faults(const std::string& root) {
  const std::string path = root + "/etc/nvdra-sandbox/faults.json";
  TRY(const std::optional<Json> file, read_json(path));
  NodeFaults faults;
  if (!file) return faults;
  Json smi = JsonObject{};
  Json ctl = JsonObject{};
  Json imex = JsonObject{};
  const auto keep = [](Json& into) { return [&into](const Json& v) { return into = v, true; }; };
  const auto known = [&](const Json& value) {
    return take_text(value, faults.fabric) &&
           (faults.fabric == "none" || faults.fabric == "notStarted" ||
            faults.fabric == "inProgress" || faults.fabric == "failed");
  };
  TRY_VOID(take_all(*file, path,
                    {{"fabric", known},
                     {"driver", [&](const Json& v) { return take_flag(v, faults.driver); }},
                     {"nvidia-smi", keep(smi)},
                     {"nvidia-imex-ctl", keep(ctl)},
                     {"nvidia-imex", keep(imex)}}));
  TRY(faults.smi, tool_faults(smi, path + ": nvidia-smi"));
  TRY(faults.ctl, tool_faults(ctl, path + ": nvidia-imex-ctl"));
  TRY(faults.imex, imex_faults(imex, path + ": nvidia-imex"));
  return faults;
}

void put_fabric_fault(const std::string& fault, std::vector<imex::Gpu>& gpus) {
  if (fault.empty()) return;
  for (imex::Gpu& gpu : gpus) {
    if (fault == "failed") {
      gpu.status = "Insufficient Resources";
      continue;
    }
    gpu.state = fault == "none"         ? imex::FabricState::not_supported
                : fault == "notStarted" ? imex::FabricState::not_started
                                        : imex::FabricState::in_progress;
  }
}

std::optional<int> play_faults(const ToolFaults& faults) {
  if (faults.delay > 0) std::this_thread::sleep_for(std::chrono::duration<double>(faults.delay));
  while (faults.hang) ::pause();
  if (faults.out) fmt::print(stdout, "{}", *faults.out);
  if (faults.err) fmt::print(stderr, "{}", *faults.err);
  if (faults.exit) return *faults.exit;
  if (faults.out) return 0;
  return std::nullopt;
}

}  // namespace nvdra::sandbox
