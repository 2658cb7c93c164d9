// Exact communication of one rank in an optimizer step of stage 3, by process group: padding, scales and the
// two hops of hierarchical collectives included (ZeRO++; docs/zero.md P16-P19). The ZeRO paper's S and 2S are
// in memory_model.h; these figures equal the sums of a run's events and counters.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/zero_config.h"
#include "runtime/plan/zero_groups.h"

namespace shardscope::plan {

/// Process group of a collective, in the order of the events' CollectiveScope.
enum class TrafficScope : std::uint8_t { world, secondary, shard, replica, intra_node, inter_node };
inline constexpr std::size_t kTrafficScopes = 6;

/// Counted as in metrics 2.3: an all-gather, reduce-scatter or all-to-all counts the whole over its ranks, an
/// all-reduce twice its elements. An int4 element is one element of half a byte; a scale is an element of
/// four bytes.
struct Traffic {
  std::int64_t elems = 0;
  std::int64_t bytes = 0;
};
using ScopeTraffic = std::array<Traffic, kTrafficScopes>;

struct StepTraffic {
  ScopeTraffic forward{};   ///< gathers
  ScopeTraffic backward{};  ///< gathers
  ScopeTraffic reduce{};
  ScopeTraffic persistent{};  ///< gathers after the step
  [[nodiscard]] ScopeTraffic gathers() const noexcept;
  [[nodiscard]] Traffic total() const noexcept;
};

struct TrafficParam {
  std::vector<std::int64_t> shape;
  bool persistent = false;
  /// Gathered and never reduced. A persistent one is gathered after the step under DeepSpeed's scheduler
  /// (compat.scheduler) and never again under ours.
  bool frozen = false;
};

struct TrafficInput {
  Topology topology;
  std::int64_t micro_steps = 1;
  std::int64_t param_bytes = 2;      ///< bytes per parameter element
  std::int64_t gradient_bytes = 2;   ///< bytes per communicated gradient element
  std::int64_t sum_bytes = 2;        ///< bytes per element of the owned gradients
  std::int64_t shard_alignment = 1;  ///< see make_shard_layout
};

/// Every parameter is gathered once in the forward and once in the backward of each micro-step. Throws
/// std::invalid_argument as make_zero_groups does.
[[nodiscard]] StepTraffic step_traffic(const std::vector<TrafficParam>& params, const ZeroConfig& zero,
                                       const TrafficInput& input);

/// The volumes as a formula: "S int8 + S secondary + (S + S/4) int4"; several micro-steps "2(...)".
[[nodiscard]] std::string traffic_text(const ZeroConfig& zero, const Topology& topology,
                                       std::int64_t micro_steps);

/// Whether stage 3 runs with any of ZeRO++, MiCS or all-reduce fetches, so that the plain 3S does not
/// describe it.
[[nodiscard]] bool has_special_traffic(const ZeroConfig& zero) noexcept;

}  // namespace shardscope::plan
