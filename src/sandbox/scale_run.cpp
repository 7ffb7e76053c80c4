#include "sandbox/scale_run.hpp"

#include "base/args.hpp"
#include "base/files.hpp"
#include "base/try.hpp"
#include "imex/text.hpp"
#include "sandbox/controllers_base.hpp"
#include "sandbox/demo_commands.hpp"
#include "sandbox/scale_nodes.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <set>

namespace nvdra::sandbox {
namespace {

constexpr Duration phase_limit = std::chrono::minutes(2);
constexpr std::string_view domains_type = "computedomains.resource.nvidia.com";

// clang-format off
constexpr Flag scale_flags[] = {
  {"nodes", "", FlagKind::integer, "2000", "how many simulated nodes"},
  {"domains", "", FlagKind::integer, "200", "how many domains share them"},
  {"nvdra", "", FlagKind::text, "", "nvdra's executable; default: beside this program or in ../"},
  {"keep", "", FlagKind::boolean, "false", "keep the folder with logs and files"},
  {"v", "", FlagKind::integer, "0", "how much nvdra's controller logs"},
  {"help", "", FlagKind::boolean, "false", "list the flags"},
};
// clang-format on

class Scale {
public:
  Scale(Cluster& cluster, int nodes, int domains)
      : cluster_(cluster), registry_(cluster.registry()), nodes_(nodes), domains_(domains) {}

  Async<Result<void>> measure() {
    CO_TRY_VOID(
        co_await phase("controller started", [this] { return cluster_.controller_runs(); }));
    make_domains();
    CO_TRY_VOID(co_await phase("templates and DaemonSets made", [this] { return has_sets(); }));
    make_workloads();
    CO_TRY_VOID(co_await phase("all domains formed, workloads Ready", [this] { return formed(); }));
    lose_daemons();
    CO_TRY_VOID(co_await phase("a daemon of each domain replaced", [this] { return formed(); }));
    remove_all();
    CO_TRY_VOID(co_await phase("everything removed", [this] { return removed(); }));
    co_return ok();
  }

private:
  const Resource& of(std::string_view type) const { return registry_.resource(type); }
  int per_domain() const { return nodes_ / domains_; }

  void make(std::string_view type, Json object) {
    Result<ItemPtr> made = registry_.create(of(type), "default", std::move(object));
    if (!made) fmt::print(stderr, "scale: {}\n", made.error().text());
  }

  void make_domains() {
    for (int number = 0; number < domains_; ++number) {
      const std::string name = fmt::format("domain-{}", number);
      const Json channel =
          JsonObject{{"resourceClaimTemplate", JsonObject{{"name", "channel-" + name}}}};
      make(domains_type, JsonObject{{"metadata", JsonObject{{"name", name}}},
                                    {"spec", JsonObject{{"channel", channel}}}});
    }
  }

  void make_workloads() {
    for (int number = 0; number < domains_; ++number) {
      const std::string domain = fmt::format("domain-{}", number);
      const ItemPtr item = registry_.find(of(domains_type), {"default", domain});
      const Json claim = JsonObject{{"name", "channel"}};
      const Json source =
          JsonObject{{"name", "channel"}, {"resourceClaimTemplateName", "channel-" + domain}};
      const Json container = JsonObject{{"name", "app"},
                                        {"image", "none"},
                                        {"resources", JsonObject{{"claims", JsonArray{claim}}}}};
      for (int one = 0; one < per_domain(); ++one)
        make(
            "pods",
            JsonObject{
                {"metadata", JsonObject{{"name", fmt::format("{}-{}", domain, one)},
                                        {"labels", JsonObject{{scale_domain_label, item->uid()}}}}},
                {"spec", JsonObject{{"nodeSelector",
                                     JsonObject{{"nvidia.com/gpu.clique", scale_clique(number)}}},
                                    {"containers", JsonArray{container}},
                                    {"resourceClaims", JsonArray{source}}}}});
    }
  }

  void lose_daemons() {
    std::set<std::string> domains;
    for (const ItemPtr& pod : registry_.all(of("pods"), std::string(driver_namespace)))
      if (domains.insert(std::string(controller_uid(pod->json()))).second)
        (void)registry_.remove(of("pods"), pod->key()).has_value();
  }

  void remove_all() {
    for (const ItemPtr& pod : registry_.all(of("pods"), "default"))
      (void)registry_.remove(of("pods"), pod->key()).has_value();
    for (const ItemPtr& domain : registry_.all(of(domains_type)))
      (void)registry_.remove(of(domains_type), domain->key()).has_value();
  }

  bool has_sets() const {
    return registry_.all(of("daemonsets")).size() == static_cast<std::size_t>(domains_) &&
           registry_.all(of("resourceclaimtemplates")).size() ==
               2 * static_cast<std::size_t>(domains_);
  }

  bool formed() const {
    for (const ItemPtr& domain : registry_.all(of(domains_type))) {
      const JsonArray& nodes = array_or_empty(domain->json(), "status/nodes");
      if (text_or_empty(domain->json(), "status/status") != "Ready") return false;
      if (static_cast<int>(nodes.size()) != per_domain()) return false;
      for (const Json& node : nodes)
        if (text_or_empty(node, "status") != "Ready") return false;
    }
    const std::vector<ItemPtr> pods = registry_.all(of("pods"));
    const auto ready = std::ranges::count_if(
        pods, [](const ItemPtr& pod) { return is_ready(pod->json()) && !pod->deleting(); });
    return ready == 2L * domains_ * per_domain();
  }

  bool removed() const {
    for (const char* type : {"pods", "daemonsets", "resourceclaimtemplates", "resourceclaims"})
      if (!registry_.all(of(type)).empty()) return false;
    return registry_.all(of(domains_type)).empty() &&
           registry_.all(of("computedomaincliques.resource.nvidia.com")).empty();
  }

  // Until `done`; then its figures.
  Async<Result<void>> phase(std::string name, std::function<bool()> done) {
    cluster_.server().reset_counts();
    const double before = cpu_seconds();
    const Instant begin = cluster_.time().now();
    while (!done()) {
      if (cluster_.time().now() - begin > phase_limit)
        co_return refuse(fmt::format("{}: not within {} s", name,
                                     std::chrono::duration<double>(phase_limit).count()));
      co_await cluster_.time().sleep(50ms);
    }
    const double took = std::chrono::duration<double>(cluster_.time().now() - begin).count();
    fmt::print(
        "{:<38} {:>7.2f} s   requests {:>6} (writes {:>6})   controller {:>5.2f} s CPU, {} KiB\n",
        name, took, requests(false), requests(true), cpu_seconds() - before, memory());
    std::fflush(stdout);
    co_return ok();
  }

  // Of nvdra's controller, which alone uses the API server here.
  std::uint64_t requests(bool writes) const {
    std::uint64_t total = 0;
    for (const auto& [kind, times] : cluster_.server().counts())
      if (!writes || (kind.verb != "get" && kind.verb != "list" && kind.verb != "watch"))
        total += times;
    return total;
  }

  std::string proc(std::string_view file) const {
    const auto pid = cluster_.controller_pid();
    const Result<std::string> text = read_file(fmt::format("/proc/{}/{}", pid ? *pid : 0, file));
    return text ? *text : std::string();
  }

  double cpu_seconds() const {
    const std::string text = proc("stat");
    std::string_view rest = std::string_view(text).substr(std::min(text.rfind(')'), text.size()));
    long ticks = 0;
    for (int field = 0; field <= 13 && !rest.empty(); ++field) {  // utime and stime are the last
      const auto blank = rest.find(' ');
      const std::string_view word = rest.substr(0, blank);
      if (field == 12 || field == 13) ticks += imex::parse_number<long>(word).value_or(0);
      rest.remove_prefix(
          std::min(blank == std::string_view::npos ? rest.size() : blank + 1, rest.size()));
    }
    return static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }

  std::string memory() const {
    const std::string text = proc("status");
    const auto at = text.find("VmRSS:");
    if (at == std::string::npos) return "?";
    const std::string_view rest = imex::trim(std::string_view(text).substr(at + 6, 16));
    return std::string(rest.substr(0, rest.find(' ')));
  }

  Cluster& cluster_;
  Registry& registry_;
  int nodes_;
  int domains_;
};

Async<Result<void>> play_scale(Cluster& cluster, int nodes, int domains) {
  auto executor = co_await asio::this_coro::executor;
  ScaleNodes simulated(executor, cluster.registry());
  CO_TRY_VOID(simulated.make(nodes, nodes / domains));
  fmt::print("{} simulated nodes, {} domains of {}\n", nodes, domains, nodes / domains);
  Scale scale(cluster, nodes, domains);
  TaskGroup group(executor);
  const auto measure = [](Scale* of, TaskGroup* all) -> Async<Result<void>> {
    Result<void> measured = co_await of->measure();
    if (measured) all->stop();
    co_return measured;
  };
  group.spawn("nodes", simulated.run());
  group.spawn("scale", measure(&scale, &group));
  Result<void> ended = co_await group.join();
  co_return ended;
}

}  // namespace

int run_scale(std::span<const std::string> arguments) {
  const Result<Args> args = parse_args(scale_flags, arguments, {});
  if (!args) return complain("scale", args.error(), 2);
  if (args->boolean("help")) {
    fmt::print("usage: nvdra-sandbox scale [FLAGS]\n{}", flags_help(scale_flags));
    return 0;
  }
  const auto nodes = static_cast<int>(args->integer("nodes"));
  const auto domains = static_cast<int>(args->integer("domains"));
  if (domains < 1 || nodes < domains || nodes > 50000)
    return complain("scale", refuse("--nodes takes --domains to 50000").error, 2);
  const Result<bool> played = run_in_folder(
      {.nodes = 0, .verbosity = static_cast<int>(args->integer("v"))}, *args,
      [nodes, domains](Cluster& cluster) { return play_scale(cluster, nodes, domains); });
  if (!played) return complain("scale", played.error(), 1);
  return *played ? 130 : 0;
}

}  // namespace nvdra::sandbox
