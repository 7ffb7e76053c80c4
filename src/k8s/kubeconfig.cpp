#include "k8s/kubeconfig.hpp"

#include "base/try.hpp"
#include "k8s/status.hpp"
#include "k8s/text_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <array>
#include <charconv>
#include <optional>
#include <vector>

namespace nvdra::k8s {
namespace {

Failure bad(std::string_view sentence) {
  return fail(Errc::bad_config, sentence);
}

// One named entry of `clusters`, `users` or `contexts`, with words for errors.
class Entry {
public:
  Entry(std::string what, YAML::Node fields) : what_(std::move(what)), fields_(fields) {}

  Failure bad(std::string_view field, std::string_view why) const {
    return k8s::bad(fmt::format("{}: {} {}", what_, field, why));
  }
  bool has(const char* field) const {
    YAML::Node value = fields_[field];
    return value.IsDefined() && !value.IsNull() && !(value.IsScalar() && value.Scalar().empty());
  }
  // "" if it is not there.
  Result<std::string> text(const char* field) const {
    if (!has(field)) return std::string();
    YAML::Node value = fields_[field];
    if (!value.IsScalar()) return bad(field, "is not a string");
    return value.Scalar();
  }
  Result<bool> flag(const char* field) const {
    TRY(std::string value, text(field));
    if (value.empty() || value == "false") return false;
    if (value == "true") return true;
    return bad(field, fmt::format("is \"{}\", expected true or false", value));
  }
  // The content of "<field>-data" (base64), or else of the file named by "<field>".
  Result<std::string> content(const std::string& field, const std::string& folder) const {
    std::string data_field = field + "-data";
    TRY(std::string data, text(data_field.c_str()));
    if (!data.empty()) {
      std::optional<std::string> decoded = base64_decoded(data);
      if (!decoded) return bad(data_field, "is not base64");
      return *std::move(decoded);
    }
    TRY(std::string path, text(field.c_str()));
    if (path.empty()) return std::string();
    path = from_folder(path, folder);
    Result<std::string> read = read_text_file(path);
    if (!read) return bad(field, fmt::format("{}: {}", path, read.error().text()));
    return read;
  }
  static std::string from_folder(const std::string& path, const std::string& folder) {
    return path.starts_with('/') ? path : folder + "/" + path;
  }

private:
  std::string what_;
  YAML::Node fields_;
};

Result<Entry> entry(const YAML::Node& root, const char* list, const char* kind,
                    const std::string& name) {
  std::vector<std::string> names;
  YAML::Node entries = root[list];
  if (entries.IsDefined() && !entries.IsNull() && !entries.IsSequence())
    return bad(fmt::format("{} is not a list", list));
  for (const YAML::Node& candidate : entries) {
    if (!candidate.IsMap() || !candidate["name"].IsDefined() || !candidate["name"].IsScalar())
      return bad(fmt::format("{} has an entry without a name", list));
    std::string found = candidate["name"].Scalar();
    names.push_back(found);
    if (found != name) continue;
    YAML::Node fields = candidate[kind];
    if (fields.IsDefined() && !fields.IsNull() && !fields.IsMap())
      return bad(fmt::format("{} {}: its {} is not a mapping", kind, name, kind));
    return Entry(fmt::format("{} {}", kind, name),
                 fields.IsDefined() && fields.IsMap() ? fields : YAML::Node(YAML::NodeType::Map));
  }
  return bad(fmt::format("there is no {} \"{}\" (there {}: {})", kind, name,
                         names.empty() ? "is" : "are",
                         names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

Result<void> read_cluster(const Entry& cluster, const std::string& folder, Config& config) {
  if (cluster.has("proxy-url"))
    return cluster.bad("proxy-url", "is not supported: the API server must be reachable directly");
  TRY(std::string server, cluster.text("server"));
  if (server.empty()) return cluster.bad("server", "is missing");
  Result<void> parsed = parse_server(server, config);
  if (!parsed) return cluster.bad("server", parsed.error().doing);
  TRY(config.server_name, cluster.text("tls-server-name"));
  TRY(bool skip, cluster.flag("insecure-skip-tls-verify"));
  config.verify = !skip;
  TRY(config.ca_pem, cluster.content("certificate-authority", folder));
  if (skip && !config.ca_pem.empty())
    return cluster.bad("insecure-skip-tls-verify",
                       "is true although there is a certificate-authority: remove one of them");
  if (config.tls && config.verify && config.ca_pem.empty())
    return cluster.bad("certificate-authority", "is missing, and it is needed for https");
  return ok();
}

Result<void> read_user(const Entry& user, const std::string& folder, Config& config) {
  constexpr std::array unsupported{"exec", "auth-provider", "username",  "password",
                                   "as",   "as-uid",        "as-groups", "as-user-extra"};
  for (const char* field : unsupported) {
    if (user.has(field))
      return user.bad(field, "is not supported: use a client certificate, a token or a tokenFile");
  }
  TRY(config.client_certificate_pem, user.content("client-certificate", folder));
  TRY(config.client_key_pem, user.content("client-key", folder));
  if (config.client_key_pem.empty() != config.client_certificate_pem.empty())
    return user.bad(config.client_key_pem.empty() ? "client-key" : "client-certificate",
                    "is missing: a certificate and its key belong together");
  TRY(config.token, user.text("token"));
  TRY(std::string token_file, user.text("tokenFile"));
  if (token_file.empty()) return ok();
  config.token_file = Entry::from_folder(token_file, folder);
  Result<std::string> readable = read_text_file(config.token_file);
  if (!readable)
    return user.bad("tokenFile", fmt::format("{}: {}", config.token_file, readable.error().text()));
  return ok();
}

Result<Config> read_root(const YAML::Node& root, const std::string& folder, std::string name) {
  if (root.IsNull() || !root.IsDefined()) return bad("the file is empty");
  if (!root.IsMap() || !(root["clusters"].IsDefined() || root["contexts"].IsDefined()))
    return bad("this is no kubeconfig: it has no clusters and contexts");
  Entry top("kubeconfig", root);
  if (name.empty()) {
    TRY(name, top.text("current-context"));
    if (name.empty()) return bad("current-context is not set");
  }
  TRY(Entry context, entry(root, "contexts", "context", name));
  TRY(std::string cluster_name, context.text("cluster"));
  TRY(std::string user_name, context.text("user"));
  if (cluster_name.empty()) return context.bad("cluster", "is missing");
  TRY(Entry cluster, entry(root, "clusters", "cluster", cluster_name));

  Config config;
  TRY_VOID(read_cluster(cluster, folder, config));
  if (!user_name.empty()) {
    TRY(Entry user, entry(root, "users", "user", user_name));
    TRY_VOID(read_user(user, folder, config));
  }
  TRY(std::string space, context.text("namespace"));
  if (!space.empty()) config.space = space;
  return config;
}

}  // namespace

Result<Config> parse_kubeconfig(const std::string& text, const std::string& folder,
                                const std::string& context) try {
  return read_root(YAML::Load(text), folder, context);
} catch (const YAML::ParserException& e) {
  return bad(fmt::format("line {} is not YAML: {}", e.mark.line + 1, e.msg));
} catch (const YAML::Exception& e) {
  return bad(fmt::format("the file cannot be understood: {}", e.msg));
}

Result<void> parse_server(std::string_view url, Config& config) {
  auto wrong = [&](std::string_view why) {
    return bad(fmt::format("\"{}\" {}, expected https://HOST:PORT", url, why));
  };
  std::string_view rest = url;
  config.tls = url.starts_with("https://");
  if (!config.tls && !url.starts_with("http://")) return wrong("does not begin with https://");
  rest.remove_prefix(config.tls ? 8 : 7);
  if (rest.find_first_of("@?# \t\r\n") != std::string_view::npos)
    return wrong("holds more than host, port and path");

  std::size_t path = std::min(rest.find('/'), rest.size());
  config.path_prefix = rest.substr(path);
  while (config.path_prefix.ends_with('/')) config.path_prefix.pop_back();
  rest = rest.substr(0, path);

  std::size_t colon = rest.rfind(':');
  if (rest.starts_with('[')) {
    std::size_t bracket = rest.find(']');
    if (bracket == std::string_view::npos) return wrong("has no ] after its address");
    config.host = rest.substr(1, bracket - 1);
    if (config.host.find('%') != std::string::npos) return wrong("has an address with a zone");
    rest.remove_prefix(bracket + 1);
    if (!rest.empty() && rest.front() != ':') return wrong("has something after its address");
    colon = rest.empty() ? std::string_view::npos : 0;
  } else {
    config.host = rest.substr(0, colon);
    if (config.host.find(':') != std::string::npos)
      return wrong("has an IPv6 address without [ and ]");
  }
  if (config.host.empty()) return wrong("has no host");
  config.port = colon == std::string_view::npos ? (config.tls ? "443" : "80")
                                                : std::string(rest.substr(colon + 1));
  std::uint16_t number = 0;
  const char* end = config.port.data() + config.port.size();
  auto [stop, failed] = std::from_chars(config.port.data(), end, number);
  if (failed != std::errc() || stop != end || number == 0) return wrong("has no usable port");
  return ok();
}

std::optional<std::string> base64_decoded(std::string_view text) {
  constexpr std::string_view alphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string decoded;
  std::uint32_t bits = 0;
  int count = 0;  // of bits not yet written
  std::size_t digits = 0, padding = 0;
  for (char c : text) {
    if (c == '\n' || c == '\r' || c == ' ' || c == '\t') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    std::size_t value = alphabet.find(c);
    if (value == std::string_view::npos || padding > 0) return std::nullopt;
    bits = (bits << 6 | static_cast<std::uint32_t>(value)) & 0xffffff;
    ++digits;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    decoded += static_cast<char>(bits >> count & 0xff);
  }
  if (digits % 4 == 1 || padding > 2 || (padding > 0 && (digits + padding) % 4 != 0))
    return std::nullopt;
  return decoded;
}

}  // namespace nvdra::k8s
