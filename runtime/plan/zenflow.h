// ZenFlow's decisions (docs/zero.md O5): which columns of a rank's gradients are updated on the device in
// every step, when they are selected again, and when the sum of all other gradients goes to the CPU
// optimizer. Pure: takes gradient sums and returns decisions, which the engine carries out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/plan/ids.h"
#include "runtime/plan/ownership.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::plan {

/// ZenFlowConfig with "auto" resolved as DeepSpeed does (deepspeed/runtime/zenflow/engine.py).
struct ZenFlowSettings {
  double topk_ratio = 0.1;
  std::int64_t select_interval = 0;  ///< steps; 0: selected once, after the warm-up
  std::int64_t update_interval = 0;  ///< steps; 0: auto, by votes
  double auto_ratio = 0.99;
  std::int64_t warm_up_steps = 0;
  bool overlap_step = false;
  bool offload_chosen = false;  ///< states of chosen columns are kept in host memory between steps
};
/// Strategy auto: once per epoch. An epoch is config.steps_per_epoch steps; 0 (unknown): columns are selected
/// once. Throws std::invalid_argument: a select_interval beside strategy auto, none beside another strategy,
/// or one that is shorter than a fixed update_interval.
[[nodiscard]] ZenFlowSettings resolve_zenflow(const ZenFlowConfig& config);

/// The columns with the largest scores, ascending; among equal scores the lower column.
/// int(ratio * scores.size()) of them, as DeepSpeed truncates.
[[nodiscard]] std::vector<std::int32_t> select_columns(std::span<const float> scores, double ratio);

/// A parameter's part in a rank's owned range: for a matrix the columns it touches, in each of which it owns
/// a run of rows. All other parameters (biases, norms) are updated on the device whole.
struct ColumnSlice {
  ParamId param{};
  std::int64_t owned_offset = 0;  ///< first element within the rank's owned range
  std::int64_t elems = 0;
  std::int64_t columns = 0;       ///< of the matrix, its last dimension; 0: no matrix
  std::int64_t first_column = 0;  ///< column of the first element
  std::int64_t choose = 0;        ///< number of columns to choose; 0 without columns
  /// Maximum of elements in chosen columns, the size of their device buffers. All elements without columns.
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

/// ZenFlow's state between two steps, the same on every rank: the part of a checkpoint besides elements and
/// chosen columns.
struct ZenFlowProgress {
  std::int64_t step = 0;            ///< steps begun
  std::int64_t in_sum = 0;          ///< steps whose gradients are in the sum
  std::int64_t since_decision = 0;  ///< u
  bool decided = false;
  std::vector<double> average_selected, waiting;  ///< by matrix
  bool chosen = false;                            ///< columns are chosen
  bool unpublished = false;                       ///< master weights hold an update that the parameters lack
};

/// Why columns were chosen in a step.
enum class SelectionCause : std::uint8_t {
  not_recorded,  ///< not known to the recording program
  first,         ///< the warm-up is over
  interval       ///< select_interval; with strategy auto the end of an epoch
};
/// Why a sum goes to the CPU optimizer: the first of these that applies.
enum class UpdateCause : std::uint8_t {
  warm_up,          ///< nothing is chosen yet: every step
  interval,         ///< update_interval
  votes,            ///< update_interval auto: enough matrices voted in the step before
  before_selection  ///< the next step chooses columns anew
};

/// The decisions of successive steps. A step is DeepSpeed's micro-step: each updates the chosen columns.
class ZenFlowSchedule {
 public:
  /// `matrices`: number of parameters that vote.
  ZenFlowSchedule(const ZenFlowSettings& settings, std::size_t matrices);

  struct Step {
    bool warm_up = false;           ///< nothing is chosen yet: the whole gradient goes to the CPU, every step
    bool select = false;            ///< columns are chosen anew from this step's gradients
    bool update = false;            ///< the sum, this step's gradient included, goes to the CPU optimizer
    SelectionCause select_cause{};  ///< where select
    UpdateCause update_cause{};     ///< where update
    std::int64_t steps_in_sum = 1;
  };
  /// The next step.
  [[nodiscard]] Step begin_step();
  /// auto: the masses of the current step, by matrix. A matrix votes when the waiting mass exceeds the
  /// average chosen mass; with int(auto_ratio * matrices) votes the step after this one updates. Formulas
  /// with u = steps since the last such decision:
  ///   average = (average (u-1) + selected) / u / (10 topk), waiting += (all - selected) / (10 (1-topk)).
  void observe(std::span<const GradientMass> masses);
  [[nodiscard]] bool observes() const noexcept { return settings_.update_interval == 0; }
  /// Leaves `chosen` and `unpublished` to the caller.
  [[nodiscard]] ZenFlowProgress save() const;
  /// Throws std::invalid_argument for another number of matrices.
  void restore(const ZenFlowProgress& progress);
  /// Whether the next step chooses columns anew.
  [[nodiscard]] bool selects_next() const noexcept;
  /// Matrices that voted in the last observe(), and how many votes are needed.
  [[nodiscard]] std::int64_t votes() const noexcept { return votes_; }
  [[nodiscard]] std::int64_t votes_needed() const noexcept;

 private:
  ZenFlowSettings settings_;
  std::int64_t step_ = 0;  ///< number of the next step
  std::int64_t in_sum_ = 0;
  std::int64_t since_decision_ = 0;  ///< u
  std::int64_t votes_ = 0;
  bool decided_ = false;  ///< the votes of the last step suffice
  std::vector<double> average_selected_, waiting_;
};

/// Whether a run with `settings` resumed from `progress` needs the chosen columns: the next step does not
/// select them again. Columns refer to the rows that a rank owned, so they fit no other partition.
[[nodiscard]] bool needs_columns(const ZenFlowSettings& settings, const ZenFlowProgress& progress);
/// Error message if a run resumed from `progress` would compute something else; empty if not. `settings`: of
/// the resumed run, nullopt without ZenFlow; `same_layout`: every rank owns the same elements as before.
[[nodiscard]] std::string why_not_continue(const std::optional<ZenFlowSettings>& settings,
                                           const ZenFlowProgress& progress, bool same_layout);

/// How many of `pieces` of a deferred update are done when `step` of the `steps` (from 1) that it overlaps
/// has been queued: evenly distributed, all with the last.
[[nodiscard]] std::int64_t pieces_due(std::int64_t pieces, std::int64_t step, std::int64_t steps) noexcept;

}  // namespace shardscope::plan
