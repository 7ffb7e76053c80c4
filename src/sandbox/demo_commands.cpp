#include "sandbox/demo_commands.hpp"

#include "base/args.hpp"
#include "base/files.hpp"
#include "base/try.hpp"
#include "base/within.hpp"
#include "sandbox/demo_control.hpp"
#include "sandbox/demo_namespace.hpp"
#include "sandbox/demo_walk.hpp"
#include "sandbox/tool_install.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/signal_set.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace nvdra::sandbox {
namespace {

namespace fs = std::filesystem;

// clang-format off
constexpr Flag demo_flags[] = {
  {"nvdra", "", FlagKind::text, "", "nvdra's executable; default: beside this program or in ../"},
  {"v", "", FlagKind::integer, "4", "how much nvdra's programs log"},
  {"keep", "", FlagKind::boolean, "false", "keep the folder with logs and files"},
  {"help", "", FlagKind::boolean, "false", "list the flags"},
};
constexpr Flag up_flags[] = {
  {"nodes", "", FlagKind::integer, "2", "how many GPU nodes, 1 to 64"},
  {"imex-mode", "", FlagKind::text, "driverManaged", "driverManaged or hostManaged, as in nvdra's chart"},
  {"nvdra", "", FlagKind::text, "", "nvdra's executable; default: beside this program or in ../"},
  {"folder", "", FlagKind::text, "", "where everything is; default: nvdra-sandbox-UID in the temporary folder"},
  {"v", "", FlagKind::integer, "4", "how much nvdra's programs log"},
  {"port", "", FlagKind::integer, "0", "of the API server; 0 = any"},
  {"help", "", FlagKind::boolean, "false", "list the flags"},
};
// clang-format on

Result<std::string> find_nvdra(const std::string& given, const std::string& program) {
  if (!given.empty()) {
    if (::access(given.c_str(), X_OK) == 0) return fs::absolute(given).string();
    return refuse(fmt::format("--nvdra {} is no executable file", given));
  }
  const fs::path here = fs::path(program).parent_path();
  for (const fs::path& path : {here / "nvdra", here.parent_path() / "nvdra"})
    if (::access(path.c_str(), X_OK) == 0 && fs::is_regular_file(path)) return path.string();
  return refuse(
      fmt::format("there is no nvdra beside {} or one folder above: name it by --nvdra", program));
}

// Runs a program in the foreground; its exit status. Ctrl-C reaches it as well.
int run_here(const std::vector<std::string>& words) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<char*> pointers;
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }
  int ended = 0;
  while (child > 0 && ::waitpid(child, &ended, 0) < 0 && errno == EINTR) {
  }
  if (child < 0) return 1;
  return WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
}

// A folder that is removed at the end.
class Folder {
public:
  Folder(std::string path, bool keep) : path_(std::move(path)), keep_(keep) {}
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    if (!keep_) fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

private:
  std::string path_;
  bool keep_;
};

// Runs `body` in the cluster until it has ended or a signal stops it; true when a signal did.
Result<bool> run_cluster(ClusterOptions options,
                         std::function<Async<Result<void>>(Cluster&)> body) {
  asio::io_context loop(1);
  RealTime time;
  Cluster cluster(loop, time, std::move(options));
  TRY_VOID(cluster.prepare());
  asio::cancellation_signal stop;
  bool stopped = false;
  asio::signal_set signals(loop, SIGINT, SIGTERM);
  signals.async_wait([&](auto failed, int) {
    if (failed) return;
    signals.clear();  // a second signal kills, in case the orderly way hangs
    stopped = true;
    stop.emit(asio::cancellation_type::terminal);
  });
  Result<void> ended = ok();
  asio::co_spawn(loop, cluster.run(std::move(body)),
                 asio::bind_cancellation_slot(stop.slot(),
                                              [&](std::exception_ptr thrown, Result<void> result) {
                                                signals.cancel();
                                                if (thrown && !is_cancellation(thrown))
                                                  std::rethrow_exception(thrown);
                                                if (!thrown) ended = std::move(result);
                                              }));
  loop.run();
  if (!ended && !stopped) return std::move(ended).failure();
  return stopped;
}

struct Demo {
  std::string_view name;
  ImexMode mode;
  Async<Result<void>> (*play)(Cluster& cluster);
};
constexpr Demo demos[] = {
    {"driver-managed", ImexMode::driver_managed, play_driver_managed},
    {"host-managed", ImexMode::host_managed, play_host_managed},
};

// All demonstrations, each in a process of its own; the first that fails is the last.
int play_each(std::span<const std::string> flags) {
  const Result<std::string> program = own_program();
  if (!program) return complain("demo", program.error(), 1);
  for (const Demo& demo : demos) {
    std::vector<std::string> words{*program, "demo", std::string(demo.name)};
    words.insert(words.end(), flags.begin(), flags.end());
    const int status = run_here(words);
    if (status != 0) return status;
  }
  return 0;
}

Result<std::string> default_folder() {
  return (fs::temp_directory_path() / fmt::format("nvdra-sandbox-{}", ::geteuid())).string();
}

}  // namespace

int complain(std::string_view command, const Error& error, int status) {
  fmt::print(stderr, "nvdra-sandbox: {}: {}\n", command, error.text());
  return status;
}

Result<bool> run_in_folder(ClusterOptions options, const Args& args,
                           std::function<Async<Result<void>>(Cluster&)> body) {
  TRY(options.program, own_program());
  TRY(options.nvdra, find_nvdra(args.text("nvdra"), options.program));
  options.folder = (fs::temp_directory_path() / "nvdra-demo-XXXXXX").string();
  if (!::mkdtemp(options.folder.data())) return errno_failure("create " + options.folder);
  const Folder folder(options.folder, args.boolean("keep"));
  TRY_VOID(isolate());
  return run_cluster(std::move(options), std::move(body));
}

int run_demo(std::span<const std::string> arguments) {
  std::vector<std::string> names;
  const Result<Args> args = parse_args(demo_flags, arguments, {}, &names);
  if (!args) return complain("demo", args.error(), 2);
  if (args->boolean("help")) {
    fmt::print("usage: nvdra-sandbox demo [driver-managed|host-managed] [FLAGS]\n{}",
               flags_help(demo_flags));
    return 0;
  }
  if (names.empty()) return play_each(arguments);
  const auto* demo = std::ranges::find(demos, names[0], &Demo::name);
  if (demo == std::end(demos) || names.size() > 1) {
    fmt::print(stderr,
               "nvdra-sandbox demo: there is no demonstration \"{}\": use driver-managed, "
               "host-managed, or nothing for both\n",
               fmt::join(names, " "));
    return 2;
  }
  const Result<bool> played = run_in_folder(
      {.mode = demo->mode, .verbosity = static_cast<int>(args->integer("v"))}, *args, demo->play);
  if (!played) return complain("demo", played.error(), 1);
  return *played ? 130 : 0;
}

int run_up(std::span<const std::string> arguments) {
  const Result<Args> args = parse_args(up_flags, arguments, {});
  if (!args) return complain("up", args.error(), 2);
  if (args->boolean("help")) {
    fmt::print("usage: nvdra-sandbox up [FLAGS]\n{}", flags_help(up_flags));
    return 0;
  }
  const auto nodes = args->integer("nodes");
  if (nodes < 1 || nodes > 64)
    return complain("up", refuse("--nodes takes a number from 1 to 64").error, 2);
  const std::string word = args->text("imex-mode");
  const bool host = word == mode_word(ImexMode::host_managed);
  if (!host && word != mode_word(ImexMode::driver_managed))
    return complain("up", refuse("--imex-mode takes driverManaged or hostManaged").error, 2);
  const auto serve = [&]() -> Result<bool> {
    TRY(std::string program, own_program());
    TRY(std::string nvdra, find_nvdra(args->text("nvdra"), program));
    std::string path = args->text("folder");
    if (path.empty()) {
      TRY(path, default_folder());
    }
    TRY(const Fd lock, take_folder(path));
    const Folder folder(path, false);
    TRY_VOID(isolate());
    return run_cluster({.mode = host ? ImexMode::host_managed : ImexMode::driver_managed,
                        .nodes = static_cast<int>(nodes),
                        .folder = path,
                        .nvdra = nvdra,
                        .program = program,
                        .port = static_cast<std::uint16_t>(args->integer("port")),
                        .verbosity = static_cast<int>(args->integer("v"))},
                       serve_until_stopped);
  };
  const Result<bool> served = serve();
  return served ? 0 : complain("up", served.error(), 1);
}

int run_on(std::span<const std::string> arguments) {
  if (arguments.size() < 2) {
    fmt::print(stderr, "usage: nvdra-sandbox on NODE COMMAND…     (the folder: NVDRA_SANDBOX)\n");
    return 2;
  }
  const Environment environment = process_environment();
  const auto named = environment.find("NVDRA_SANDBOX");
  const Result<std::string> folder =
      named == environment.end() ? default_folder() : Result<std::string>(named->second);
  if (!folder) return complain("on", folder.error(), 1);
  const Result<int> status = ask_node(*folder, arguments[0], arguments.subspan(1));
  return status ? *status : complain("on", status.error(), 1);
}

}  // namespace nvdra::sandbox
