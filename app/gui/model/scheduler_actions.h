// What the scheduler, the bucket planner and the optimizer of a rank did, as lines that the Stepper lists.
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
  decision,   ///< what a module needs and what is fetched ahead
  gather,     ///< parameters are on their way for the module that runs next
  prefetch,   ///< the same, ahead of time
  available,  ///< they are there
  release,
  kept,
  outcome,  ///< what became of a prefetch
  bucket_add,
  bucket_flush,
  trace,
  overflow,
};

/// One line, with the ids that it concerns so that a click can select them.
struct SchedulerAction {
  std::int64_t at_ns = 0;
  std::string text;    ///< "Prefetch started: h.4.attn.weight (1.77M elements)"
  std::string reason;  ///< analysis::reason_of(); may be empty
  std::uint32_t param = ev::kNoId, module = ev::kNoId, gather = ev::kNoId;
  ActionKind kind = ActionKind::other;
};
/// The actions of a rank in [begin, end), in order of time. Status changes of one gather that follow one
/// another are merged to one. Reads the run's configuration: not for every rank in every frame.
[[nodiscard]] std::vector<SchedulerAction> scheduler_actions(const store::Store& store, std::uint32_t rank,
                                                             std::int64_t begin_ns, std::int64_t end_ns);

}  // namespace shardscope::gui
