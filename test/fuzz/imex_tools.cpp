// What nvidia-smi, nvidia-imex-ctl and the kernel's files say.
#include "base/process.hpp"
#include "imex/capability.hpp"
#include "imex/connections.hpp"
#include "imex/device_major.hpp"
#include "imex/driver_version.hpp"
#include "imex/fabric.hpp"
#include "imex/gpu.hpp"
#include "imex/host_state.hpp"
#include "target.hpp"

#include <vector>

using namespace nvdra;

void fuzz(std::string_view text) {
  (void)imex::parse_capability(text, "fuzz");
  (void)imex::parse_device_major(text, "nvidia-caps-imex-channels", "fuzz");
  for (Result<std::vector<imex::Gpu>> gpus :
       {imex::parse_gpu_query(text), imex::parse_gpu_report(text)}) {
    if (!gpus) continue;
    (void)imex::lenient_fabric(*gpus);
    (void)imex::strict_fabric(*gpus, imex::Unfinished::is_an_error);
  }
  if (const Result<imex::DomainView> view = imex::parse_domain(text))
    for (const auto& [id, member] : *view) (void)imex::unconnected(*view, id);
  Output answer{.exit = {.code = 0, .signal = {}}, .out = std::string(text), .err = {}};
  const imex::HostState state = imex::judge(answer);
  require(!imex::tell(state, {}).seen.empty(), "every state is told in words");
}
