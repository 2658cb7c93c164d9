// How a program with an event path of its own (zero_train) lets the NCCL profiler plugin, which NCCL loads
// into the same process, use it: the plugin looks for the symbol below. So the plugin's events come from the
// same rank as the program's, and each NCCL call is joined with the collective that made it.
#pragma once

#include <cstdint>

#include "instrumentation/event.h"

namespace shardscope::instrumentation {

/// Grows at its end only. Every function may be called from any thread and does not throw.
struct NcclHost {
  std::uint32_t bytes = sizeof(NcclHost);
  /// As enabled(); false as well while nothing is emitted.
  bool (*enabled)(Detail detail) = nullptr;
  void (*emit_at)(std::int64_t monotonic_ns, const Event& event) = nullptr;
  /// Sequence of the collective that the calling thread is handing to NCCL; kNoId outside of one.
  std::uint32_t (*current_collective)() = nullptr;
};
using NcclHostFunction = const NcclHost* (*)();
inline constexpr char kNcclHostSymbol[] = "shardscope_nccl_host";

/// While it lives, NCCL calls of this thread belong to collective `sequence`. They do not nest.
class NcclCalls {
 public:
  explicit NcclCalls(std::uint32_t sequence) noexcept;
  ~NcclCalls();
  NcclCalls(const NcclCalls&) = delete;
  NcclCalls& operator=(const NcclCalls&) = delete;
};

}  // namespace shardscope::instrumentation

/// Exported by programs that link nccl_host.cpp with -Wl,--export-dynamic-symbol=shardscope_nccl_host.
extern "C" const shardscope::instrumentation::NcclHost* shardscope_nccl_host();
