// The costs of an attached run of DeepSpeed, FSDP2 or DDP, as pieces from which a step with other settings is
// composed: host time between two module boundaries, duration of a collective by size, host time to issue
// one, to unpack gathered parameters and to prepare a bucket. Times only for runs on a CPU, where spans are
// those of the work itself; on a GPU the decisions alone are read.
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
  double mean_ns = 0;  ///< of the recorded operations
  [[nodiscard]] double ns(double times, double elems) const noexcept {
    return each_ns * times + elem_ns * elems;
  }
};

/// Parameters that FSDP2 gathers and reduces together.
struct ParamGroup {
  std::uint32_t module = ev::kNoId;  ///< at whose boundaries it is gathered; its hooks reduce its gradients
  std::int64_t elems = 0;            ///< of its gather: its parameters with padding
  std::int64_t trained_elems = 0;    ///< of those whose gradients are reduced
  bool root = false;       ///< FSDP2 keeps it gathered after its forward unless configured otherwise
  bool resharded = false;  ///< after its forward
  /// At its boundaries, in order of issue; indices of groups. In the forward every prefetch is explicitly
  /// configured.
  std::vector<std::size_t> prefetched_in_forward, prefetched_in_backward;
  bool operator==(const ParamGroup&) const = default;
};

/// The gathers and reductions of FSDP2 in one piece, as indices of groups in the order of issue.
struct GroupDecisions {
  std::vector<std::size_t> fetched, prefetched, reduced;
  bool operator==(const GroupDecisions&) const = default;
};

/// A bucket of DistributedDataParallel that was reduced.
struct ReducedBucket {
  std::int64_t elems = 0;
  std::uint32_t params = 0;
  bool operator==(const ReducedBucket&) const = default;
};

struct RecordedCosts {
  std::string missing;   ///< why the run cannot be replayed; then all else is empty
  std::string no_times;  ///< why no times can be predicted: then only decisions and memory are
  plan::ModelPlan model;
  std::uint32_t world = 1;
  double step_ms = 0;  ///< median of `steps`
  std::vector<Piece> pieces;
  std::vector<ExternalUse> external;
  std::vector<RecordedStep> steps;
  LinkPace gather, reduce;  ///< bytes in the busbw convention; rate 0: none recorded
  HostCost issue, unpack, flush;
  double fetch_ns = 0, release_ns = 0;  ///< stage 3's hooks at a boundary without a gather
  // FSDP2 only.
  std::vector<ParamGroup> groups;
  std::vector<std::vector<GroupDecisions>> decisions;  ///< by micro-step, then by piece
  bool explicit_backward = false;  ///< some groups have a list of groups to prefetch in the backward
  bool gathers_block = false;  ///< a gather holds the host until it ends: unshard_async_op is off, on a CPU
  double gather_elem_bytes = 0, reduce_elem_bytes = 0;  ///< transferred per element
  // DistributedDataParallel only. Its reductions run beside the backward, and the host waits at its end.
  std::vector<std::vector<std::vector<ReducedBucket>>> reduced;  ///< by micro-step, then by piece
  std::vector<plan::ParamId> gradient_order;                     ///< in which buckets are filled
  std::vector<std::size_t> bucket_ends;                          ///< in gradient_order
  // Recorded numbers of a step: a replay with the recorded settings must reproduce them.
  std::int64_t gathers = 0, gathered_elems = 0, flushes = 0;
};

/// Why no times of a run can be predicted: a device whose spans are those of the host rather than of the
/// work. Empty if they can.
[[nodiscard]] std::string why_no_times(const instrumentation::RunTables& tables);

/// Reads the steps that lack no event, without the first. `missing` names what is not available: at least
/// three such steps, gates, or module boundaries that are equal on all ranks and in all micro-steps.
[[nodiscard]] RecordedCosts recorded_costs(const store::Store& store);

}  // namespace shardscope::analysis::attached
