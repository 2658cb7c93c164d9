// One collective as the worker thread runs it, and the signature that ranks compare before they access each
// other's memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "instrumentation/event.h"
#include "kernels/types.h"

namespace shardscope::comm {

/// One parameter's share of a collective. The peers read `source`.
///   all_gather      source shard[extent]; target full[world*extent]
///   reduce_scatter  source full[elems]; target out[extent]
///   reduce          source in[elems]; target out[elems], used on `root`
///   all_reduce      source == target data[elems]; extent: range one rank reduces
///   all_to_all      source send[world*extent]; target receive[world*extent]
struct Part {
  const void* source = nullptr;
  void* target = nullptr;
  std::int64_t elems = 0;
  std::int64_t extent = 0;
  std::uint32_t root = 0;
  std::uint32_t param = instrumentation::kNoId;  ///< kNoId for ranges of several parameters
};

struct Collective {
  instrumentation::CollectiveOp op{};
  kernels::DType type{};
  float factor = 1;
  std::uint32_t sequence = 0;
  std::uint32_t group = instrumentation::kNoId;
  instrumentation::StreamId lane{};
  std::int64_t elems = 0;    ///< metrics.md 2.3, S, in units of `type`
  std::int64_t packing = 1;  ///< see CollectiveLabel
  std::int64_t bytes = 0;
  std::vector<Part> parts;
};

/// The properties that must be equal on all ranks, 48 bytes, compared at entry. If a rank ran another module
/// or gathered other parameters, the error names both sides, instead of a hang or a wrong sum.
struct Signature {
  std::uint32_t op = 0;
  std::uint32_t type = 0;
  std::uint32_t parts = 0;
  std::uint32_t group = 0;     ///< for the message only: not compared
  std::uint32_t sequence = 0;  ///< for the message only
  std::uint32_t factor_bits = 0;
  std::uint64_t calls = 0;  ///< collectives of this communicator before this one
  std::int64_t elems = 0;
  std::uint64_t shape_hash = 0;  ///< over elems, extent, root and parameter of every part
};
static_assert(sizeof(Signature) == 48);

[[nodiscard]] Signature signature_of(const Collective& collective, std::uint64_t calls) noexcept;
[[nodiscard]] bool same(const Signature& a, const Signature& b) noexcept;
/// "all_gather of 3 parts, 1200 elements f32 (call 17, group 5)".
[[nodiscard]] std::string describe(const Signature& signature);
using instrumentation::name_of;

/// The error message if the ranks disagree; the same text on every rank.
[[nodiscard]] std::string mismatch_text(const std::string& communicator, std::uint32_t rank_a,
                                        const Signature& a, std::uint32_t rank_b, const Signature& b);
[[nodiscard]] std::string host_mismatch_text(const std::string& communicator, std::uint32_t rank_a,
                                             const char* call_a, std::uint64_t bytes_a, std::uint32_t rank_b,
                                             const char* call_b, std::uint64_t bytes_b);

}  // namespace shardscope::comm
