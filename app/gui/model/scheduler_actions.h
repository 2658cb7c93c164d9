// Actions of a rank's scheduler, bucket planner and optimizer, as lines of the Stepper.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/store/store.h"
#include "instrumentation/event.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

enum class ActionKind : std::uint8_t {
  other,
  decision,   ///< what a module needs and what is prefetched
  gather,     ///< parameters in flight for the module that runs next
  prefetch,   ///< parameters in flight ahead of time
  available,  ///< gathered parameters are available
  release,
  kept,
  outcome,  ///< result of a prefetch
  bucket_add,
  bucket_flush,
  trace,
  overflow,
};

/// One line, with the ids that a click selects.
struct SchedulerAction {
  std::int64_t at_ns = 0;
  std::string text;    ///< "Prefetch started: h.4.attn.weight (1.77M elements)"
  std::string reason;  ///< analysis::reason_of(); may be empty
  std::uint32_t param = ev::kNoId, module = ev::kNoId, gather = ev::kNoId;
  ActionKind kind = ActionKind::other;
};
/// Actions of a rank in [begin, end), in order of time. Consecutive status changes of one gather are merged.
/// Parses the run's configuration: too slow to call for every rank in every frame.
[[nodiscard]] std::vector<SchedulerAction> scheduler_actions(const store::Store& store, std::uint32_t rank,
                                                             std::int64_t begin_ns, std::int64_t end_ns);

}  // namespace shardscope::gui
