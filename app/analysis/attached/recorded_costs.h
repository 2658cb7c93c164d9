// What an attached DeepSpeed run spent its time on, in the pieces that a replay with other settings is put
// together from: the host's own time between two module boundaries, what a collective of so many bytes takes,
// what it costs the host to issue one, to unpack what was gathered and to prepare a bucket. Of runs on a CPU,
// where spans are those of the work.
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

/// The host's time from one gate of a micro-step to the next: alike in every micro-step and on every rank.
struct Piece {
  ev::GateKind gate{};
  std::uint32_t module = ev::kNoId;      ///< none for the gate that a micro-step begins with
  std::vector<plan::Visit> visits;       ///< with which a scheduler is called at the boundary
  std::vector<plan::ParamId> gradients;  ///< that were ready within it, in order of arrival
  bool operator==(const Piece& other) const { return gate == other.gate && module == other.module; }
};

/// One micro-step of one rank. Times of which the rank stood waiting for communication are not in it.
struct MicroStepTime {
  std::vector<double> own_ns;  ///< by piece
  std::vector<double>
      other_ns;  ///< by piece: collectives that are neither a gather nor a bucket, while the host waits
};

/// The end of a step on one rank, from the optimizer's gate on, in two parts: up to the end of the last
/// sub-group's update, and what makes parameters current on every rank after it.
struct UpdateTime {
  double own_ns = 0, collectives_ns = 0;
  double after_ns = 0, after_collectives_ns = 0;
};

struct RankTime {
  double before_ns = 0;  ///< from the step's begin to its first gate
  std::vector<MicroStepTime> micro_steps;
  UpdateTime update;
};

struct RecordedStep {
  std::uint32_t step = 0;
  double total_ns = 0;  ///< mean over ranks
  std::vector<RankTime> ranks;
};

/// What something costs the host: each time, and for each element.
struct HostCost {
  double each_ns = 0, elem_ns = 0;
  [[nodiscard]] double ns(double times, double elems) const noexcept {
    return each_ns * times + elem_ns * elems;
  }
};

struct RecordedCosts {
  std::string missing;  ///< why nothing can be replayed; all else is empty then
  plan::ModelPlan model;
  std::uint32_t world = 1;
  double step_ms = 0;  ///< median of `steps`
  std::vector<Piece> pieces;
  std::vector<ExternalUse> external;
  std::vector<RecordedStep> steps;
  LinkPace gather, reduce;  ///< of bytes as busbw counts them; rate 0: there was none
  HostCost issue, unpack, flush;
  double fetch_ns = 0, release_ns = 0;  ///< of stage 3's hooks at a boundary where nothing is gathered
  // Of a step, as the recording has it: what a replay of the recorded settings must do as well.
  std::int64_t gathers = 0, gathered_elems = 0, flushes = 0;
};

/// Reads the steps after the first of which no event is missing. `missing` names what is not there: fewer
/// than three such steps, gates, module boundaries that are alike on all ranks and in all micro-steps, a
/// device on which spans are those of the host that queues work.
[[nodiscard]] RecordedCosts recorded_costs(const store::Store& store);

}  // namespace shardscope::analysis::attached
