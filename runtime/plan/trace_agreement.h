// Every rank must record the same trace: the scheduler's decisions follow from it, and collectives match only
// if decisions do (docs/zero.md C3). If modules of equal size are swapped, no collective fails.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/plan/model_plan.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::plan {

/// One step of a recorded trace, small enough to be exchanged: the module, and a hash of the parameters that
/// it fetches, external ones included. Compared as bytes: no padding.
struct TracedVisit {
  std::uint32_t module = 0;
  std::uint32_t params = 0;
  bool operator==(const TracedVisit&) const = default;
};
static_assert(sizeof(TracedVisit) == 8);

/// The scheduler's trace; empty unless COMPLETE.
[[nodiscard]] std::vector<TracedVisit> traced_visits(const FetchScheduler& scheduler);

/// The first step at which the traces differ (a trace that ends earlier differs there); nullopt if they are
/// equal.
[[nodiscard]] std::optional<std::size_t> first_difference(const std::vector<TracedVisit>& a,
                                                          const std::vector<TracedVisit>& b);

/// A rank's visit at a step; nullopt if its trace has ended.
struct RankVisit {
  std::uint32_t rank = 0;
  std::optional<TracedVisit> visit;
};
/// The difference as a sentence: step, ranks, modules, and what to do.
[[nodiscard]] std::string describe_difference(std::size_t step, const RankVisit& a, const RankVisit& b,
                                              const ModelPlan& model);

}  // namespace shardscope::plan
