// ZenFlow's decisions (zero-reference O5): which columns of a rank's gradients are worth a step on the device
// every time, when they are chosen anew, and when the sum of all other gradients goes to the CPU optimizer.
// Pure: it is told the sums that decide and answers; the engine carries out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/plan/ids.h"
#include "runtime/plan/ownership.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::plan {

/// ZenFlowConfig with "auto" resolved as DeepSpeed does (deepspeed/runtime/zenflow/engine.py).
struct ZenFlowSettings {
  double topk_ratio = 0.1;
  std::int64_t select_interval = 0;  ///< steps; 0: chosen once, after the warm-up
  std::int64_t update_interval = 0;  ///< steps; 0: auto, by votes
  double auto_ratio = 0.99;
  std::int64_t warm_up_steps = 0;
  bool overlap_step = false;
};
/// Strategy auto: once per epoch. Epochs are config.steps_per_epoch steps; 0 (unknown): columns are chosen
/// once. Throws std::invalid_argument: a select_interval beside strategy auto, none beside another strategy,
/// or one that is shorter than a fixed update_interval.
[[nodiscard]] ZenFlowSettings resolve_zenflow(const ZenFlowConfig& config);

/// The columns with the largest scores, ascending; among equal scores the lower column.
/// int(ratio * scores.size()) of them, as DeepSpeed truncates.
[[nodiscard]] std::vector<std::int32_t> select_columns(std::span<const float> scores, double ratio);

/// A parameter's part in a rank's owned range: for a matrix the columns it touches, in each of which it owns
/// a run of rows. Everything else (biases, norms) is stepped on the device whole.
struct ColumnSlice {
  ParamId param{};
  std::int64_t owned_offset = 0;  ///< first element within the rank's owned range
  std::int64_t elems = 0;
  std::int64_t columns = 0;       ///< of the matrix, its last dimension; 0: no matrix
  std::int64_t first_column = 0;  ///< column of the first element
  std::int64_t choose = 0;        ///< columns that are chosen; 0 without columns
  /// Elements in chosen columns, at most: what is held for them on the device. All of them without columns.
  [[nodiscard]] std::int64_t capacity() const noexcept;
};
/// The slices of `rank`, ascending in its owned range.
[[nodiscard]] std::vector<ColumnSlice> column_slices(const ModelPlan& model, const Ownership& ownership,
                                                     std::uint32_t rank, double topk_ratio);

/// Sums of absolute gradients over all ranks, of one matrix in one step.
struct GradientMass {
  double selected = 0;  ///< in chosen columns
  double all = 0;
};

/// What happens in one step after another. A step is DeepSpeed's micro-step: every one steps the chosen
/// columns.
class ZenFlowSchedule {
 public:
  /// `matrices`: parameters that vote.
  ZenFlowSchedule(const ZenFlowSettings& settings, std::size_t matrices);

  struct Step {
    bool warm_up = false;  ///< nothing is chosen yet: the whole gradient goes to the CPU, every step
    bool select = false;   ///< columns are chosen anew from this step's gradients
    bool update = false;   ///< the sum, this step's gradient included, goes to the CPU optimizer
    std::int64_t steps_in_sum = 1;
  };
  /// The next step.
  [[nodiscard]] Step begin_step();
  /// auto: the masses of the step that began, by matrix. A matrix votes when what waits outweighs what was
  /// chosen on average; with int(auto_ratio * matrices) votes the step after this one updates. Formulas with
  /// u = steps since the last such decision:
  ///   average = (average (u-1) + selected) / u / (10 topk), waiting += (all - selected) / (10 (1-topk)).
  void observe(std::span<const GradientMass> masses);
  [[nodiscard]] bool observes() const noexcept { return settings_.update_interval == 0; }
  /// Matrices that voted in the last observe().
  [[nodiscard]] std::int64_t votes() const noexcept { return votes_; }

 private:
  ZenFlowSettings settings_;
  std::int64_t step_ = 0;  ///< the next one
  std::int64_t in_sum_ = 0;
  std::int64_t since_decision_ = 0;  ///< u
  std::int64_t votes_ = 0;
  bool decided_ = false;  ///< the votes of the last step suffice
  std::vector<double> average_selected_, waiting_;
};

/// How many of `pieces` of a deferred update are done when `step` of `steps` (from 1) of the interval it runs
/// beside has been queued: evenly, all with the last.
[[nodiscard]] std::int64_t pieces_due(std::int64_t pieces, std::int64_t step, std::int64_t steps) noexcept;

}  // namespace shardscope::plan
