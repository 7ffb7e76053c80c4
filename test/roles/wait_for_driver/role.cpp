// The role as a program of its own, as an init container starts it.
#include "roles/wait_for_driver/run.hpp"

#include <vector>

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return nvdra::roles::wait_for_driver::run(arguments, nvdra::process_environment());
}
