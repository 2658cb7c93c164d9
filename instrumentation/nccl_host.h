// Lets the NCCL profiler plugin, which NCCL loads into the process, emit through a program's own event path
// (zero_train): the plugin looks up the symbol below. Its events then belong to the program's rank, and each
// NCCL call is joined with the collective that issued it.
#pragma once

#include <cstdint>

#include "instrumentation/event.h"

namespace shardscope::instrumentation {

/// Only extended at its end. Every function may be called from any thread and does not throw.
struct NcclHost {
  std::uint32_t bytes = sizeof(NcclHost);
  /// As enabled(); also false while emission is off.
  bool (*enabled)(Detail detail) = nullptr;
  void (*emit_at)(std::int64_t monotonic_ns, const Event& event) = nullptr;
  /// Sequence of the collective that the calling thread is passing to NCCL; kNoId outside of one.
  std::uint32_t (*current_collective)() = nullptr;
};
using NcclHostFunction = const NcclHost* (*)();
inline constexpr char kNcclHostSymbol[] = "shardscope_nccl_host";

/// While it exists, NCCL calls of this thread belong to collective `sequence`. Must not be nested.
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
