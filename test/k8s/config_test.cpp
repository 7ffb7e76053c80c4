#include "k8s/config.hpp"

#include "catch.hpp"
#include "fake/temp_dir.hpp"
#include "k8s/kubeconfig.hpp"
#include "k8s/status.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>

using namespace nvdra;
using namespace nvdra::k8s;

namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// A kubeconfig with one context, whose cluster and user hold the given fields.
std::string kubeconfig(std::string_view cluster, std::string_view user) {
  return fmt::format(R"(apiVersion: v1
kind: Config
current-context: main
contexts:
- name: main
  context: {{cluster: c, user: u, namespace: team}}
- name: other
  context: {{cluster: c2}}
clusters:
- name: c
  cluster:
    {}
- name: c2
  cluster: {{server: "http://127.0.0.1:8080"}}
users:
- name: u
  user:
    {}
)",
                     cluster, user);
}

const char* const plain = "server: http://10.0.0.1:8080";

// Sets an environment variable for as long as it lives; nullopt removes it.
class Variable {
public:
  Variable(const char* name, std::optional<std::string> value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  ~Variable() { set(old_); }

private:
  void set(const std::optional<std::string>& value) {
    if (value) {
      ::setenv(name_, value->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace

TEST_CASE("the fields of the current context become the configuration", "[k8s][config]") {
  fake::TempDir dir;
  dir.write("pki/ca.crt", "CA");
  dir.write("key.pem", "KEY");
  dir.write("config", kubeconfig(R"(server: https://api.example:6443/k8s/a/
    certificate-authority: pki/ca.crt
    tls-server-name: kubernetes)",
                                 R"(client-certificate-data: Q0VSVA==
    client-key: key.pem
    token: abc)"));
  Result<Config> config = read_kubeconfig(dir.path("config"));
  if (!config) FAIL(config.error().text());
  CHECK(config->host == "api.example");
  CHECK(config->port == "6443");
  CHECK(config->tls);
  CHECK(config->verify);
  CHECK(config->path_prefix == "/k8s/a");
  CHECK(config->server_name == "kubernetes");
  CHECK(config->ca_pem == "CA");
  CHECK(config->client_certificate_pem == "CERT");
  CHECK(config->client_key_pem == "KEY");
  CHECK(config->token == "abc");
  CHECK(config->space == "team");
}

TEST_CASE("another context can be asked for; it needs no user and no namespace", "[k8s][config]") {
  fake::TempDir dir;
  dir.write("config", kubeconfig(plain, "token: abc"));
  Result<Config> config = read_kubeconfig(dir.path("config"), "other");
  REQUIRE(config);
  CHECK(config->host == "127.0.0.1");
  CHECK_FALSE(config->tls);
  CHECK(config->token.empty());
  CHECK(config->space == "default");

  Result<Config> missing = read_kubeconfig(dir.path("config"), "third");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == Errc::bad_config);
  CHECK(missing.error().text() == fmt::format("kubeconfig {}: there is no context \"third\" (there "
                                              "are: main, other): unusable configuration",
                                              dir.path("config")));
}

TEST_CASE("a token file is found from the kubeconfig's folder and must be readable",
          "[k8s][config]") {
  fake::TempDir dir;
  dir.write("config", kubeconfig(plain, "tokenFile: token"));
  Result<Config> missing = read_kubeconfig(dir.path("config"));
  REQUIRE_FALSE(missing);
  CHECK(has(missing.error().text(), "user u: tokenFile " + dir.path("token") + ": No such file"));
  dir.write("token", "abc");
  Result<Config> config = read_kubeconfig(dir.path("config"));
  REQUIRE(config);
  CHECK(config->token_file == dir.path("token"));
}

TEST_CASE("verification can be switched off, but not next to an authority", "[k8s][config]") {
  const char* off = "server: https://10.0.0.1\n    insecure-skip-tls-verify: true";
  Result<Config> config = parse_kubeconfig(kubeconfig(off, "token: a"), ".", "");
  REQUIRE(config);
  CHECK_FALSE(config->verify);
  CHECK(config->port == "443");
  Result<Config> both = parse_kubeconfig(
      kubeconfig(std::string(off) + "\n    certificate-authority-data: Q0E=", "token: a"), ".", "");
  REQUIRE_FALSE(both);
  CHECK(has(both.error().text(), "cluster c: insecure-skip-tls-verify"));
}

TEST_CASE("what is not supported or wrong is named with its place", "[k8s][config]") {
  struct Row {
    const char* cluster;
    const char* user;
    const char* expected;
  };
  const Row row = GENERATE(values<Row>({
      {plain, "exec: {command: aws}", "user u: exec is not supported"},
      {plain, "auth-provider: {name: gcp}", "user u: auth-provider is not supported"},
      {plain, "username: a", "user u: username is not supported"},
      {plain, "password: a", "user u: password is not supported"},
      {plain, "as: root", "user u: as is not supported"},
      {plain, "as-groups: [a]", "user u: as-groups is not supported"},
      {plain, "client-certificate-data: Q0U=", "user u: client-key is missing"},
      {plain, "client-key-data: Q0U=", "user u: client-certificate is missing"},
      {plain, "client-key-data: '%%%'", "user u: client-key-data is not base64"},
      {plain, "token: [a]", "user u: token is not a string"},
      {"proxy-url: http://p\n    server: http://a", "token: a", "cluster c: proxy-url is not"},
      {"tls-server-name: a", "token: a", "cluster c: server is missing"},
      {"server: https://a", "token: a", "cluster c: certificate-authority is missing"},
      {"server: https://a\n    certificate-authority: none.crt", "token: a",
       "cluster c: certificate-authority /nowhere/none.crt: No such file"},
      {"server: https://a\n    insecure-skip-tls-verify: maybe", "token: a",
       "cluster c: insecure-skip-tls-verify is \"maybe\""},
      {"server: 10.0.0.1:6443", "token: a", "cluster c: server \"10.0.0.1:6443\" does not begin"},
  }));
  INFO(row.cluster << " / " << row.user);
  Result<Config> config = parse_kubeconfig(kubeconfig(row.cluster, row.user), "/nowhere", "");
  REQUIRE_FALSE(config);
  CHECK(config.error().code == Errc::bad_config);
  INFO(config.error().text());
  CHECK(has(config.error().text(), row.expected));
}

TEST_CASE("a file that is no kubeconfig gets one clear sentence", "[k8s][config]") {
  struct Row {
    const char* text;
    const char* expected;
  };
  const Row row = GENERATE(values<Row>({
      {"", "the file is empty"},
      {"---\n", "the file is empty"},
      {"hello", "this is no kubeconfig"},
      {"[1, 2]", "this is no kubeconfig"},
      {"a: b", "this is no kubeconfig"},
      {"clusters:\n  - {", "is not YAML"},
      {"a: b: c", "line 1 is not YAML"},
      {"\t\x01\x02", "this is no kubeconfig"},
      {"\x7f"
       "ELF\x02\x01",
       "this is no kubeconfig"},
      {"clusters: []", "current-context is not set"},
      {"current-context: x\nclusters: []\n", "there is no context \"x\" (there is: none)"},
      {"current-context: x\ncontexts: 7\n", "contexts is not a list"},
      {"current-context: x\ncontexts: [7]\n", "contexts has an entry without a name"},
      {"current-context: x\ncontexts: [{name: x}]\n", "context x: cluster is missing"},
      {"current-context: x\ncontexts: [{name: x, context: 7}]\n", "is not a mapping"},
      {"current-context: [x]\ncontexts: []\n", "current-context is not a string"},
      {"current-context: x\ncontexts: [{name: x, context: {cluster: y}}]\n",
       "there is no cluster \"y\""},
  }));
  INFO(row.text);
  Result<Config> config = parse_kubeconfig(row.text, ".", "");
  REQUIRE_FALSE(config);
  CHECK(config.error().code == Errc::bad_config);
  INFO(config.error().text());
  CHECK(has(config.error().text(), row.expected));
}

TEST_CASE("a kubeconfig that cannot be read is named with the reason", "[k8s][config]") {
  fake::TempDir dir;
  Result<Config> missing = read_kubeconfig(dir.path("none"));
  REQUIRE_FALSE(missing);
  CHECK(missing.error().text() ==
        fmt::format("kubeconfig {}: No such file or directory: unusable configuration",
                    dir.path("none")));
  Result<Config> folder = read_kubeconfig(dir.path());
  REQUIRE_FALSE(folder);
  CHECK(has(folder.error().text(), "Is a directory"));
}

TEST_CASE("server URLs: names, both kinds of addresses, ports, paths", "[k8s][config]") {
  struct Row {
    const char* url;
    const char* host;
    const char* port;
    const char* path;
  };
  const Row row = GENERATE(values<Row>({
      {"https://a", "a", "443", ""},
      {"http://a", "a", "80", ""},
      {"https://a/", "a", "443", ""},
      {"https://10.0.0.1:6443", "10.0.0.1", "6443", ""},
      {"https://[2001:db8::1]:6443/p/q/", "2001:db8::1", "6443", "/p/q"},
      {"https://[::1]", "::1", "443", ""},
  }));
  INFO(row.url);
  Config config;
  REQUIRE(parse_server(row.url, config));
  CHECK(config.host == row.host);
  CHECK(config.port == row.port);
  CHECK(config.path_prefix == row.path);
}

TEST_CASE("server URLs that are none are refused", "[k8s][config]") {
  std::string url = GENERATE(
      "", "a:6443", "ftp://a", "https://", "https://:6443", "https://a:", "https://a:0",
      "https://a:70000", "https://a:6443x", "https://::1", "https://[::1", "https://[::1]6443",
      "https://[fe80::1%eth0]:6443", "https://user@a", "https://a?x", "https://a b");
  INFO(url);
  Config config;
  Result<void> parsed = parse_server(url, config);
  REQUIRE_FALSE(parsed);
  CHECK(has(parsed.error().text(), "expected https://HOST:PORT"));
}

TEST_CASE("base64 with and without padding and line ends", "[k8s][config]") {
  CHECK(base64_decoded("") == "");
  CHECK(base64_decoded("QQ==") == "A");
  CHECK(base64_decoded("QQ") == "A");
  CHECK(base64_decoded("QUI=") == "AB");
  CHECK(base64_decoded("QUJD\nREVG\n") == "ABCDEF");
  CHECK(base64_decoded("+/+/") == "\xfb\xff\xbf");
  CHECK_FALSE(base64_decoded("Q"));
  CHECK_FALSE(base64_decoded("QUI=QUI="));
  CHECK_FALSE(base64_decoded("QQ="));
  CHECK_FALSE(base64_decoded("Q-_A"));
}

TEST_CASE("a pod finds the API server by its environment and service account", "[k8s][config]") {
  fake::TempDir dir;
  dir.write("token", "abc\n");
  dir.write("ca.crt", "CA");
  dir.write("namespace", "driver");
  std::string host = GENERATE("10.96.0.1", "fd00::1", "[fd00::1]");
  Variable h("KUBERNETES_SERVICE_HOST", host);
  Variable p("KUBERNETES_SERVICE_PORT", "443");
  Result<Config> config = in_cluster_config(dir.path());
  REQUIRE(config);
  CHECK(config->host == (host == "10.96.0.1" ? host : "fd00::1"));
  CHECK(config->port == "443");
  CHECK(config->ca_pem == "CA");
  CHECK(config->token_file == dir.path("token"));
  CHECK(config->space == "driver");
}

TEST_CASE("outside a pod the error says what is missing and what to do", "[k8s][config]") {
  fake::TempDir dir;
  Variable p("KUBERNETES_SERVICE_PORT", "443");
  SECTION("the environment") {
    Variable h("KUBERNETES_SERVICE_HOST", std::nullopt);
    Result<Config> config = in_cluster_config(dir.path());
    REQUIRE_FALSE(config);
    CHECK(has(config.error().text(), "KUBERNETES_SERVICE_HOST is not set"));
    CHECK(has(config.error().text(), "--kubeconfig"));
    Result<Config> loaded = load_config("");
    REQUIRE_FALSE(loaded);
    CHECK(loaded.error().code == Errc::bad_config);
  }
  SECTION("the token, then the authority") {
    Variable h("KUBERNETES_SERVICE_HOST", "10.96.0.1");
    Result<Config> no_token = in_cluster_config(dir.path());
    REQUIRE_FALSE(no_token);
    CHECK(has(no_token.error().text(), dir.path("token")));
    dir.write("token", "abc");
    Result<Config> no_ca = in_cluster_config(dir.path());
    REQUIRE_FALSE(no_ca);
    CHECK(has(no_ca.error().text(), dir.path("ca.crt")));
  }
}
