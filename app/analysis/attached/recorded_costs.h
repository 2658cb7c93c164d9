// The costs of an attached DeepSpeed run, as pieces from which a step with other settings is composed: host
// time between two module boundaries, duration of a collective by size, host time to issue one, to unpack
// gathered parameters and to prepare a bucket. Only for runs on a CPU, where spans are those of the work
// itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/analysis/pace.h"
#include "app/analysis/recorded_boundaries.h"
#include "app/store/store.h"
#include "runtime/plan/model_plan.h"
#include "runtime/plan/visit_order.h"

namespace shardscope::analysis::attached {

/// The host's work from one gate of a micro-step to the next: the same in all micro-steps and on all ranks.
struct Piece {
  ev::GateKind gate{};
  std::uint32_t module = ev::kNoId;      ///< kNoId for the gate that begins a micro-step
  std::vector<plan::Visit> visits;       ///< with which the scheduler is called at the boundary
  std::vector<plan::ParamId> gradients;  ///< that became ready in it, in order of arrival
  bool operator==(const Piece& other) const { return gate == other.gate && module == other.module; }
};

/// One micro-step of one rank, without the times in which it waited for communication.
struct MicroStepTime {
  std::vector<double> own_ns;  ///< by piece
  std::vector<double>
      other_ns;  ///< by piece: collectives other than gathers and buckets, for which the host waits
};

/// The end of a step on one rank, from the optimizer's gate on: up to the end of the last sub-group's update,
/// and the distribution of updated parameters to all ranks after it.
struct UpdateTime {
  double own_ns = 0, collectives_ns = 0;
  double after_ns = 0, after_collectives_ns = 0;
};

struct RankTime {
  double before_ns = 0;  ///< from the begin of the step to its first gate
  std::vector<MicroStepTime> micro_steps;
  UpdateTime update;
};

struct RecordedStep {
  std::uint32_t step = 0;
  double total_ns = 0;  ///< mean over ranks
  std::vector<RankTime> ranks;
};

/// Host time per operation and per element.
struct HostCost {
  double each_ns = 0, elem_ns = 0;
  [[nodiscard]] double ns(double times, double elems) const noexcept {
    return each_ns * times + elem_ns * elems;
  }
};

struct RecordedCosts {
  std::string missing;  ///< why the run cannot be replayed; then all else is empty
  plan::ModelPlan model;
  std::uint32_t world = 1;
  double step_ms = 0;  ///< median of `steps`
  std::vector<Piece> pieces;
  std::vector<ExternalUse> external;
  std::vector<RecordedStep> steps;
  LinkPace gather, reduce;  ///< bytes in the busbw convention; rate 0: none recorded
  HostCost issue, unpack, flush;
  double fetch_ns = 0, release_ns = 0;  ///< stage 3's hooks at a boundary without a gather
  // Recorded numbers of a step: a replay with the recorded settings must reproduce them.
  std::int64_t gathers = 0, gathered_elems = 0, flushes = 0;
};

/// Reads the steps that lack no event, without the first. `missing` names what is not available: at least
/// three such steps, gates, module boundaries that are equal on all ranks and in all micro-steps, or a device
/// whose spans are those of the work rather than of the host.
[[nodiscard]] RecordedCosts recorded_costs(const store::Store& store);

}  // namespace shardscope::analysis::attached
