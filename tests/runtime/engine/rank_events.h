// What the ranks of a run in one process emit.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "instrumentation/event.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing {

struct ObservedRun {
  TrainingRun run;
  /// By rank, in order of time; of one lane in the order in which they were emitted.
  std::map<std::uint32_t, std::vector<instrumentation::Event>> events;

  /// The events of one lane of a rank.
  [[nodiscard]] std::vector<instrumentation::Event> lane(std::uint32_t rank,
                                                         instrumentation::StreamId stream) const;
};

/// Trains with this detail and takes what was emitted from the first step on. Fails the running test when
/// events were dropped or a rank failed. `spec.prepare` is used.
[[nodiscard]] ObservedRun train_observed(RunSpec spec,
                                         instrumentation::Detail detail = instrumentation::Detail::params);

}  // namespace shardscope::engine::testing
