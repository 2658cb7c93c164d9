// NCCL's words for functions, types, algorithms and protocols, as numbers of ours.
#pragma once

#include <cstdint>
#include <optional>

#include "instrumentation/event.h"

namespace shardscope::nccl_profiler {

/// "AllGather", ...; none for what has no kind of collective here (Gather, Scatter, Send, Recv) and for no
/// text.
[[nodiscard]] std::optional<instrumentation::CollectiveOp> operation_of(const char* function) noexcept;

/// "ncclFloat32", ...: bytes of an element (0: not known) and the number by which collective events name the
/// type (f32 0, bf16 1, f16 2, i8 3; 255: one that they have no number for).
struct ElementType {
  std::uint8_t bytes = 0;
  std::uint8_t code = 255;
};
[[nodiscard]] ElementType type_of(const char* datatype) noexcept;

/// "RING", ...; `unknown` for a name that is not known, and for none.
[[nodiscard]] instrumentation::NcclAlgorithm algorithm_of(const char* name) noexcept;
[[nodiscard]] instrumentation::NcclProtocol protocol_of(const char* name) noexcept;

/// How many times `count` of NCCL's call the full size of a collective is (metrics 2.3): the ranks for those
/// whose count is one rank's part.
[[nodiscard]] std::int64_t parts_of(instrumentation::CollectiveOp operation, int ranks) noexcept;

}  // namespace shardscope::nccl_profiler
