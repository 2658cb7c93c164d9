// NVTX ranges as a tool sees them. Needs the toolkit's headers, no GPU.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "instrumentation/nvtx_ranges.h"

namespace shardscope::instrumentation {
namespace {

Event event(EventKind kind, std::uint32_t a, std::uint8_t code, std::int64_t bytes = 0) {
  Event out;
  out.kind = kind;
  out.a = a;
  out.code = code;
  out.v1 = bytes;
  return out;
}

TEST(NvtxRanges, AToolSeesPhasesModulesAndCollectives) {
  const std::string path = testing::TempDir() + "nvtx_" + std::to_string(getpid());
  // Before the first NVTX call of this process, which is when the tool is looked for.
  const char* elsewhere = std::getenv("NVTX_RECORDER");  // taken along to another machine
  ASSERT_EQ(setenv("NVTX_INJECTION64_PATH", elsewhere == nullptr ? NVTX_RECORDER : elsewhere, 1), 0);
  ASSERT_EQ(setenv("NVTX_RECORDING", path.c_str(), 1), 0);
  nvtx::name_modules({"model", "model.h.0"});
  using K = EventKind;
  nvtx::note(event(K::phase_begin, 0, static_cast<std::uint8_t>(Phase::forward)));
  nvtx::note(event(K::module_begin, 1, static_cast<std::uint8_t>(Pass::forward)));
  nvtx::note(event(K::collective_begin, 7, static_cast<std::uint8_t>(CollectiveOp::all_gather), 4096));
  nvtx::note(event(K::param_status, 1, 0));
  nvtx::note(event(K::collective_end, 7, static_cast<std::uint8_t>(CollectiveOp::all_gather)));
  nvtx::note(event(K::module_end, 1, static_cast<std::uint8_t>(Pass::forward)));
  nvtx::note(event(K::phase_end, 0, static_cast<std::uint8_t>(Phase::forward)));
  // An end without its begin, and a begin without an end: the enclosing range closes it.
  nvtx::note(event(K::module_end, 1, static_cast<std::uint8_t>(Pass::backward)));
  nvtx::note(event(K::phase_begin, 0, static_cast<std::uint8_t>(Phase::backward)));
  nvtx::note(event(K::module_begin, 1, static_cast<std::uint8_t>(Pass::backward)));
  nvtx::note(event(K::module_begin, 99, static_cast<std::uint8_t>(Pass::backward)));
  nvtx::note(event(K::phase_end, 0, static_cast<std::uint8_t>(Phase::backward)));
  // Functions by DeepSpeed's names; what one leaves open ends with it.
  {
    const nvtx::FunctionRange step(nvtx::Function::step);
    const nvtx::FunctionRange fetch(nvtx::Function::fetch);
    nvtx::note(event(K::module_begin, 1, static_cast<std::uint8_t>(Pass::forward)));
  }
  nvtx::note(event(K::module_end, 1, static_cast<std::uint8_t>(Pass::forward)));

  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  std::filesystem::remove(path);
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "domain shardscope", "push shardscope forward 0", "push shardscope model.h.0 0",
                       "push shardscope all_gather 4096", "pop", "pop", "pop", "push shardscope backward 0",
                       "push shardscope model.h.0 (backward) 0", "push shardscope unnamed 0", "pop", "pop",
                       "pop", "push shardscope step 0", "push shardscope fetch_sub_module 0",
                       "push shardscope model.h.0 0", "pop", "pop", "pop"}));
}

}  // namespace
}  // namespace shardscope::instrumentation
