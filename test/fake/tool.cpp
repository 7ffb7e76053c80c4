// Plays nvidia-imex-ctl or nvidia-smi in an otherwise empty driver root: linked statically, told
// what to do by the file `<its own path>.does<first argument up to '='>` or else `<path>.does`:
//   out TEXT | err TEXT | sleep MILLISECONDS | wait FILE | env | exit STATUS      one per line
// `env` writes the environment to `<path>.env`, a variable a line.
// Each start appends "<pid> <arguments>" to `<path>.asked`.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace {

void say(int stream, const std::string& text) {
  const std::string line = text + "\n";
  if (::write(stream, line.data(), line.size()) < 0) std::exit(99);
}

void perform(const std::string& self, const std::string& word, const std::string& rest) {
  if (word == "out") say(1, rest);
  if (word == "err") say(2, rest);
  if (word == "sleep") std::this_thread::sleep_for(std::chrono::milliseconds(std::stol(rest)));
  if (word == "wait")
    while (::access(rest.c_str(), F_OK) != 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (word == "env") {
    std::ofstream file(self + ".env");
    for (char** variable = environ; *variable; ++variable) file << *variable << "\n";
  }
  if (word == "exit") std::exit(std::stoi(rest));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string self = argv[0];
  std::string line = std::to_string(::getpid());
  for (int i = 1; i < argc; ++i) line += std::string(" ") + argv[i];
  const int asked = ::open((self + ".asked").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  say(asked, line);

  std::string first = argc > 1 ? argv[1] : "";
  std::ifstream script(self + ".does" + first.substr(0, first.find('=')));
  if (!script) script.open(self + ".does");
  while (std::getline(script, line)) {
    const auto blank = line.find(' ');
    perform(self, line.substr(0, blank), blank == std::string::npos ? "" : line.substr(blank + 1));
  }
  return 0;
}
