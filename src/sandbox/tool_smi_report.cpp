// nvidia-smi -q and -q -x: the parts of the reports that say something about a node's fabric.
#include "imex/driver_version.hpp"
#include "sandbox/tool_smi.hpp"

#include <fmt/format.h>

namespace nvdra::sandbox {
namespace {

using imex::FabricState;
using imex::Gpu;

std::uint64_t generation(const NodeFacts& facts) {
  const auto version = imex::parse_driver_version(facts.driver_version);
  return version ? version->numbers.at(0) : 580;
}

struct Row {
  std::string_view text;  // in the text report; "" = only in XML
  std::string_view tag;
  std::string value;
};

struct FabricRows {
  std::vector<Row> rows;
  std::vector<Row> health;
};

FabricRows fabric_rows(const Gpu& gpu, std::uint64_t generation) {
  const bool done = gpu.state == FabricState::completed;
  const auto known = [&](std::string value) { return done ? std::move(value) : "N/A"; };
  FabricRows fabric;
  fabric.rows = {{"State", "state",
                  gpu.state == FabricState::not_supported ? "N/A" : std::string(words(gpu.state))},
                 {"Status", "status", known(gpu.status)}};
  if (generation < 550) return fabric;
  fabric.rows.push_back(
      {"CliqueId", "cliqueId", known(std::to_string(gpu.clique_number.value_or(0)))});
  fabric.rows.push_back({"ClusterUUID", "clusterUuid", known(gpu.cluster_uuid)});
  if (generation >= 580) fabric.health.push_back({"Summary", "summary", known("Healthy")});
  fabric.health.push_back({"Bandwidth", "bandwidth", known("Full")});
  if (generation < 570) return fabric;
  fabric.health.push_back(
      {"Route Recovery in progress", "route_recovery_in_progress", known("False")});
  fabric.health.push_back({"Route Unhealthy", "route_unhealthy", known("False")});
  fabric.health.push_back({"Access Timeout Recovery", "access_timeout_recovery", known("False")});
  if (generation >= 590)
    fabric.health.push_back({"Incorrect Configuration", "incorrect_configuration", known("None")});
  return fabric;
}

std::string line(unsigned indent, std::string_view key, std::string_view value) {
  return fmt::format("{:{}}{:<{}}: {}\n", "", indent, key, 42 - indent, value);
}

}  // namespace

std::string smi_report(const NodeFacts& facts, std::span<const Gpu> gpus, const std::string& now) {
  std::string text = "\n==============NVSMI LOG==============\n\n" + line(0, "Timestamp", now) +
                     line(0, "Driver Version", facts.driver_version) +
                     line(0, "CUDA Version", "13.0") + "\n" +
                     line(0, "Attached GPUs", std::to_string(facts.gpus.size()));
  for (const Gpu& gpu : gpus) {
    text += fmt::format("GPU {:08X}:01:00.0\n", 8 + gpu.index) + line(4, "Product Name", gpu.name) +
            line(4, "Product Brand", "NVIDIA") + line(4, "GPU UUID", gpu.uuid) +
            line(4, "Minor Number", std::to_string(gpu.index)) + "    Fabric\n";
    const FabricRows fabric = fabric_rows(gpu, generation(facts));
    for (const Row& row : fabric.rows) text += line(8, row.text, row.value);
    if (!fabric.health.empty()) text += "        Health\n";
    for (const Row& row : fabric.health) text += line(12, row.text, row.value);
    text += line(4, "Processes", "None") + "\n";
  }
  return text;
}

std::string smi_xml(const NodeFacts& facts, std::span<const Gpu> gpus, const std::string& now) {
  std::string text = fmt::format(
      "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v{}.dtd\">\n"
      "<nvidia_smi_log>\n\t<timestamp>{}</timestamp>\n\t<driver_version>{}</driver_version>\n"
      "\t<cuda_version>13.0</cuda_version>\n\t<attached_gpus>{}</attached_gpus>\n",
      generation(facts) >= 580 ? 13 : 12, now, facts.driver_version, facts.gpus.size());
  const auto element = [](int depth, const Row& row) {
    return fmt::format("{:\t<{}}<{}>{}</{}>\n", "", depth, row.tag, row.value, row.tag);
  };
  for (const Gpu& gpu : gpus) {
    text += fmt::format("\t<gpu id=\"{:08X}:01:00.0\">\n", 8 + gpu.index) +
            element(2, {"", "product_name", gpu.name}) + element(2, {"", "uuid", gpu.uuid}) +
            "\t\t<fabric>\n";
    const FabricRows fabric = fabric_rows(gpu, generation(facts));
    for (const Row& row : fabric.rows) text += element(3, row);
    if (!fabric.health.empty()) text += "\t\t\t<health>\n";
    for (const Row& row : fabric.health) text += element(4, row);
    if (!fabric.health.empty()) text += "\t\t\t</health>\n";
    text += "\t\t</fabric>\n\t</gpu>\n";
  }
  return text + "</nvidia_smi_log>\n";
}

}  // namespace nvdra::sandbox
