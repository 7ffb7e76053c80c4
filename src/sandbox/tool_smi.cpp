#include "sandbox/tool_smi.hpp"

#include "imex/driver_version.hpp"
#include "imex/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace nvdra::sandbox {
namespace {

using imex::FabricState;
using imex::Gpu;

constexpr std::string_view no_value = "[N/A]";

struct Field {
  std::string_view name;
  std::string (*value)(const Gpu&);
};

std::string fabric_text(const Gpu& gpu, std::string_view text) {
  return gpu.state == FabricState::completed ? std::string(text) : "N/A";
}

// clang-format off
const Field fields[] = {
  {"count",              [](const Gpu&) { return std::string(no_value); }},
  {"driver_version",     [](const Gpu& gpu) { return gpu.driver_version; }},
  {"fabric.cliqueId",    [](const Gpu& gpu) { return fabric_text(gpu, std::to_string(gpu.clique_number.value_or(0))); }},
  {"fabric.clusterUuid", [](const Gpu& gpu) { return fabric_text(gpu, gpu.cluster_uuid); }},
  {"fabric.state",       [](const Gpu& gpu) { return gpu.state == FabricState::not_supported ? std::string("N/A") : std::string(imex::words(gpu.state)); }},
  {"fabric.status",      [](const Gpu& gpu) { return fabric_text(gpu, gpu.status); }},
  {"gpu_bus_id",         [](const Gpu& gpu) { return fmt::format("{:08X}:01:00.0", 8 + gpu.index); }},
  {"gpu_name",           [](const Gpu& gpu) { return gpu.name; }},
  {"gpu_uuid",           [](const Gpu& gpu) { return gpu.uuid; }},
  {"index",              [](const Gpu& gpu) { return std::to_string(gpu.index); }},
  {"memory.total",       [](const Gpu&) { return std::string("189471 MiB"); }},
  {"name",               [](const Gpu& gpu) { return gpu.name; }},
  {"pci.bus_id",         [](const Gpu& gpu) { return fmt::format("{:08X}:01:00.0", 8 + gpu.index); }},
  {"uuid",               [](const Gpu& gpu) { return gpu.uuid; }},
};
// clang-format on

// The generations that know the fabric's fields.
bool has_field(const NodeFacts& facts, std::string_view name) {
  if (!name.starts_with("fabric.")) return true;
  const auto version = imex::parse_driver_version(facts.driver_version);
  return !version || version->numbers.at(0) >= 550;
}

struct Request {
  bool list = false, report = false, xml = false, version = false, help = false;
  std::string query;
  std::string format;
  std::string only;
  std::string unknown;
};

Request read_request(std::span<const std::string> arguments) {
  Request request;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const auto value = [&](std::string_view name) {
      return word.starts_with(fmt::format("{}=", name)) ? word.substr(name.size() + 1) : "";
    };
    const bool more = i + 1 < arguments.size();
    if (word == "-L" || word == "--list-gpus")
      request.list = true;
    else if (word == "-q" || word == "--query")
      request.report = true;
    else if (word == "-x" || word == "--xml-format")
      request.xml = true;
    else if (word == "--version")
      request.version = true;
    else if (word == "-h" || word == "--help")
      request.help = true;
    else if (word == "-i" && more)
      request.only = arguments[++i];
    else if (!value("--id").empty())
      request.only = value("--id");
    else if (!value("--query-gpu").empty())
      request.query = value("--query-gpu");
    else if (!value("--format").empty())
      request.format = value("--format");
    else
      request.unknown = word;
  }
  return request;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto comma = text.find(',');
    parts.push_back(imex::trim(text.substr(0, comma)));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return parts;
}

ToolAnswer query(const NodeFacts& facts, std::span<const Gpu> gpus, const Request& request) {
  const auto format = split(request.format);
  if (std::ranges::find(format, "csv") == format.end())
    return {"\"--format=\" switch is missing. Please run 'nvidia-smi -h' for help.\n", "", 2};
  std::vector<const Field*> columns;
  for (const std::string_view name : split(request.query)) {
    const auto* found = std::ranges::find(fields, name, &Field::name);
    if (found == std::end(fields) || !has_field(facts, name))
      return {fmt::format("Field \"{}\" is not a valid field to query.\n\n", name), "", 2};
    columns.push_back(found);
  }
  std::string text;
  if (std::ranges::find(format, "noheader") == format.end()) {
    std::vector<std::string_view> names;
    for (const Field* field : columns) names.push_back(field->name);
    text += fmt::format("{}\n", fmt::join(names, ", "));
  }
  const bool units = std::ranges::find(format, "nounits") == format.end();
  for (const Gpu& gpu : gpus) {
    std::vector<std::string> row;
    for (const Field* field : columns) {
      std::string value = field->value(gpu);
      if (!units && value.ends_with(" MiB")) value.resize(value.size() - 4);
      row.push_back(std::move(value));
    }
    text += fmt::format("{}\n", fmt::join(row, ", "));
  }
  return {text};
}

std::string overview(const NodeFacts& facts, std::span<const Gpu> gpus, const std::string& now) {
  const std::string line = fmt::format("+{:-<89}+\n", "");
  std::string text =
      now + "\n" + line +
      fmt::format("| NVIDIA-SMI {:<22} Driver Version: {:<14} CUDA Version: {:<8} |\n",
                  facts.driver_version, facts.driver_version, "13.0");
  text += line;
  for (const Gpu& gpu : gpus)
    text += fmt::format("| {:>3}  {:<31} {:<50} |\n", gpu.index, gpu.name,
                        fmt::format("{:08X}:01:00.0", 8 + gpu.index));
  return text + line;
}

std::string version_lines(const NodeFacts& facts) {
  const std::string& version = facts.driver_version;
  const std::string nvml = version.substr(0, version.find('.', version.find('.') + 1));
  return fmt::format(
      "NVIDIA-SMI version  : {}\nNVML version        : {}\nDRIVER version      : {}\n"
      "CUDA Version        : 13.0\n",
      version, nvml, version);
}

}  // namespace

ToolAnswer nvidia_smi(const NodeFacts& facts, std::span<const std::string> arguments,
                      const std::string& now) {
  const Request request = read_request(arguments);
  if (request.help)
    return {"NVIDIA System Management Interface -- v" + facts.driver_version +
            "\n\nnvidia-smi [-L | -q [-x] | --query-gpu=FIELDS --format=csv[,noheader][,nounits]] "
            "[-i ID]\n"};
  if (!request.unknown.empty())
    return {
        fmt::format("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n"
                    "\n{} is not recognized\n",
                    request.unknown),
        "", 1};
  if (request.version) return {version_lines(facts)};

  std::span<const Gpu> gpus = facts.gpus;
  if (!request.only.empty()) {
    const auto found = std::ranges::find_if(gpus, [&](const Gpu& gpu) {
      return gpu.uuid == request.only || std::to_string(gpu.index) == request.only;
    });
    gpus = found == gpus.end() ? gpus.first(0) : std::span(&*found, 1);
  }
  if (gpus.empty()) return {"No devices were found\n", "", 6};
  if (!request.query.empty()) return query(facts, gpus, request);
  if (request.xml) return {smi_xml(facts, gpus, now)};
  if (request.report) return {smi_report(facts, gpus, now)};
  if (request.list) {
    std::string text;
    for (const Gpu& gpu : gpus)
      text += fmt::format("GPU {}: {} (UUID: {})\n", gpu.index, gpu.name, gpu.uuid);
    return {text};
  }
  return {overview(facts, gpus, now)};
}

}  // namespace nvdra::sandbox
