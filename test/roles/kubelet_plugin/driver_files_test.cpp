#include "roles/kubelet_plugin/driver_files.hpp"

#include "catch.hpp"
#include "cdi/render.hpp"
#include "fake/driver_root.hpp"
#include "roles/kubelet_plugin/base_spec.hpp"
#include "roles/kubelet_plugin/driver_devices.hpp"
#include "roles/kubelet_plugin/elf_file.hpp"
#include "roles/kubelet_plugin/elf_names.hpp"

#include <fstream>
#include <iterator>

using namespace nvdra;
using namespace nvdra::roles::kubelet_plugin;
using namespace nvdra::roles::kubelet_plugin::test;

namespace {

constexpr const char* version = "580.95.05";

struct Root : fake::TempRoot {
  Root() {
    directory("/dev");
    file("/opt/bin/nvidia-imex", elf_file("", {"libnvidia-ml.so.1", "libc.so.6"}), 0755);
    file("/usr/bin/nvidia-imex-ctl", elf_file("", {"libc.so.6"}), 0755);
    file("/usr/lib64/libnvidia-ml.so.580.95.05",
         elf_file("libnvidia-ml.so.1", {"libpthread.so.0", "ld-linux-x86-64.so.2"}));
    link("/usr/lib64/libnvidia-ml.so", "libnvidia-ml.so.1");
  }
  DriverFiles find() const { return find_driver_files({path(), "/run/nvidia/driver"}, version); }
};

}  // namespace

TEST_CASE("a library is mounted under the name that it claims, also without a link",
          "[plugin][driver_files]") {
  Root root;
  DriverFiles files = root.find();
  CHECK(files.missing.empty());
  std::string real = root.path("/usr/lib64/libnvidia-ml.so.580.95.05");
  CHECK(files.libraries ==
        std::map<std::string, std::string>{{"/usr/lib64/libnvidia-ml.so.1", real},
                                           {"/usr/lib64/libnvidia-ml.so.580.95.05", real}});
  CHECK(files.library_directories == std::vector<std::string>{"/usr/lib64"});
  CHECK(files.tools.at("/usr/bin/nvidia-imex") == root.path("/opt/bin/nvidia-imex"));
}

TEST_CASE("a library is mounted under each of its links", "[plugin][driver_files]") {
  Root root;
  root.file("/usr/lib64/libcuda.so.580.95.05");
  root.link("/usr/lib64/libcuda.so.1", "/usr/lib64/libcuda.so.580.95.05");
  DriverFiles files = root.find();
  std::string real = root.path("/usr/lib64/libcuda.so.580.95.05");
  CHECK(files.libraries.at("/usr/lib64/libcuda.so.1") == real);
  CHECK(files.libraries.at("/usr/lib64/libcuda.so.580.95.05") == real);
}

TEST_CASE("what the tools are linked against is mounted, whatever it is called",
          "[plugin][driver_files]") {
  Root root;
  root.file("/usr/bin/nvidia-imex-ctl", elf_file("", {"libfirst.so.2"}), 0755);
  root.file("/lib64/libfirst.so.2", elf_file("libfirst.so.2", {"libsecond.so"}));
  root.file("/usr/lib64/libsecond.so", elf_file("", {}));
  DriverFiles files = root.find();
  CHECK(files.missing.empty());
  CHECK(files.libraries.at("/lib64/libfirst.so.2") == root.path("/lib64/libfirst.so.2"));
  CHECK(files.libraries.at("/usr/lib64/libsecond.so") == root.path("/usr/lib64/libsecond.so"));
  CHECK(files.library_directories == std::vector<std::string>{"/usr/lib64", "/lib64"});
}

TEST_CASE("a missing library is named, with who needs it", "[plugin][driver_files]") {
  Root root;
  root.file("/usr/bin/nvidia-imex-ctl", elf_file("", {"libgone.so.1"}), 0755);
  DriverFiles files = root.find();
  REQUIRE(files.missing.size() == 1);
  CHECK_THAT(files.missing[0], Catch::Contains("nvidia-imex-ctl needs it: libgone.so.1 not found"));
}

TEST_CASE("libraries of another driver version stay away", "[plugin][driver_files]") {
  CHECK(is_driver_library("libcuda.so.580.95.05", version));
  CHECK(is_driver_library("libcuda.so.1", version));
  CHECK(is_driver_library("libnvidia-egl-gbm.so.1.1.2", version));
  CHECK_FALSE(is_driver_library("libcuda.so.570.86.15", version));
  CHECK(is_driver_library("libcuda.so.570.86.15", ""));
  CHECK_FALSE(is_driver_library("libcuda.so", version));
  CHECK_FALSE(is_driver_library("libnvidia-container.so.1", version));
  CHECK_FALSE(is_driver_library("libc.so.6", version));

  Root root;
  root.file("/usr/lib64/libcuda.so.570.86.15");
  root.link("/usr/lib64/libcuda.so.1", "libcuda.so.570.86.15");
  CHECK_FALSE(root.find().libraries.contains("/usr/lib64/libcuda.so.1"));
}

TEST_CASE("links never lead out of the driver root", "[plugin][driver_files]") {
  Root root;
  root.link("/usr/lib64/libnvidia-evil.so.1", "../../../../../../../../etc/passwd");
  CHECK_FALSE(root.find().libraries.contains("/usr/lib64/libnvidia-evil.so.1"));
}

TEST_CASE("only the driver's own devices are given to daemons", "[plugin][driver_files]") {
  for (const char* yes :
       {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-modeset",
        "/dev/nvidia-caps/nvidia-cap3", "/dev/nvidia-caps-imex-channels/channel0"})
    CHECK(is_driver_device(yes));
  for (const char* no : {"/dev/nvidia-fs0", "/dev/nvidia-nvswitchctl", "/dev/nvidia-nvlink",
                         "/dev/null", "/dev/nvidia-caps/other", "/dev/dri/card0"})
    CHECK_FALSE(is_driver_device(no));
}

TEST_CASE("a file that is no ELF file has no names", "[plugin][driver_files]") {
  fake::TempRoot root;
  root.file("/script", "#!/bin/sh\n");
  auto names = read_elf_names(root.path("/script"));
  REQUIRE(names);
  CHECK(names->soname.empty());
  CHECK(names->needed.empty());
  CHECK_FALSE(read_elf_names(root.path("/absent")));
}

TEST_CASE("a base file without devices is one that runtimes accept", "[plugin][driver_files]") {
  cdi::Spec spec = base_spec({}, {"/", "/", {}});
  CHECK_FALSE(spec.devices.at(0).edits.empty());
}

TEST_CASE("the base file is byte for byte as written down", "[plugin][driver_files]") {
  DriverFiles files;
  files.tools = {{"/usr/bin/nvidia-imex", "/driver-root/opt/bin/nvidia-imex"},
                 {"/usr/bin/nvidia-imex-ctl", "/driver-root/usr/bin/nvidia-imex-ctl"}};
  files.libraries = {
      {"/usr/lib64/libcuda.so.1", "/driver-root/usr/lib64/libcuda.so.580.95.05"},
      {"/usr/lib64/libcuda.so.580.95.05", "/driver-root/usr/lib64/libcuda.so.580.95.05"}};
  files.library_directories = {"/usr/lib64", "/lib64"};
  cdi::DeviceNode gpu{"/dev/nvidia0"};
  gpu.host_path = "/driver-root/dev/nvidia0";
  gpu.major = 195;
  gpu.file_mode = 0660;
  gpu.permissions = "rwm";
  gpu.gid = 27;
  cdi::DeviceNode control{"/dev/nvidiactl"};
  control.host_path = "/dev/nvidiactl";  // the device root is this process's own
  control.major = 195;
  control.minor = 255;
  control.file_mode = 0666;
  control.permissions = "rwm";
  files.devices = {control, gpu};
  std::ifstream golden(std::string(TEST_DATA) + "/cdi/driver.yaml", std::ios::binary);
  CHECK(cdi::render(base_spec(files, {"/driver-root", "/run/nvidia/driver", {}})) ==
        std::string(std::istreambuf_iterator<char>(golden), {}));
}
