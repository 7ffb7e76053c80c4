// The role as a program of its own, for tests of its exit status.
#include "roles/daemon/run.hpp"

#include <vector>

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return nvdra::roles::daemon::run(arguments, nvdra::process_environment());
}
