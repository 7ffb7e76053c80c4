#include "imex/nvidia_smi.hpp"

#include "base/process.hpp"
#include "base/try.hpp"
#include "imex/gpu_cells.hpp"
#include "imex/text.hpp"

#include <fmt/format.h>

namespace nvdra::imex {
namespace {

constexpr std::string_view tool = "nvidia-smi";

Failure explain(const DriverRoot& root, Failure failure, Duration limit) {
  if (failure.error.code == boost::system::errc::timed_out)
    return refuse(fmt::format(
        "{} in the driver root {} gave no answer within {:g} s: run it on the node and look for "
        "NVRM lines in `dmesg`",
        tool, root.host, std::chrono::duration<double>(limit).count()));
  return refuse(fmt::format("{} in the driver root {} could not be run: {}", tool, root.host,
                            failure.error.text()));
}

Async<Result<Output>> ask(const DriverRoot& root, std::vector<std::string> arguments, Time& time,
                          Duration limit) {
  CO_TRY(const Found found, find_binary(root, tool));
  const Command command{
      .program = found.inside, .arguments = std::move(arguments), .root = root.here};
  Result<Output> output = co_await run(command, time, {.time = limit});
  if (!output) co_return explain(root, std::move(output).failure(), limit);
  co_return output;
}

// It ends with a status of its own when there is no GPU, which is no failure.
bool answered(const Output& output) {
  return output.exit.success() || says_no_devices(output.out) || says_no_devices(output.err);
}

Failure failed(const DriverRoot& root, const Output& output) {
  return refuse(fmt::format("{} in the driver root {} ended with {} and printed: {}", tool,
                            root.host, output.exit.text(), excerpt(output.out + output.err)));
}

}  // namespace

Async<Result<std::vector<Gpu>>> query_gpus(DriverRoot root, Time& time, Duration limit) {
  std::vector<std::string> query = {fmt::format("--query-gpu={}", gpu_query_fields),
                                    "--format=csv,noheader"};
  Result<Output> asked = co_await ask(root, std::move(query), time, limit);
  if (!asked) co_return std::move(asked).failure();
  if (!lacks_query_field(asked->out + asked->err)) {
    if (!answered(*asked)) co_return failed(root, *asked);
    co_return parse_gpu_query(asked->out);
  }

  std::vector<std::string> report = {"-q"};
  Result<Output> told = co_await ask(root, std::move(report), time, limit);
  if (!told) co_return std::move(told).failure();
  if (!answered(*told)) co_return failed(root, *told);
  co_return parse_gpu_report(told->out);
}

}  // namespace nvdra::imex
