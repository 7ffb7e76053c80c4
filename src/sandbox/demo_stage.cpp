#include "sandbox/demo_stage.hpp"

#include "imex/text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

namespace nvdra::sandbox {
namespace {

constexpr Duration look_every = 20ms;
constexpr Duration tell_every = 1s;

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::string indented(std::string_view text) {
  std::string shown;
  while (const auto line = imex::next_line(text)) shown += "    " + std::string(*line) + "\n";
  return shown;
}

// "… | grep WORD" at the end of a command.
std::optional<std::string> take_filter(std::vector<std::string>& words) {
  const std::size_t count = words.size();
  if (count < 3 || words[count - 3] != "|" || words[count - 2] != "grep") return std::nullopt;
  std::string word = words.back();
  words.resize(count - 3);
  return word;
}

std::string lines_with(std::string_view text, const std::string& word) {
  std::string found;
  while (const auto line = imex::next_line(text))
    if (line->find(word) != std::string_view::npos) found += std::string(*line) + "\n";
  return found;
}

}  // namespace

Stage::Stage(Cluster& cluster, DemoKubectl& kubectl)
    : cluster_(cluster),
      kubectl_(kubectl),
      began_(cluster.time().now()),
      colour_(::isatty(STDOUT_FILENO) == 1) {}

double Stage::seconds() const {
  return std::chrono::duration<double>(cluster_.time().now() - began_).count();
}

void Stage::heading(std::string_view text) {
  print(fmt::format(fmt::runtime(colour_ ? "\n\033[1m{}\033[0m\n" : "\n{}\n"), text));
}

void Stage::say(std::string_view text) {
  print(fmt::format("  # {}\n", text));
}

void Stage::command(std::string_view prompt, std::string_view text) {
  const char* form = colour_ ? "\n  \033[36m{}\033[0m {}\n" : "\n  {} {}\n";
  print(fmt::format(fmt::runtime(form), prompt, text));
}

void Stage::answer(const std::string& out, const std::string& err) {
  print(indented(out) + indented(err));
}

void Stage::manifest(const std::string& name, std::string_view text) {
  command("$", fmt::format("cat {}", name));
  print(indented(text));
  kubectl_.files[name] = text;
}

Async<KubectlAnswer> Stage::kubectl(std::string text) {
  command("$", text);
  std::vector<std::string> words = shell_words(text, variables_);
  words.erase(words.begin());
  const std::optional<std::string> filter = take_filter(words);
  KubectlAnswer told = co_await kubectl_.run(std::move(words));
  if (filter) told.out = lines_with(told.out, *filter);
  answer(told.out, told.err);
  co_return told;
}

Async<std::string> Stage::set(std::string name, std::string text) {
  command("$", fmt::format("{}=\"$({})\"", name, text));
  std::vector<std::string> words = shell_words(text, variables_);
  words.erase(words.begin());
  KubectlAnswer told = co_await kubectl_.run(std::move(words));
  answer(fmt::format("{}={}\n", name, told.out), told.err);
  variables_[name] = told.out;
  co_return told.out;
}

Async<Result<Output>> Stage::on(std::string node, std::string text) {
  command(node + "$", text);
  Cluster::Node* place = cluster_.node(node);
  if (!place) co_return refuse(fmt::format("there is no node {}", node));
  Result<Output> done = co_await place->shell.run(shell_words(text, variables_));
  if (done) answer(done->out, done->err);
  co_return done;
}

Async<Result<void>> Stage::until(std::string what, Duration limit, State state) {
  const Instant begin = cluster_.time().now();
  Instant told = begin;
  for (;;) {
    const std::string missing = co_await state();
    const Instant now = cluster_.time().now();
    const double waited = std::chrono::duration<double>(now - begin).count();
    if (missing.empty()) {
      print(fmt::format("    … {} ({:.1f} s)\n", what, waited));
      co_return ok();
    }
    if (now - begin > limit)
      co_return refuse(fmt::format("{}: not after {:.0f} s: {}", what, waited, missing));
    if (now - told >= tell_every) {
      told = now;
      print(fmt::format("    … {:.0f} s: {}\n", waited, missing));
    }
    co_await cluster_.time().sleep(look_every);
  }
}

}  // namespace nvdra::sandbox
