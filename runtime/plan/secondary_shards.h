// hpZ: which parameters have a secondary copy, spread over the few ranks of a small group, and which gathers
// read it (docs/zero.md P17 and D6). A parameter is copied when it is released after its forward; gathers of
// the backward then stay inside the group. The copies are freed by an optimizer step that changes the
// weights: those of frozen parameters, and all of them after a skipped step, stay and serve the forward too.
// An evaluation makes none, since no backward would read them. Copies of parameters stored as int8 are int8
// too (zero_quantized_nontrainable_weights).
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan/ids.h"
#include "runtime/plan/model_mode.h"
#include "runtime/plan/model_plan.h"
#include "runtime/plan/quantization.h"
#include "runtime/plan/scheduler.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::plan {

enum class GatherSource : std::uint8_t { primary, secondary };

class SecondaryShards {
 public:
  /// `trainable` by ParamId. Off when hpz_partition_size is 1 or the stage is not 3.
  SecondaryShards(std::vector<bool> trainable, const ZeroConfig& zero);

  [[nodiscard]] bool enabled() const noexcept { return enabled_; }
  /// Root forward of a micro-step, or of a batch of an evaluation.
  void begin_iteration(ModelMode mode = ModelMode::training);
  /// A module is about to run in this direction; it applies to the gathers and prefetches that follow.
  void enter(Direction direction) noexcept { direction_ = direction; }
  /// The source that a gather issued now reads.
  ///
  /// Default: the copy, from the backward on, and once the parameter's forward in this micro-step is over (a
  /// prefetch in the last modules of the forward serves the backward). hpz_secondary_in_forward: the copy
  /// whenever there is one, so from the second micro-step of a window on also in the forward. So does any
  /// parameter that is frozen: its copy holds for good. hpz_prefetch_by_pass: in the backward only, as
  /// Compat::notes (D6): a prefetch in the forward gathers from all ranks.
  [[nodiscard]] GatherSource source(ParamId param) const;
  /// The gathered parameter is about to be freed. Returns true if this rank's part of it must be copied
  /// first.
  [[nodiscard]] bool released(ParamId param);
  [[nodiscard]] bool held(ParamId param) const { return exists_[raw(param)]; }
  /// Frees the copies of weights that changed. Returns their parameters.
  std::vector<ParamId> weights_change(WeightChange change);

 private:
  bool enabled_;
  bool in_forward_;  ///< compat D6
  bool by_pass_;     ///< compat D6 of the notes
  ModelMode mode_ = ModelMode::training;
  Direction direction_ = Direction::forward;
  std::vector<bool> trainable_;     ///< by ParamId
  std::vector<bool> exists_;        ///< by ParamId
  std::vector<bool> forward_done_;  ///< by ParamId: released in the forward of this micro-step
};

/// Elements of one rank's part of the secondary copy: the parameter with its padding over `group` ranks.
[[nodiscard]] std::int64_t secondary_elems(std::int64_t param_elems, std::uint32_t world,
                                           std::uint32_t group);
/// The same for a parameter whose shards are stored as int8 (stored_quantized): the shards it consists of, in
/// their stored groups, so that quantizing the quantized values again changes nothing (in 16 bits).
[[nodiscard]] PackedShard packed_secondary(std::int64_t param_elems, std::uint32_t world,
                                           std::uint32_t group);

}  // namespace shardscope::plan
