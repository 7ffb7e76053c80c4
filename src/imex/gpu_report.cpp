// `nvidia-smi -q`: sections by indentation, rows `Key : value`. The value's column and the depth of
// the indentation differ between versions, so only their order counts.
#include "base/try.hpp"
#include "imex/gpu_cells.hpp"
#include "imex/text.hpp"

#include <utility>

namespace nvdra::imex {
namespace {

struct Row {
  std::size_t indent;
  std::string_view text, key, value;
};

Row split(std::string_view line) {
  const std::string_view text = trim(line);
  const auto colon = text.find(':');
  const bool has_value = colon != std::string_view::npos;
  return {.indent = line.find_first_not_of(" \t"),
          .text = text,
          .key = trim(text.substr(0, colon)),
          .value = has_value ? trim(text.substr(colon + 1)) : std::string_view{}};
}

// "GPU 00000009:01:00.0"
bool begins_gpu(const Row& row) {
  constexpr std::string_view word = "GPU ";
  return row.key.starts_with(word) && row.value.find('.') != std::string_view::npos &&
         row.key.find_first_not_of("0123456789ABCDEFabcdef", word.size()) == std::string_view::npos;
}

class Reader {
public:
  Result<void> take(std::string_view line) {
    const Row row = split(line);
    if (row.text.empty()) return ok();
    if (section_ && row.indent <= *section_) {
      TRY_VOID(end_section());
    }
    if (section_)
      in_fabric(row);
    else
      outside(row);
    return ok();
  }

  Result<void> end_section() {
    if (!section_) return ok();
    section_.reset();
    rows_.reset();
    return put_fabric(gpus_.back(), std::exchange(fabric_, {}));
  }

  bool understood() const { return understood_; }
  std::vector<Gpu> gpus() && { return std::move(gpus_); }

private:
  void in_fabric(const Row& row) {
    if (!rows_) rows_ = row.indent;
    if (row.indent != *rows_) return;  // a section within, such as Health
    if (row.key == "State") fabric_.state = {row.value, row.text};
    if (row.key == "Status") fabric_.status = {row.value, row.text};
    if (row.key == "CliqueId") fabric_.clique = {row.value, row.text};
    if (row.key == "ClusterUUID") fabric_.cluster = {row.value, row.text};
  }

  void outside(const Row& row) {
    if (row.text == "Fabric") {
      if (!awaits_fabric_) new_gpu();  // an excerpt without the GPU's first line
      awaits_fabric_ = false;
      section_ = row.indent;
    } else if (begins_gpu(row)) {
      new_gpu();
      awaits_fabric_ = true;
    } else if (row.key == "Attached GPUs" || says_no_devices(row.text)) {
      understood_ = true;
    } else if (row.key == "Driver Version") {
      driver_version_ = value_of(row.value);
    } else if (!gpus_.empty() && row.key == "Product Name" && gpus_.back().name.empty()) {
      gpus_.back().name = row.value;
    } else if (!gpus_.empty() && row.key == "GPU UUID" && gpus_.back().uuid.empty()) {
      gpus_.back().uuid = row.value;
    }
  }

  void new_gpu() {
    Gpu gpu;
    gpu.index = static_cast<unsigned>(gpus_.size());
    gpu.driver_version = driver_version_;
    gpus_.push_back(std::move(gpu));
    understood_ = true;
  }

  std::vector<Gpu> gpus_;
  std::string driver_version_;
  FabricCells fabric_;
  std::optional<std::size_t> section_;  // indentation of the word Fabric, while inside
  std::optional<std::size_t> rows_;     // indentation of its rows
  bool awaits_fabric_ = false;
  bool understood_ = false;
};

}  // namespace

Result<std::vector<Gpu>> parse_gpu_report(std::string_view text) {
  const std::string_view whole = trim(text);
  Reader reader;
  while (const auto line = next_line(text)) {
    TRY_VOID(reader.take(*line));
  }
  TRY_VOID(reader.end_section());
  if (!reader.understood() && !whole.empty()) {
    std::string_view rest = whole;
    return not_understood(*next_line(rest), "it is not the beginning of a report on GPUs");
  }
  return std::move(reader).gpus();
}

}  // namespace nvdra::imex
