// Samples of the driver's files and tools, as published or reported, without identities.
#pragma once

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace nvdra::imex {

inline std::string sample(const std::string& name) {
  std::ifstream file(std::string(TEST_DATA) + "/imex/" + name, std::ios::binary);
  if (!file) throw std::runtime_error("no sample " + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace nvdra::imex
