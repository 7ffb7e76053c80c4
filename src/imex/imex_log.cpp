#include "imex/imex_log.hpp"

#include "imex/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace nvdra::imex {
namespace {

bool holds(std::string_view line, std::string_view fragment) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  return !std::ranges::search(line, fragment, same).empty();
}

std::optional<std::int64_t> identified(std::string_view line) {
  constexpr std::string_view begin = "Identified this node as ID ";
  const auto at = line.find(begin);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(at + begin.size());
  return parse_number<std::int64_t>(rest.substr(0, rest.find_first_not_of("0123456789")));
}

std::string port_taken(std::string_view line) {
  const std::string_view port = holds(line, "50005")   ? "50005"
                                : holds(line, "50000") ? "50000"
                                                       : "";
  return fmt::format(
      "nvidia-imex cannot listen{}: another process in this pod's network has the port (its log: "
      "\"{}\"); the daemon needs 50000 and 50005 for itself, so remove the other one or the "
      "setting "
      "that puts the pod into the host's network",
      port.empty() ? "" : fmt::format(" on port {}", port), excerpt(line));
}

}  // namespace

LineMeaning read_log_line(std::string_view line) {
  LineMeaning meaning;
  meaning.identified = identified(line);
  if (holds(line, "NV_ERR_IN_USE") || holds(line, "Failed to allocate Imex session")) {
    meaning.trouble = fmt::format(
        "another nvidia-imex already has this node's GPUs (its log: \"{}\"); stop and mask "
        "nvidia-imex.service on the node, or install with imex.mode=hostManaged",
        excerpt(line));
  } else if (holds(line, "is not matching with current GPU driver version")) {
    meaning.trouble = fmt::format(
        "nvidia-imex and the loaded GPU driver are of different versions (its log: \"{}\"); "
        "install "
        "the nvidia-imex of the driver's version on the node, or reload the driver",
        excerpt(line));
  } else if (holds(line, "No matching network interface found")) {
    meaning.trouble =
        "nvidia-imex finds no address of this pod in its nodes file; /etc/hosts of the pod does "
        "not "
        "lead this node's slot to the pod's address";
  } else if (holds(line, "address already in use") || holds(line, "address in use")) {
    meaning.trouble = port_taken(line);
  } else if (holds(line, "mapping mismatch")) {
    meaning.notice =
        "a peer has another nodes file, and nvidia-imex refuses it: it belongs to another domain, "
        "or "
        "its daemon is of a release that names the slots differently";
  }
  return meaning;
}

}  // namespace nvdra::imex
