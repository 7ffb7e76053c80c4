#include "base/metrics.hpp"

#include "base/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

namespace nvdra {
namespace {

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (value == std::floor(value) && std::abs(value) < 1e15) return fmt::format("{:.0f}", value);
  return fmt::format("{}", value);
}

std::string escaped(std::string_view text, bool quotes) {
  std::string out;
  for (char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
  return out;
}

std::string labels_text(const Labels& labels, std::string_view extra = {}) {
  if (labels.empty() && extra.empty()) return {};
  std::string text = "{";
  for (const auto& [key, value] : labels)
    text += fmt::format("{}{}=\"{}\"", text.size() > 1 ? "," : "", key, escaped(value, true));
  if (!extra.empty()) text += fmt::format("{}{}", text.size() > 1 ? "," : "", extra);
  return text + "}";
}

void head(std::string& out, std::string_view name, std::string_view help, std::string_view type) {
  out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, escaped(help, false), name, type);
}

void plain(std::string& out, std::string_view name, std::string_view help, std::string_view type,
           double value) {
  head(out, name, help, type);
  out += fmt::format("{} {}\n", name, number(value));
}

// The numbers of /proc/self/stat after the command's name.
std::vector<double> own_stat() {
  std::vector<double> fields;
  Result<std::string> text = read_file("/proc/self/stat");
  if (!text) return fields;
  std::istringstream rest(text->substr(std::min(text->rfind(')') + 2, text->size())));
  for (std::string word; rest >> word;) fields.push_back(std::strtod(word.c_str(), nullptr));
  return fields;
}

double boot_time() {
  Result<std::string> text = read_file("/proc/stat");
  std::size_t at = text ? text->find("btime ") : std::string::npos;
  return at == std::string::npos ? 0 : std::strtod(text->c_str() + at + 6, nullptr);
}

void process_metrics(std::string& out) {
  std::vector<double> stat = own_stat();
  if (stat.size() < 22) return;
  auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  plain(out, "process_cpu_seconds_total", "Total user and system CPU time spent in seconds.",
        "counter", (stat[11] + stat[12]) / ticks);
  if (Result<std::vector<Entry>> open = list_directory(AT_FDCWD, "/proc/self/fd"); open)
    plain(out, "process_open_fds", "Number of open file descriptors.", "gauge",
          static_cast<double>(open->size()));
  plain(out, "process_resident_memory_bytes", "Resident memory size in bytes.", "gauge",
        stat[21] * page);
  plain(out, "process_start_time_seconds", "Start time of the process since unix epoch in seconds.",
        "gauge", boot_time() + stat[19] / ticks);
  plain(out, "process_threads", "Number of threads.", "gauge", stat[17]);
  plain(out, "process_virtual_memory_bytes", "Virtual memory size in bytes.", "gauge", stat[20]);
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

void Histogram::observe(double value) {
  auto at = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
  counts_[static_cast<std::size_t>(at)] += 1;
  sum_ += value;
}

Metrics::Series& Metrics::series(std::string_view name, std::string_view help,
                                 std::string_view type, Labels labels) {
  auto [at, fresh] = families_.try_emplace(std::string(name));
  Family& family = at->second;
  if (fresh) {
    family.help = help;
    family.type = type;
  }
  if (family.type != type || family.help != help) std::abort();
  for (Series& each : family.series)
    if (each.labels == labels) return each;
  family.series.emplace_back().labels = std::move(labels);
  return family.series.back();
}

Counter& Metrics::counter(std::string_view name, std::string_view help, Labels labels) {
  return series(name, help, "counter", std::move(labels)).counter;
}

Gauge& Metrics::gauge(std::string_view name, std::string_view help, Labels labels) {
  return series(name, help, "gauge", std::move(labels)).gauge;
}

Histogram& Metrics::histogram(std::string_view name, std::string_view help,
                              std::vector<double> bounds, Labels labels) {
  Series& found = series(name, help, "histogram", std::move(labels));
  if (!found.histogram) found.histogram = std::make_unique<Histogram>(std::move(bounds));
  return *found.histogram;
}

void Metrics::gauge(std::string_view name, std::string_view help, Labels labels,
                    std::function<double()> value) {
  series(name, help, "gauge", std::move(labels)).value = std::move(value);
}

void Metrics::counter(std::string_view name, std::string_view help, Labels labels,
                      std::function<double()> value) {
  series(name, help, "counter", std::move(labels)).value = std::move(value);
}

std::string Metrics::text() const {
  std::string out;
  for (const auto& [name, family] : families_) {
    head(out, name, family.help, family.type);
    for (const Series& each : family.series) {
      if (each.histogram) {
        double total = 0;
        for (std::size_t i = 0; i < each.histogram->counts_.size(); ++i) {
          total += each.histogram->counts_[i];
          bool last = i == each.histogram->bounds_.size();
          std::string bound = last ? "+Inf" : number(each.histogram->bounds_[i]);
          out +=
              fmt::format("{}_bucket{} {}\n", name,
                          labels_text(each.labels, fmt::format("le=\"{}\"", bound)), number(total));
        }
        out += fmt::format("{}_sum{} {}\n", name, labels_text(each.labels),
                           number(each.histogram->sum_));
        out += fmt::format("{}_count{} {}\n", name, labels_text(each.labels), number(total));
        continue;
      }
      double value = each.value                 ? each.value()
                     : family.type == "counter" ? each.counter.value()
                                                : each.gauge.value();
      out += fmt::format("{}{} {}\n", name, labels_text(each.labels), number(value));
    }
  }
  process_metrics(out);
  return out;
}

}  // namespace nvdra
