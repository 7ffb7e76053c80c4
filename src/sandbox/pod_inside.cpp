#include "sandbox/pod_inside.hpp"

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/try.hpp"
#include "imex/text.hpp"
#include "sandbox/pod_init.hpp"
#include "sandbox/pod_root.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace nvdra::sandbox {
namespace {

constexpr int not_made = 125;
constexpr int not_runnable = 126;
constexpr int no_command = 127;

JsonArray array_of(const std::vector<std::string>& texts) {
  JsonArray array;
  for (const std::string& text : texts) array.emplace_back(text);
  return array;
}

std::vector<std::string> texts_at(const Json& json, std::string_view key) {
  std::vector<std::string> texts;
  for (const Json& one : array_or_empty(json, key))
    if (one.is_string()) texts.emplace_back(one.get_string());
  return texts;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

// Becomes the command.
int become(const ContainerSpec& spec) {
  if (::chdir(spec.directory.c_str()) != 0) {
    fmt::print(stderr, "chdir {}: {}\n", spec.directory, std::strerror(errno));
    return not_made;
  }
  const std::vector<char*> arguments = pointers(spec.command);
  const std::vector<char*> environment = pointers(spec.environment);
  // The container's PATH finds the program.
  for (const std::string& entry : spec.environment)
    if (entry.starts_with("PATH=")) ::setenv("PATH", entry.c_str() + 5, 1);
  ::execvpe(arguments[0], arguments.data(), environment.data());
  fmt::print(stderr, "exec: \"{}\": {}\n", spec.command[0], std::strerror(errno));
  return errno == ENOENT ? no_command : not_runnable;
}

int complain(const Error& error) {
  fmt::print(stderr, "container: {}\n", error.text());
  return not_made;
}

}  // namespace

std::string spec_text(const ContainerSpec& spec) {
  JsonArray devices;
  for (const cdi::DeviceNode& node : spec.edits.device_nodes)
    devices.push_back(JsonObject{{"path", node.path},
                                 {"major", node.major},
                                 {"minor", node.minor},
                                 {"mode", node.file_mode.value_or(0666)}});
  JsonArray mounts;
  for (const cdi::Mount& mount : spec.edits.mounts)
    mounts.push_back(JsonObject{{"hostPath", mount.host_path},
                                {"containerPath", mount.container_path},
                                {"options", array_of(mount.options)}});
  return to_text(Json(JsonObject{{"command", array_of(spec.command)},
                                 {"environment", array_of(spec.environment)},
                                 {"directory", spec.directory},
                                 {"hostName", spec.host_name},
                                 {"scratch", spec.scratch},
                                 {"network", spec.network},
                                 {"devices", std::move(devices)},
                                 {"mounts", std::move(mounts)}}));
}

Result<ContainerSpec> container_spec(std::string_view text) {
  TRY(const Json json, parse_json(text));
  ContainerSpec spec;
  spec.command = texts_at(json, "command");
  spec.environment = texts_at(json, "environment");
  TRY(spec.directory, text_at(json, "directory"));
  spec.host_name = text_or_empty(json, "hostName");
  spec.scratch = text_or_empty(json, "scratch");
  spec.network = text_or_empty(json, "network");
  for (const Json& device : array_or_empty(json, "devices"))
    spec.edits.device_nodes.push_back(
        {.path = std::string(text_or_empty(device, "path")),
         .major = static_cast<std::uint32_t>(int_or(device, "major", 0)),
         .minor = static_cast<std::uint32_t>(int_or(device, "minor", 0)),
         .file_mode = static_cast<mode_t>(int_or(device, "mode", 0666))});
  for (const Json& mount : array_or_empty(json, "mounts"))
    spec.edits.mounts.push_back({std::string(text_or_empty(mount, "hostPath")),
                                 std::string(text_or_empty(mount, "containerPath")),
                                 texts_at(mount, "options")});
  if (spec.command.empty()) return refuse("the container has no command");
  return spec;
}

int container_start(std::span<const std::string> arguments) {
  if (arguments.size() != 1) return not_made;
  const Result<std::string> text = read_file(arguments[0]);
  if (!text) return complain(text.error());
  const Result<ContainerSpec> spec = container_spec(*text);
  if (!spec) return complain(spec.error());
  const Result<void> made = enter_own_root(*spec);
  if (!made) return complain(made.error());
  return run_in_own_processes([&] {
    fmt::print("{}\n", container_started);
    std::fflush(stdout);
    return become(*spec);
  });
}

int container_exec(std::span<const std::string> arguments) {
  if (arguments.size() != 2) return not_made;
  const auto pid = imex::parse_number<int>(arguments[0]);
  const Result<ContainerSpec> spec = container_spec(arguments[1]);
  if (!spec) return complain(spec.error());
  const Result<void> entered = enter_root_of(pid.value_or(0));
  if (!entered) return complain(entered.error());
  return run_as_child([&] { return become(*spec); });
}

}  // namespace nvdra::sandbox
