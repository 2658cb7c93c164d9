#include "instrumentation/nccl_host.h"

#include "instrumentation/emitter.h"

namespace shardscope::instrumentation {
namespace {

thread_local std::uint32_t t_collective = kNoId;

}  // namespace

NcclCalls::NcclCalls(std::uint32_t sequence) noexcept { t_collective = sequence; }
NcclCalls::~NcclCalls() { t_collective = kNoId; }

}  // namespace shardscope::instrumentation

extern "C" __attribute__((visibility("default"))) const shardscope::instrumentation::NcclHost*
shardscope_nccl_host() {
  using namespace shardscope::instrumentation;
  static constexpr NcclHost kHost{sizeof(NcclHost), [](Detail detail) { return enabled(detail); },
                                  [](std::int64_t ns, const Event& event) { emit_at(ns, event); },
                                  []() { return t_collective; }};
  return &kHost;
}
