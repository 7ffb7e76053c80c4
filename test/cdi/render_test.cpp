#include "cdi/render.hpp"

#include "catch.hpp"
#include "cdi/data.hpp"
#include "cdi/read.hpp"
#include "cdi/shared_nodes.hpp"

#include <algorithm>
#include <set>

namespace nvdra::cdi {

TEST_CASE("claim and base files are byte for byte what a mixed cluster expects", "[cdi][render]") {
  struct Row {
    const char* file;
    Spec spec;
  };
  const Row row = GENERATE(values<Row>({
      {"channel-roots-differ.yaml",
       with_host_paths(channel_spec(claim_with_digit), "/driver-root", "/")},
      {"channel-roots-equal.yaml", with_host_paths(channel_spec(claim_with_digit), "/", "/")},
      {"channel-uid-with-letter.yaml", channel_spec(claim_with_letter, 7)},
      {"daemon.yaml", daemon_spec()},
  }));
  INFO(row.file);
  CHECK(render(row.spec) == golden(row.file));
}

TEST_CASE("mode All lists 2048 channels in byte order", "[cdi][render]") {
  Spec spec = channel_spec(claim_with_letter);
  auto& nodes = spec.devices[0].edits.device_nodes;
  nodes.clear();
  std::set<std::string> in_byte_order;
  for (std::uint32_t i = 0; i < 2048; ++i) {
    nodes.push_back(channel_node(i));
    in_byte_order.insert(std::to_string(i));
  }
  std::string expected =
      "---\ncdiVersion: 0.3.0\nkind: k8s.compute-domain.nvidia.com/claim\ndevices:\n"
      "    - name: ab4e28ba-2fa1-11d2-883f-0016d3cca427-channel-0\n"
      "      containerEdits:\n        deviceNodes:\n";
  for (const std::string& number : in_byte_order) {
    expected += "            - path: /dev/nvidia-caps-imex-channels/channel" + number +
                "\n              type: c\n              major: 235\n";
    if (number != "0") expected += "              minor: " + number + "\n";
    expected += "              fileMode: 438\n";
  }
  CHECK(render(spec) == expected);
  std::ranges::reverse(nodes);
  CHECK(render(spec) == expected);
}

TEST_CASE("shared nodes are written as the same nodes of one's own would be", "[cdi][render]") {
  const std::string host_path = GENERATE("", "/driver-root/dev/x");
  std::vector<DeviceNode> nodes{channel_node(3), channel_node(20), channel_node(3)};
  nodes[0].host_path = host_path;
  nodes[2].host_path = host_path;
  Spec own = daemon_spec();
  Spec sharing = daemon_spec();
  auto shared = std::make_shared<const SharedNodes>(nodes);
  CHECK(shared->nodes().size() == 2);
  auto add_both = [&](ContainerEdits& to_own, ContainerEdits& to_sharing) {
    to_own.device_nodes.insert(to_own.device_nodes.end(), nodes.begin(), nodes.end());
    to_sharing.shared_nodes = shared;
  };
  SECTION("beside others") {
    add_both(own.devices[0].edits, sharing.devices[0].edits);
  }
  SECTION("alone") {
    own.devices[0].edits.device_nodes.clear();
    sharing.devices[0].edits.device_nodes.clear();
    add_both(own.devices[0].edits, sharing.devices[0].edits);
  }
  SECTION("alone, with no other edits") {
    own.devices[0].edits = {};
    sharing.devices[0].edits = {};
    add_both(own.devices[0].edits, sharing.devices[0].edits);
    sharing = with_host_paths(sharing, "/driver-root", "/");  // they have the host's already
  }
  SECTION("for every device of the file") {
    add_both(own.edits, sharing.edits);
  }
  CHECK(render(sharing) == render(own));
}

TEST_CASE("all kinds of edits are written in order, without duplicates", "[cdi][render]") {
  CHECK(render(with_host_paths(base_spec(), "/driver-root", "/run/nvidia/driver")) ==
        golden("base.yaml"));
}

TEST_CASE("the version is the lowest that has what the file uses", "[cdi][render]") {
  struct Row {
    const char* why;
    const char* device;
    const char* host_path;
    std::vector<std::uint32_t> gids;
    const char* version;
  };
  const Row row = GENERATE(values<Row>({
      {"nothing special", "all", "", {}, "0.3.0"},
      {"a name with a digit first", "1all", "", {}, "0.5.0"},
      {"a node with hostPath", "all", "/dev/x", {}, "0.5.0"},
      {"additional groups", "1all", "/dev/x", {1}, "0.7.0"},
  }));
  INFO(row.why);
  Spec spec{.kind = "vendor.com/class"};
  ContainerEdits edits;
  edits.device_nodes = {{.path = "/dev/x", .host_path = row.host_path}};
  edits.additional_gids = row.gids;
  SECTION("in a device's edits") {
    spec.devices = {{.name = row.device, .edits = edits}};
    CHECK_THAT(render(spec), Catch::Contains(std::string("cdiVersion: ") + row.version + "\n"));
  }
  SECTION("in the common edits") {
    spec.devices = {{.name = row.device}};
    spec.edits = edits;
    CHECK_THAT(render(spec), Catch::Contains(std::string("cdiVersion: ") + row.version + "\n"));
  }
}

TEST_CASE("only paths below the container's driver root move to the host's", "[cdi][render]") {
  struct Row {
    const char* from;
    const char* to;
    const char* path;
    const char* moved;
  };
  const Row row = GENERATE(values<Row>({
      {"/driver-root", "/", "/driver-root/usr/bin/x", "/usr/bin/x"},
      {"/driver-root", "/", "/driver-root", "/"},
      {"/driver-root", "/", "/driver-rootless/x", "/driver-rootless/x"},
      {"/driver-root", "/", "/dev/nvidia0", "/dev/nvidia0"},
      {"/driver-root", "/run/nvidia/driver", "/driver-root/dev/x", "/run/nvidia/driver/dev/x"},
      {"/driver-root/", "/run/nvidia/driver/", "/driver-root/dev/x", "/run/nvidia/driver/dev/x"},
      {"/", "/run/nvidia/driver", "/dev/x", "/run/nvidia/driver/dev/x"},
  }));
  INFO(row.from << " → " << row.to);
  Spec spec{.kind = "vendor.com/class"};
  spec.edits.device_nodes = {{.path = row.path}};
  spec.edits.mounts = {{.host_path = row.path, .container_path = row.path}};
  spec.edits.hooks = {{.hook_name = "createContainer", .path = row.path, .args = {row.path}}};
  const Spec moved = with_host_paths(spec, row.from, row.to);
  CHECK(moved.edits.device_nodes[0].path == row.path);
  CHECK(moved.edits.device_nodes[0].host_path == row.moved);
  CHECK(moved.edits.mounts[0].host_path == row.moved);
  CHECK(moved.edits.mounts[0].container_path == row.path);
  CHECK(moved.edits.hooks[0].path == row.moved);
  CHECK(moved.edits.hooks[0].args[0] == row.path);
}

TEST_CASE("a device without edits is still a legal file", "[cdi][render]") {
  const Spec spec{.kind = "vendor.com/class", .devices = {{.name = "x"}}};
  CHECK(render(spec) ==
        "---\ncdiVersion: 0.3.0\nkind: vendor.com/class\ndevices:\n"
        "    - name: x\n      containerEdits: {}\n");
}

TEST_CASE("what was rendered reads back with the same content", "[cdi][render]") {
  for (Spec spec : {channel_spec(claim_with_digit), daemon_spec(),
                    with_host_paths(base_spec(), "/driver-root", "/")}) {
    const std::string text = render(spec);
    const auto back = parse(text);
    REQUIRE(back);
    CHECK(render(*back) == text);
  }
  const auto daemon = parse(render(daemon_spec()));
  REQUIRE(daemon);
  CHECK(*daemon == daemon_spec());
}

}  // namespace nvdra::cdi
