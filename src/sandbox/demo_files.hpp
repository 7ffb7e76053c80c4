// Files that the program brings along.
#pragma once

#include <string>
#include <vector>

namespace nvdra::sandbox {

struct DemoFile {
  std::string name;
  std::string text;
};

// charts/nvdra/crds.
const std::vector<DemoFile>& crd_files();

}  // namespace nvdra::sandbox
