// Runs training steps under ZeRO stage 0, 1, 2 or 3 on one rank. What differs between stages is in Parameters
// and Gradients; the step itself is written once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/state_kind.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/data/stream.h"
#include "runtime/execution/context.h"
#include "runtime/plan/checkpoint_layout.h"
#include "runtime/plan/fault.h"
#include "runtime/plan/ownership.h"

namespace shardscope::engine {

/// Whether this rank would like to stop after the step. Asked alike on all ranks and decided together, so
/// that all stop after the same one.
enum class StopRequest : std::uint8_t { go_on, stop };

struct StepResult {
  std::int64_t step = 0;      ///< from 0
  std::vector<float> losses;  ///< of this rank, by micro-step; mean over the micro-batch, unscaled
  double grad_norm = 0;       ///< of the mean gradient over all ranks, before clipping
  double loss_scale = 1;      ///< with which this step was made
  double learning_rate = 0;
  std::int64_t tokens = 0;                ///< of this rank, without padding; samples for vector models
  bool skipped = false;                   ///< gradients were not finite: nothing was updated
  StopRequest stop = StopRequest::go_on;  ///< what all ranks agreed on
};

/// Loss on data that is not trained on.
struct Evaluation {
  std::int64_t step = 0;     ///< the last one made before
  double loss = 0;           ///< mean over the batches of all ranks
  std::int64_t batches = 0;  ///< of this rank
};

class Engine {
 public:
  /// `context` and what it names outlive the engine. Every rank makes its engine at the same time: memory is
  /// taken and nothing is communicated. Throws std::invalid_argument when the configuration asks for
  /// something that this engine does not do.
  explicit Engine(const execution::Context& context);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Elements [range) of a parameter as fp32, on the host.
  using FillParam = std::function<void(plan::ParamId, plan::Range, float*)>;
  /// Sets the weights: asks for the elements this rank owns and the frozen ones it holds and for no others,
  /// then makes them known to the ranks that need them. Collective. Momentum, variance and step stay.
  void set_weights(const FillParam& fill);
  /// The same with the values of rank `root`, whose `fill` alone is asked, for whole parameters: one after
  /// the other is broadcast, and each rank keeps its part (zero.Init, P2). Collective.
  void broadcast_weights(std::uint32_t root, const FillParam& fill);

  /// Where training stands, between two steps: what a checkpoint holds besides the states.
  [[nodiscard]] checkpoint::Progress progress() const;
  /// Hands the states of `slices`, which this rank owns or holds, to `take` in bounded pieces: kind by kind,
  /// the slices in a row, `at` being the first element's place in it. Frozen slices come last (plan::
  /// checkpoint_layout) and are in the row of master weights only. Between steps; not collective.
  using TakeStates = std::function<void(base::StateKind, std::int64_t at, std::span<const float>)>;
  void read_states(std::span<const plan::SavedSlice> slices, const TakeStates& take);
  /// Elements [range) of a parameter's state as fp32, on the host.
  using FillState = std::function<void(base::StateKind, plan::ParamId, plan::Range, float*)>;
  /// Goes on from `progress` with the states that `fill` gives: asks for what this rank owns or holds and for
  /// no more, of frozen parameters for the weights. A loss scale is taken over where it is dynamic here as
  /// well, and where ZenFlow stood where it is on here as well, with `columns` as chosen; without columns
  /// they are chosen anew by the first step. Throws std::invalid_argument when they are not of this rank's
  /// parameters. Before the first step. Collective.
  void resume(const checkpoint::Progress& progress, const std::vector<std::int32_t>& columns,
              const FillState& fill);
  /// ZenFlow's chosen columns on this rank (optim::OptimizerState::chosen_columns), empty without it.
  [[nodiscard]] std::vector<std::int32_t> chosen_columns() const;
  /// What read_states() hands out now.
  [[nodiscard]] std::vector<base::StateKind> state_kinds() const;

  /// One optimizer step over `accumulation_steps` micro-batches that `next` fills. Collective. Returns when
  /// the update is done on the compute stream, so that decisions and memory of the next step, which the host
  /// emits, do not fall into this one.
  [[nodiscard]] StepResult step(const std::function<void(data::HostBatch&)>& next, StopRequest stop);

  /// Evaluation mode between two steps: the forward of `batches` micro-batches that `next` fills, alike on
  /// all ranks. No gradient, no state and nothing that training's next step depends on changes; in stage 3
  /// the modules are fetched by a trace of evaluation's own. Throws std::logic_error before the first step
  /// and std::invalid_argument for less than one batch. Collective; returns when the loss is known.
  [[nodiscard]] Evaluation evaluate(const std::function<void(data::HostBatch&)>& next, std::int64_t batches);

  /// Hands every parameter, whole and in fp32 (master weights where there are any), to `take` on rank 0, one
  /// after the other; at most one is whole at a time. Collective: every rank calls it, `take` runs on rank 0.
  using TakeParam = std::function<void(plan::ParamId, std::span<const float>)>;
  void consolidate(const TakeParam& take);

  /// zero.GatheredParameters: while `use` runs, `params` are whole on every rank, fp32 master weights on the
  /// host. With `modifier`, what that rank leaves in them is sent to all, and each keeps its part; without,
  /// changes are lost. Collective, between two steps; momentum and variance stay. Gatherings may be nested
  /// if they share no parameter: throws std::logic_error otherwise.
  struct Gathered {
    plan::ParamId id{};
    std::span<float> values;  ///< [elems], row-major
  };
  using UseGathered = std::function<void(std::span<const Gathered>)>;
  void with_gathered(std::span<const plan::ParamId> params, std::optional<std::uint32_t> modifier,
                     const UseGathered& use);

  /// `param.all_gather()` of DeepSpeed as a call of its own: the parameter is whole on every rank, as above,
  /// until partition(). The next step needs it partitioned, which it says by a std::logic_error. Collective,
  /// between two steps.
  [[nodiscard]] std::span<float> all_gather(plan::ParamId param);
  /// `param.partition(has_been_updated=...)`: the whole parameter is freed. Changes are lost unless it
  /// `updated`: then each rank keeps its part of what it has itself, so all must have changed it alike.
  /// Collective. Throws std::logic_error for a parameter that all_gather() did not make whole.
  enum class Updated : std::uint8_t { no, yes };
  void partition(plan::ParamId param, Updated updated);
  /// `param.item()`: gathers first. Throws std::invalid_argument, as torch does, unless the parameter has one
  /// element. Collective, between two steps.
  [[nodiscard]] float item(plan::ParamId param);

  /// deepspeed.zero.register_external_parameter and its reverse (P11): in stage 3 `module` fetches and
  /// releases `param` with its own. A parameter read where it is not registered is registered by the read, so
  /// this only says it before, or after its last use. Between two steps, on every rank alike. Throws what
  /// plan::FetchScheduler does; nothing in stages 0 to 2.
  void register_external_parameter(plan::ModuleId module, plan::ParamId param);
  void unregister_external_parameter(plan::ModuleId module, plan::ParamId param);

  /// Of a fault of this rank what lies within a step (plan::FaultKind): its forwards skip a module or run two
  /// in the other order, or it makes one micro-step fewer. For runs that rehearse a hang; before its step.
  void rehearse(const plan::Fault& fault);
  /// Waits until the device has done everything queued; rethrows a stream's failure.
  void synchronize();
  /// Names for kernel spans (Publisher::name_id); without it there are none.
  using NameKernel = std::function<std::uint32_t(const std::string&)>;
  void name_kernels(const NameKernel& id_of);
  [[nodiscard]] const plan::Ownership& ownership() const noexcept;
  /// How model states on NVMe are read and written, one text each for the log; empty where none are there.
  [[nodiscard]] std::vector<std::string> describe_swap() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::engine
