// What the plugin says of settings that do not fit.
#include "catch.hpp"
#include "fake/temp_dir.hpp"
#include "roles/kubelet_plugin/plugin.hpp"

using namespace nvdra;
using namespace nvdra::roles::kubelet_plugin;

namespace {

std::string refusal(std::vector<std::string> arguments) {
  arguments.push_back("--node-name=node-a");
  Result<Args> args = parse_args(flags(), arguments, {});
  REQUIRE(args);
  Result<Config> config = read_config(*args, {});
  REQUIRE_FALSE(config);
  return config.error().text();
}

}  // namespace

TEST_CASE("the kubelet's directories are named with their flag and their chart value",
          "[plugin][config]") {
  CHECK_THAT(refusal({"--kubelet-registrar-directory-path=x"}),
             Catch::Contains("--kubelet-registrar-directory-path") &&
                 Catch::Contains("KUBELET_REGISTRAR_DIRECTORY_PATH") &&
                 Catch::Contains("kubeletPlugin.kubeletRegistrarDirectoryPath") &&
                 Catch::Contains("absolute"));
  CHECK_THAT(refusal({"--kubelet-plugins-directory-path=x"}),
             Catch::Contains("kubeletPlugin.kubeletPluginsDirectoryPath"));
}

TEST_CASE("a plugin directory that cannot be made is told with its flag", "[plugin][config]") {
  fake::TempDir files;
  files.write("plain", "x");
  Config config;
  config.plugins_directory = files.path() + "/plain";
  Result<Fd> opened = open_plugin_directory(config);
  REQUIRE_FALSE(opened);
  CHECK_THAT(opened.error().text(),
             Catch::Contains("--kubelet-plugins-directory-path") &&
                 Catch::Contains("kubeletPlugin.kubeletPluginsDirectoryPath") &&
                 Catch::Contains(files.path() + "/plain"));
  config.plugins_directory = files.path() + "/new";
  CHECK(open_plugin_directory(config));
}
