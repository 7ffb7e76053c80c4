// How long the kubelet waits for a claim whose node is ready. A sandbox of one node is started; its
// real kubelet-plugin process gets gRPC calls for N claims, one after the other, as a kubelet makes
// them. All claims stay prepared to the end (with admin access, so that they may share the
// channel), so the checkpoint grows to N entries; then all are unprepared.
//
// Prints one JSON object; times are in milliseconds.
#include "base/args.hpp"
#include "base/files.hpp"
#include "base/try.hpp"
#include "fake/run_loop.hpp"
#include "fake/temp_dir.hpp"
#include "sandbox/demo_cluster.hpp"
#include "sandbox/kubelet_rpc.hpp"

#include <boost/asio/io_context.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace nvdra::sandbox {
namespace {

using Samples = std::vector<double>;

Json allocation(const std::string& node, std::string_view domain) {
  Json result = {{"request", "channel"},
                 {"driver", "compute-domain.nvidia.com"},
                 {"pool", node},
                 {"device", "channel-0"},
                 {"adminAccess", true}};
  Json parameters = {{"apiVersion", "resource.nvidia.com/v1beta1"},
                     {"kind", "ComputeDomainChannelConfig"},
                     {"domainID", domain}};
  Json config = {{"source", "FromClaim"},
                 {"requests", JsonArray{"channel"}},
                 {"opaque", {{"driver", "compute-domain.nvidia.com"}, {"parameters", parameters}}}};
  return {{"devices", {{"results", JsonArray{result}}, {"config", JsonArray{config}}}}};
}

Result<dra::ClaimRef> make_claim(Registry& registry, int number, const Json& allocated) {
  const Resource& claims = registry.resource("resourceclaims.resource.k8s.io");
  std::string name = fmt::format("claim-{}", number);
  Json request = {
      {"name", "channel"},
      {"exactly",
       {{"deviceClassName", "compute-domain-default-channel.nvidia.com"}, {"adminAccess", true}}}};
  Json object = {{"metadata", {{"name", name}}},
                 {"spec", {{"devices", {{"requests", JsonArray{request}}}}}}};
  TRY(ItemPtr made, registry.create(claims, "default", std::move(object)));
  Json status = {{"status", {{"allocation", allocated}}}};
  TRY(made, registry.patch(claims, {"default", name}, status, PatchForm::merge,
                           {.subresource = "status"}));
  return dra::ClaimRef{"default", name,
                       ClaimUid(std::string(text_or_empty(made->json(), "metadata/uid")))};
}

Result<std::string> make_domain(Registry& registry) {
  Json object = {
      {"metadata", {{"name", "bench"}}},
      {"spec", {{"numNodes", 1}, {"channel", {{"resourceClaimTemplate", {{"name", "bench"}}}}}}}};
  TRY(ItemPtr made,
      registry.create(registry.resource("computedomains"), "default", std::move(object)));
  return std::string(text_or_empty(made->json(), "metadata/uid"));
}

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

Result<void> first_error(const ClaimAnswers& answers, const dra::ClaimRef& claim) {
  auto answer = answers.find(claim.uid.value);
  if (answer == answers.end()) return refuse("claim " + claim.text() + " was not answered");
  if (!answer->second.error.empty()) return refuse(answer->second.error);
  return ok();
}

struct Times {
  Samples prepare;
  Samples unprepare;
};

Async<Result<void>> measure(Cluster& cluster, int count, Times& times) {
  CO_TRY_VOID(co_await cluster.wait_ready(20s));
  Cluster::Node& node = cluster.nodes().front();
  CO_TRY(std::string domain, make_domain(cluster.registry()));
  const Json allocated = allocation(node.layout.name, domain);
  std::vector<dra::ClaimRef> claims;
  for (int number = 0; number < count; ++number) {
    CO_TRY(dra::ClaimRef claim, make_claim(cluster.registry(), number, allocated));
    claims.push_back(std::move(claim));
  }
  auto executor = co_await asio::this_coro::executor;
  PluginChannel kubelet(executor,
                        node.layout.folder + "/plugins/compute-domain.nvidia.com/dra.sock");
  for (const dra::ClaimRef& claim : claims) {
    const auto start = std::chrono::steady_clock::now();
    CO_TRY(ClaimAnswers answers, co_await kubelet.prepare(DraVersion::v1, {claim}, 45s));
    times.prepare.push_back(since(start));
    CO_TRY_VOID(first_error(answers, claim));
  }
  for (const dra::ClaimRef& claim : claims) {
    const auto start = std::chrono::steady_clock::now();
    CO_TRY(ClaimAnswers answers, co_await kubelet.unprepare(DraVersion::v1, {claim}, 45s));
    times.unprepare.push_back(since(start));
    CO_TRY_VOID(first_error(answers, claim));
  }
  co_return ok();
}

double quantile(Samples samples, double part) {
  std::ranges::sort(samples);
  const auto last = static_cast<double>(samples.size() - 1);
  return samples[static_cast<std::size_t>(part * last)];
}

Result<Times> play(const std::string& nvdra, const std::string& program, int count) {
  asio::io_context loop(1);
  RealTime time;
  fake::TempDir folder;
  Cluster cluster(
      loop, time,
      {.nodes = 1, .folder = folder.path(), .nvdra = nvdra, .program = program, .verbosity = 0});
  TRY_VOID(cluster.prepare());
  Times times;
  TRY_VOID(
      fake::run(loop, cluster.run([&](Cluster& up) { return measure(up, count, times); }), 10min));
  return times;
}

}  // namespace
}  // namespace nvdra::sandbox

int main(int argc, char** argv) {
  using namespace nvdra::sandbox;
  if (argc != 4) {
    fmt::print(stderr, "usage: prepare_bench NVDRA NVDRA-SANDBOX CLAIMS\n");
    return 2;
  }
  const int count = std::atoi(argv[3]);
  if (count < 1) {
    fmt::print(stderr, "prepare_bench: CLAIMS is a number above 0, not {}\n", argv[3]);
    return 2;
  }
  const nvdra::Result<Times> times = play(argv[1], argv[2], count);
  if (!times) {
    fmt::print(stderr, "prepare_bench: {}\n", times.error().text());
    return 1;
  }
  fmt::print(R"({{"claims": {}, "prepare_p50": {:.2f}, "prepare_p99": {:.2f}, )"
             R"("unprepare_p50": {:.2f}, "unprepare_p99": {:.2f}}})"
             "\n",
             count, quantile(times->prepare, 0.5), quantile(times->prepare, 0.99),
             quantile(times->unprepare, 0.5), quantile(times->unprepare, 0.99));
  return 0;
}
