// Converts NCCL's names of functions, types, algorithms and protocols to our enumerations.
#pragma once

#include <cstdint>
#include <optional>

#include "instrumentation/event.h"

namespace shardscope::nccl_profiler {

/// "AllGather", ...; nullopt for functions without a collective kind here (Gather, Scatter, Send, Recv) and
/// for null.
[[nodiscard]] std::optional<instrumentation::CollectiveOp> operation_of(const char* function) noexcept;

/// "ncclFloat32", ...: bytes of an element (0: unknown) and its number in collective events (f32 0, bf16 1,
/// f16 2, i8 3; 255: no number).
struct ElementType {
  std::uint8_t bytes = 0;
  std::uint8_t code = 255;
};
[[nodiscard]] ElementType type_of(const char* datatype) noexcept;

/// "RING", ...; `unknown` for other names and for null.
[[nodiscard]] instrumentation::NcclAlgorithm algorithm_of(const char* name) noexcept;
[[nodiscard]] instrumentation::NcclProtocol protocol_of(const char* name) noexcept;

/// Full size of a collective (metrics 2.3) divided by `count` of NCCL's call: the number of ranks where the
/// count is one rank's part, else 1.
[[nodiscard]] std::int64_t parts_of(instrumentation::CollectiveOp operation, int ranks) noexcept;

}  // namespace shardscope::nccl_profiler
