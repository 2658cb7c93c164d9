// Runs training steps under ZeRO stage 0, 1, 2 or 3 on one rank. Parameters and Gradients implement the
// differences between stages; the step itself is written once.
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

/// Whether this rank requests a stop after the step. All ranks take the same decision, so that all stop after
/// the same step.
enum class StopRequest : std::uint8_t { go_on, stop };

struct StepResult {
  std::int64_t step = 0;      ///< from 0
  std::vector<float> losses;  ///< of this rank, by micro-step; mean over the micro-batch, unscaled
  double grad_norm = 0;       ///< of the mean gradient over all ranks, before clipping
  double loss_scale = 1;      ///< the scale used in this step
  double learning_rate = 0;
  std::int64_t tokens = 0;                ///< of this rank, without padding; samples for vector models
  bool skipped = false;                   ///< gradients were not finite and no update was made
  StopRequest stop = StopRequest::go_on;  ///< stop if any rank requested it
};

/// Loss on held-out data.
struct Evaluation {
  std::int64_t step = 0;     ///< the last step before it
  double loss = 0;           ///< mean over the batches of all ranks
  std::int64_t batches = 0;  ///< of this rank
};

class Engine {
 public:
  /// `context` and all it refers to must outlive the engine. Allocates memory, communicates nothing. Throws
  /// std::invalid_argument if the configuration requires something that this engine does not support.
  explicit Engine(const execution::Context& context);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Elements [range) of a parameter as fp32, on the host.
  using FillParam = std::function<void(plan::ParamId, plan::Range, float*)>;
  /// Sets the weights: calls `fill` only for the elements that this rank owns and the frozen ones that it
  /// stores, then sends them to the ranks that need them. Collective. Momentum, variance and step are
  /// unchanged.
  void set_weights(const FillParam& fill);
  /// The same with the values of rank `root`: only its `fill` is called, for whole parameters, which are
  /// broadcast one by one; each rank keeps its part (zero.Init, P2). Collective.
  void broadcast_weights(std::uint32_t root, const FillParam& fill);

  /// Training progress between two steps: the contents of a checkpoint besides the states.
  [[nodiscard]] checkpoint::Progress progress() const;
  /// Passes the states of `slices`, which this rank owns or stores, to `take` in bounded pieces: kind by
  /// kind, the slices concatenated, `at` being the offset of the first element in that sequence. Frozen
  /// slices come last (plan::checkpoint_layout) and have master weights only. Between steps; not collective.
  using TakeStates = std::function<void(base::StateKind, std::int64_t at, std::span<const float>)>;
  void read_states(std::span<const plan::SavedSlice> slices, const TakeStates& take);
  /// Elements [range) of a parameter's state as fp32, on the host.
  using FillState = std::function<void(base::StateKind, plan::ParamId, plan::Range, float*)>;
  /// Resumes from `progress` with the states from `fill`, called only for elements that this rank owns or
  /// stores, for frozen parameters only for the weights. Restores the loss scale if it is dynamic in this run
  /// too, and ZenFlow's state if ZenFlow is on in this run too, with `columns` as chosen; without columns the
  /// first step selects them. Throws std::invalid_argument if they do not match this rank's parameters. Call
  /// before the first step. Collective.
  void resume(const checkpoint::Progress& progress, const std::vector<std::int32_t>& columns,
              const FillState& fill);
  /// ZenFlow's chosen columns on this rank (optim::OptimizerState::chosen_columns), empty without it.
  [[nodiscard]] std::vector<std::int32_t> chosen_columns() const;
  /// The kinds that read_states() passes at present.
  [[nodiscard]] std::vector<base::StateKind> state_kinds() const;

  /// One optimizer step over `accumulation_steps` micro-batches that `next` fills. Collective. Returns when
  /// the update has finished on the compute stream, so that decisions and memory events of the next step,
  /// emitted by the host, do not fall into this one.
  [[nodiscard]] StepResult step(const std::function<void(data::HostBatch&)>& next, StopRequest stop);

  /// Evaluation mode between two steps: the forward of `batches` micro-batches that `next` fills, the same
  /// number on all ranks. Changes no gradient, no state and nothing that the next training step depends on;
  /// in stage 3 evaluation has its own trace. Throws std::logic_error before the first step and
  /// std::invalid_argument for less than one batch. Collective; returns when the loss is known.
  [[nodiscard]] Evaluation evaluate(const std::function<void(data::HostBatch&)>& next, std::int64_t batches);

  /// Passes every parameter, whole and in fp32 (master weights if there are any), to `take` on rank 0, one at
  /// a time, so that at most one is whole. Collective: every rank calls it, `take` runs on rank 0.
  using TakeParam = std::function<void(plan::ParamId, std::span<const float>)>;
  void consolidate(const TakeParam& take);

  /// zero.GatheredParameters: while `use` runs, `params` are whole on every rank, fp32 master weights on the
  /// host. With `modifier`, the values on that rank are broadcast afterwards, and each rank keeps its part;
  /// without, changes are lost. Collective, between two steps; momentum and variance are unchanged. Calls may
  /// be nested if they share no parameter: throws std::logic_error otherwise.
  struct Gathered {
    plan::ParamId id{};
    std::span<float> values;  ///< [elems], row-major
  };
  using UseGathered = std::function<void(std::span<const Gathered>)>;
  void with_gathered(std::span<const plan::ParamId> params, std::optional<std::uint32_t> modifier,
                     const UseGathered& use);

  /// DeepSpeed's `param.all_gather()`: the parameter is whole on every rank, as above, until partition().
  /// step() throws std::logic_error if it is not partitioned again. Collective, between two steps.
  [[nodiscard]] std::span<float> all_gather(plan::ParamId param);
  /// `param.partition(has_been_updated=...)`: the whole parameter is freed. Changes are lost unless
  /// `updated`: then each rank keeps its part of its own values, so all ranks must have made the same
  /// changes. Collective. Throws std::logic_error for a parameter not gathered by all_gather().
  enum class Updated : std::uint8_t { no, yes };
  void partition(plan::ParamId param, Updated updated);
  /// `param.item()`: gathers first. Throws std::invalid_argument, as torch does, unless the parameter has one
  /// element. Collective, between two steps.
  [[nodiscard]] float item(plan::ParamId param);

  /// deepspeed.zero.register_external_parameter and its reverse (P11): in stage 3 `module` fetches and
  /// releases `param` with its own. A read registers a parameter anyway, so this only does it earlier, or
  /// undoes it after the last use. Between two steps, on every rank alike. Throws what plan::FetchScheduler
  /// throws; does nothing in stages 0 to 2.
  void register_external_parameter(plan::ModuleId module, plan::ParamId param);
  void unregister_external_parameter(plan::ModuleId module, plan::ParamId param);

  /// Injects a fault of this rank within a step (plan::FaultKind): its forwards skip a module or swap two, or
  /// it makes one micro-step fewer. Call before that step.
  void rehearse(const plan::Fault& fault);
  /// Waits until the device has finished all queued work; rethrows a stream's failure.
  void synchronize();
  /// Sets the source of name ids for kernel spans (Publisher::name_id); without it kernels have no spans.
  using NameKernel = std::function<std::uint32_t(const std::string&)>;
  void name_kernels(const NameKernel& id_of);
  [[nodiscard]] const plan::Ownership& ownership() const noexcept;
  /// How model states on NVMe are read and written, one text each for the log; empty if there are none.
  [[nodiscard]] std::vector<std::string> describe_swap() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::engine
