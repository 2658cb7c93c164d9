// One rank's training step, of a micro-steps:
//
//   for i in 0 .. a-1:                                  a gate before each, where a user can pause
//     x, y = next()                                     [B,T] int32 tokens, or [B,width] fp32 vectors; B and
//                                                       T may differ by micro-step and by rank
//     loss[i] = forward(x, y)                           the mean over the micro-batch's own tokens; stage 3
//                                                       gathers a module before it, frees it after
//     backward(loss_scale / a)                          gradients join buckets, which are reduced as they
//                                                       fill (stages 0 and 1: in the last micro-step)
//   wait for gathers and reductions                     the compute stream; gathered parameters are freed
//   measure: losses, sum of squares, finite, stop       over all ranks; the host waits
//   if not skipped: AdamW on each sub-group             [owned_elems], on the device, the host or NVMe
//   publish parameters                                  all-gather (1, 2), only persistent ones (3)
//   wait for the compute stream                         the host: before it queues the next step
//
// Between two steps an evaluation may run the forward alone (evaluate): without gates of steps or
// micro-steps, in a phase of its own, its losses read once at the end.
//
// Everything else is queued: within a step the host runs ahead of the streams (limited by HostThrottle),
// and events order them. Gradients are means: over ranks by the reduction, over micro-steps by the loss
// scale.
#include "runtime/engine/engine.h"

#include <array>
#include <chrono>
#include <cmath>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "instrumentation/nvtx_ranges.h"
#include "runtime/engine/counted_gradients.h"
#include "runtime/engine/gathered_parameters.h"
#include "runtime/engine/hooks.h"
#include "runtime/engine/input_staging.h"
#include "runtime/engine/loss_scaler.h"
#include "runtime/engine/loss_values.h"
#include "runtime/engine/optimizer.h"
#include "runtime/engine/outside_memory.h"
#include "runtime/engine/weights.h"
#include "runtime/execution/events.h"
#include "runtime/optim/gradient_norm.h"
#include "runtime/optim/optimizer_state.h"
#include "runtime/plan/gradient_buckets.h"
#include "runtime/plan/loss_scale.h"

namespace shardscope::engine {
using execution::Context;
using execution::emit_end_on;
using execution::emit_host;
using execution::emit_on;
using execution::EventPool;

namespace {

// In elements: a shard begins at a multiple of kShardAlignmentBytes, whatever its type.
std::int64_t shard_alignment(const Context& context) {
  return plan::kShardAlignmentBytes / static_cast<std::int64_t>(context.element_bytes());
}

/// The order in which the gradients of a linear layer become ready, as in DeepSpeed.
model::GradOrder linear_grads(const plan::ZeroConfig& zero) {
  return zero.stage == 3 && zero.memory_efficient_linear ? model::GradOrder::weight_first
                                                         : model::GradOrder::bias_first;
}

}  // namespace

class Engine::Impl {
 public:
  // In the order of the members: each uses those above it, and none communicates here.
  explicit Impl(const Context& context)
      : context_(context),
        ownership_(context.model, context.config.zero, context.world(), shard_alignment(context)),
        events_(context.device),
        parameters_(ownership_.stage() == 3 ? make_partitioned_parameters(context_, events_, ownership_)
                                            : make_flat_parameters(context_, events_, ownership_)),
        gradients_(plan::gradients_are_apart(context.config.zero)
                       ? make_sharded_gradients(context_, events_, ownership_)
                       : make_resident_gradients(context_, events_, ownership_)),
        optimizer_(make_optimizer(context_, *parameters_, *gradients_, ownership_)),
        states_(context_, ownership_, *optimizer_, *parameters_),
        gathered_(context_, ownership_, states_),
        counted_(context_, *gradients_, ownership_),
        hooks_(context_, events_, *parameters_, *gradients_),
        staging_(context.device, events_),
        executor_(context.model, context.device, context.type(), hooks_, linear_grads(context.config.zero)),
        scaler_(make_scaler(context.config)),
        losses_(context.device, static_cast<std::size_t>(accumulation_steps())) {}
  ~Impl() {
    // No work may run on memory that is about to be freed. Each stream separately: if one failed, the others
    // must still be waited for.
    for (device::Stream* stream : context_.device.started_streams()) {
      try {
        stream->synchronize();
      } catch (...) {  // NOLINT(bugprone-empty-catch): reported where the step waited for it
      }
    }
  }

  [[nodiscard]] Parameters& parameters() noexcept { return *parameters_; }

  void set_weights(const FillParam& fill) {
    fill_owned(
        context_, ownership_, states_, {{base::StateKind::master}},
        [&](base::StateKind, plan::ParamId param, plan::Range range, float* to) { fill(param, range, to); });
    publish();
  }

  void broadcast_weights(std::uint32_t root, const FillParam& fill) {
    broadcast_owned(context_, ownership_, states_, root, fill);
    publish();
  }

  [[nodiscard]] checkpoint::Progress progress() const {
    checkpoint::Progress progress{step_, micro_step_, updates_, std::nullopt, optimizer_->zenflow()};
    // A static scale is a setting, not progress.
    if (scaler_.dynamic()) progress.loss_scaler = scaler_.save();
    return progress;
  }

  void resume(const checkpoint::Progress& progress, const std::vector<std::int32_t>& columns,
              const FillState& fill) {
    // Before the states: later writes count as those of a checkpoint (continue_zenflow()).
    if (progress.zenflow && context_.config.zero.zenflow) {
      optimizer_->continue_zenflow(*progress.zenflow, columns);
    }
    fill_owned(context_, ownership_, states_, optimizer_->kinds(), fill);
    // Not `initial`: DeepSpeed gathers persistent parameters after loading a checkpoint, as after a step.
    published_ = Update::replaced;
    publish();
    applied_not_finite_ = false;  // the weights are those of the checkpoint
    // After publish(), which is not a step.
    step_ = progress.step;
    micro_step_ = progress.micro_step;
    updates_ = progress.updates;
    if (scaler_.dynamic() && progress.loss_scaler) scaler_.restore(*progress.loss_scaler);
  }

  void read_states(std::span<const plan::SavedSlice> slices, const TakeStates& take) {
    engine::read_states(context_, states_, slices, take);
  }
  [[nodiscard]] std::vector<std::int32_t> chosen_columns() const { return optimizer_->chosen_columns(); }
  [[nodiscard]] std::vector<base::StateKind> state_kinds() const { return optimizer_->kinds(); }

  StepResult step(const std::function<void(data::HostBatch&)>& next, StopRequest stop) {
    // Before anything of the step, so that an exception changes nothing.
    gathered_.check_partitioned();
    StepResult result;
    result.step = step_;
    const auto step_id = static_cast<std::uint32_t>(step_);
    // Before the timestamp: time spent at the gate is not part of the step.
    context_.gates.pass(ev::GateKind::step, step_id);
    emit_time<ev::EventKind::step_begin>({.step = step_id});
    // Work of the step on other streams begins after its timestamp: a first gather that ran earlier would
    // belong to no step.
    for (device::Stream* stream :
         {&context_.device.gather(), &context_.device.reduce(), &context_.device.copy()}) {
      events_.order(compute(), *stream);
    }
    // Read once: the scale that gradients are made with (D8), even if an overflow changes the scaler
    // afterwards.
    result.loss_scale = scaler_.scale();
    emit_host<ev::EventKind::loss_scale>({.step = step_id,
                                          .hysteresis = static_cast<std::uint32_t>(scaler_.hysteresis()),
                                          .value = result.loss_scale});
    // One fewer with an injected fault: the last that this rank makes ends its window.
    const std::int64_t micro_steps = accumulation_steps() - (step_ == short_step_ ? 1 : 0);
    for (std::int64_t i = 0; i < micro_steps; ++i) {
      micro_step({i, micro_steps}, result.loss_scale, next);
      result.tokens += tokens_;
    }
    emit_host<ev::EventKind::tokens>({.step = step_id, .tokens = result.tokens});
    update(result, stop);
    emit_time<ev::EventKind::step_end>(
        {.step = step_id, .skipped = result.skipped, .tokens = tokens_of_all_});
    // The host begins no step before the previous one has finished.
    wait_for_compute();
    outside_.sample(context_.device, std::chrono::steady_clock::now());
    ++step_;
    return result;
  }

  Evaluation evaluate(const std::function<void(data::HostBatch&)>& next, std::int64_t batches) {
    if (step_ == 0) throw std::logic_error("evaluate: no step has been made whose weights it could measure");
    if (batches < 1) {
      throw std::invalid_argument("evaluate: " + std::to_string(batches) +
                                  " batches; the mean loss needs at least one");
    }
    // The last step, not the next one: an evaluation measures its weights.
    const std::int64_t made = step_ - 1;
    const auto step_id = static_cast<std::uint32_t>(made);
    LossValues losses(context_.device, static_cast<std::size_t>(batches));
    Evaluation result{made, 0, batches};
    in_phase(ev::Phase::evaluation, step_id, ev::kNoId, [&] {
      // As in a step: gathers of the evaluation begin inside it.
      events_.order(compute(), context_.device.gather());
      events_.order(compute(), context_.device.copy());
      for (std::int64_t i = 0; i < batches; ++i) {
        const model::Batch batch = load(next, ev::kNoId, step_id);
        hooks_.begin_evaluation(step_id);
        executor_.evaluate(batch, i, losses.at(static_cast<std::size_t>(i)));
        staging_.done();
      }
      losses.queue_copy();
      wait_for_compute();
      const std::span values = losses.values();
      // In double, over batches and then over ranks, which all have the same number.
      std::array<double, 1> sum{std::accumulate(values.begin(), values.end(), 0.0)};
      context_.control_comm.all_reduce_host(sum);
      result.loss = sum[0] / (static_cast<double>(batches) * context_.world());
      emit_host<ev::EventKind::eval_loss>(
          {.step = step_id, .batches = static_cast<std::uint32_t>(batches), .value = result.loss});
    });
    // After the phase's end, so that its timestamp is known when the next step begins.
    wait_for_compute();
    return result;
  }

  void consolidate(const TakeParam& take) { collect_weights(context_, ownership_, states_, take); }
  // Published only if master weights may have changed, since it costs a gather and a wait on every rank.
  void with_gathered(std::span<const plan::ParamId> params, std::optional<std::uint32_t> modifier,
                     const UseGathered& use) {
    if (gathered_.with(params, modifier, use)) publish();
  }
  [[nodiscard]] std::span<float> all_gather(plan::ParamId param) { return gathered_.gather(param); }
  void partition(plan::ParamId param, Updated updated) {
    if (gathered_.partition(param, updated == Updated::yes)) publish();
  }
  [[nodiscard]] float item(plan::ParamId param) { return gathered_.item(param); }
  void rehearse(const plan::Fault& fault) {
    if (fault.kind == plan::FaultKind::fewer_micro_steps) short_step_ = fault.step;
    const auto injected = plan::executor_fault_of(fault, context_.model, accumulation_steps());
    if (injected) executor_.inject_fault(*injected);
  }
  void synchronize() { context_.device.synchronize(); }
  void name_kernels(const NameKernel& id_of) { executor_.name_kernels(id_of); }
  [[nodiscard]] const plan::Ownership& ownership() const noexcept { return ownership_; }
  [[nodiscard]] std::vector<std::string> describe_swap() const {
    std::vector<std::string> texts;
    for (std::string text : {optimizer_->describe_swap(), parameters_->describe_swap()}) {
      if (!text.empty()) texts.push_back(std::move(text));
    }
    return texts;
  }

 private:
  [[nodiscard]] device::Stream& compute() { return context_.device.compute(); }
  /// Master weights were set by the caller: casts them to parameters and sends these to every rank that needs
  /// them.
  void publish() {
    parameters_->before_update();
    optimizer_->publish_params();
    parameters_->after_update(published_);
    context_.device.synchronize();
  }
  [[nodiscard]] std::int64_t accumulation_steps() const { return context_.config.batch.accumulation_steps; }
  /// See [Note: time of a step].
  template <ev::EventKind kind>
  void emit_time(const ev::Fields<kind>& fields) {
    emit_on<kind>(compute(), ev::StreamId::host, fields);
  }

  void wait_for_compute() {
    std::unique_ptr<device::Event> reached = events_.take();
    compute().record(*reached);
    reached->host_wait();
    events_.give_back(std::move(reached));
  }

  /// The next micro-batch, on the device.
  [[nodiscard]] model::Batch load(const std::function<void(data::HostBatch&)>& next, std::uint32_t micro,
                                  std::uint32_t step_id) {
    const ev::Fields<ev::EventKind::data_wait_begin> waits{.micro_step = micro, .step = step_id};
    emit_on<ev::EventKind::data_wait_begin>(compute(), waits);
    next(batch_);
    const model::Batch batch = staging_.stage(batch_);
    emit_end_on<ev::EventKind::data_wait_begin>(compute(), waits);
    tokens_ = batch.B * batch.T - batch.ignored;
    emit_time<ev::EventKind::micro_batch>({.micro_step = micro,
                                           .step = step_id,
                                           .samples = static_cast<std::uint32_t>(batch.B),
                                           .tokens = tokens_,
                                           .padding = batch.ignored});
    return batch;
  }

  void micro_step(Window window, double loss_scale, const std::function<void(data::HostBatch&)>& next) {
    const auto micro = static_cast<std::uint32_t>(micro_step_);
    const auto step_id = static_cast<std::uint32_t>(step_);
    context_.gates.pass(ev::GateKind::micro_step, micro);
    emit_time<ev::EventKind::micro_step_begin>({.micro_step = micro, .step = step_id});
    const model::Batch batch = load(next, micro, step_id);
    hooks_.begin_micro_step(micro, step_id);
    // The mean over micro-steps is part of the loss scale, the mean over ranks part of the reduction.
    const auto scale = static_cast<float>(loss_scale / static_cast<double>(window.count));
    in_phase(ev::Phase::forward, step_id, micro, [&] {
      const ev::nvtx::FunctionRange range(ev::nvtx::Function::forward);
      executor_.forward(batch, micro_step_, scale, losses_.at(window.index));
    });
    in_phase(ev::Phase::backward, step_id, micro, [&] {
      const ev::nvtx::FunctionRange range(ev::nvtx::Function::backward);
      // In this order: leftover parameters are freed before the last buckets, which need none of them, are
      // flushed.
      gradients_->begin_backward(window);
      executor_.backward();
      hooks_.end_backward();
      parameters_->end_backward();
      gradients_->end_backward();
    });
    // After the backward, the last reader of the batch.
    staging_.done();
    emit_time<ev::EventKind::micro_step_end>({.micro_step = micro, .step = step_id});
    ++micro_step_;
  }

  template <typename Work>
  void in_phase(ev::Phase phase, std::uint32_t step, std::uint32_t micro, const Work& work) {
    const ev::Fields<ev::EventKind::phase_begin> fields{.phase = phase, .step = step, .micro_step = micro};
    emit_on<ev::EventKind::phase_begin>(compute(), fields);
    work();
    emit_end_on<ev::EventKind::phase_begin>(compute(), fields);
  }

  void update(StepResult& result, StopRequest stop) {
    const ev::nvtx::FunctionRange range(ev::nvtx::Function::step);
    const auto step_id = static_cast<std::uint32_t>(step_);
    context_.gates.pass(ev::GateKind::optimizer, step_id);
    // Gathers first, reductions next: the compute stream has then waited for all work that the step queued on
    // other streams.
    parameters_->before_update();
    gradients_->drain();
    // After drain(): pieces still being reduced must not be moved.
    gradients_->join_owned();
    in_phase(ev::Phase::optimizer, step_id, ev::kNoId, [&] {
      // The only place where the host waits for values that it has to decide on.
      const bool finite = measure(result, stop);
      result.skipped = !finite && skips_overflow();
      emit_host<ev::EventKind::overflow>({.any_rank = !finite, .step = step_id});
      result.learning_rate = context_.config.learning_rate(updates_);
      emit_host<ev::EventKind::learning_rate>({.step = step_id, .value = result.learning_rate});
      // After skips_overflow(), before the norm: returns the divisors of the norm and the gradients.
      const plan::LossScaler::Step scaling = scaler_.update(!finite);
      result.grad_norm = finite ? std::sqrt(sum_of_squares_) / scaling.norm_by : std::nan("");
      emit_host<ev::EventKind::grad_norm>({.step = step_id, .value = result.grad_norm});
      if (!result.skipped) apply(step_id, scaling.unscale_by);
    });
    // Also for a skipped step: frees memory that the optimizer would have used.
    gradients_->end_step(step_id);
    // Learning rate and bias correction count updates, not steps.
    if (!result.skipped) ++updates_;
    parameters_->after_update(result.skipped ? Update::skipped : Update::applied);
    published_ = Update::replaced;
  }

  /// Sum of squares, finiteness, stop request and losses, with one host wait. Returns whether all ranks are
  /// finite.
  [[nodiscard]] bool measure(StepResult& result, StopRequest stop) {
    const ev::nvtx::FunctionRange range(ev::nvtx::Function::overflow_check);
    counted_.queue();
    // After the norm on the same stream: one wait for both.
    losses_.queue_copy();
    wait_for_compute();
    const optim::GradientNorm::Local local = counted_.read();
    if (!local.finite && !applied_not_finite_) counted_.name_not_finite(static_cast<std::uint32_t>(step_));

    const std::span losses = losses_.values();
    result.losses.assign(losses.begin(), losses.end());
    for (std::size_t i = 0; i < losses.size(); ++i) {
      const std::int64_t micro = micro_step_ - accumulation_steps() + static_cast<std::int64_t>(i);
      emit_host<ev::EventKind::loss>({.step = static_cast<std::uint32_t>(step_),
                                      .micro_step = static_cast<std::uint32_t>(micro),
                                      .value = static_cast<double>(losses[i])});
    }

    // Ranks may have different numbers of tokens; a double holds their sum exactly. [sum of squares,
    // non-finite ranks, ranks that request a stop, tokens]: one collective for all.
    std::array<double, 4> sums{local.sum_of_squares, local.finite ? 0.0 : 1.0,
                               stop == StopRequest::stop ? 1.0 : 0.0, static_cast<double>(result.tokens)};
    context_.control_comm.all_reduce_host(sums);
    std::array<std::uint64_t, 2> any{sums[1] != 0.0, sums[2] != 0.0};
    // As in DeepSpeed, model-parallel peers all make their parts of an update, or none does.
    if (context_.peers != nullptr) context_.peers->max_host(any);
    const bool finite = any[0] == 0;
    if (any[1] != 0) result.stop = StopRequest::stop;
    applied_not_finite_ = !finite && !skips_overflow();
    sum_of_squares_ = sums[0];
    tokens_of_all_ = static_cast<std::int64_t>(sums[3]);
    return finite;
  }

  [[nodiscard]] bool skips_overflow() const {
    const config::TrainingConfig& training = context_.config;
    return plan::skips_overflow({.stage = ownership_.stage(),
                                 .fp16 = training.fp16.enabled,
                                 .bf16_checked = training.bf16.enabled && training.bf16.check_grad_overflow,
                                 .stage3_skips_fp16_only = training.zero.compat.stage3_skips_fp16_only});
  }

  void apply(std::uint32_t step_id, double unscale_by) {
    const optim::Clipping clipping =
        optim::clip(sum_of_squares_, unscale_by, context_.config.gradient_clipping);
    if (context_.config.gradient_clipping > 0) {
      emit_host<ev::EventKind::clip_factor>({.step = step_id, .value = clipping.clip_factor});
    }
    optimizer_->begin_update();
    const bool copies = plan::copies_gradients_at_step(context_.config.zero);
    const auto groups = static_cast<std::uint32_t>(ownership_.sub_groups().size());
    for (std::uint32_t group = 0; group < groups; ++group) {
      if (copies) {
        const ev::nvtx::FunctionRange range(ev::nvtx::Function::prepare_sub_group);
        optimizer_->copy_gradients(group, gradients_->owned().device);
        // Copies of all sub-groups are queued by now.
        if (group + 1 == groups) gradients_->release_owned();
      }
      kernels::AdamW settings = adamw_of(context_.config, ownership_.param_group_of()[group], updates_);
      settings.grad_scale = static_cast<float>(clipping.factor);
      optimizer_->update(group, step_id, settings);
    }
    optimizer_->finish_update();
  }

  const Context context_;
  plan::Ownership ownership_;
  EventPool events_;
  OutsideMemory outside_;
  std::unique_ptr<Parameters> parameters_;
  std::unique_ptr<Gradients> gradients_;
  std::unique_ptr<optim::OptimizerState> optimizer_;
  HeldStates states_;
  GatheredParameters gathered_;
  CountedGradients counted_;
  EngineHooks hooks_;
  InputStaging staging_;
  model::Executor executor_;
  plan::LossScaler scaler_;
  LossValues losses_;  ///< one for each micro-step
  data::HostBatch batch_;
  std::int64_t tokens_ = 0;         ///< of batch_, without padding
  std::int64_t tokens_of_all_ = 0;  ///< in the last step, over all ranks
  double sum_of_squares_ = 0;       ///< of the scaled gradients, over all ranks
  /// A non-finite step was applied: non-finite gradients of later steps follow from it and are not
  /// attributed.
  bool applied_not_finite_ = false;
  std::int64_t step_ = 0;
  std::int64_t micro_step_ = 0;
  std::int64_t short_step_ =
      -1;                     ///< the step that an injected fault makes one micro-step shorter; below 0: none
  std::int64_t updates_ = 0;  ///< steps that were not skipped
  Update published_ = Update::initial;  ///< kind of publish(), until a step or a checkpoint
};

Engine::Engine(const Context& context) : impl_(std::make_unique<Impl>(context)) {}
Engine::~Engine() = default;
void Engine::set_weights(const FillParam& fill) { impl_->set_weights(fill); }
void Engine::broadcast_weights(std::uint32_t root, const FillParam& fill) {
  impl_->broadcast_weights(root, fill);
}
checkpoint::Progress Engine::progress() const { return impl_->progress(); }
void Engine::resume(const checkpoint::Progress& progress, const std::vector<std::int32_t>& columns,
                    const FillState& fill) {
  impl_->resume(progress, columns, fill);
}
std::vector<std::int32_t> Engine::chosen_columns() const { return impl_->chosen_columns(); }
std::vector<base::StateKind> Engine::state_kinds() const { return impl_->state_kinds(); }
void Engine::read_states(std::span<const plan::SavedSlice> slices, const TakeStates& take) {
  impl_->read_states(slices, take);
}
StepResult Engine::step(const std::function<void(data::HostBatch&)>& next, StopRequest stop) {
  return impl_->step(next, stop);
}
Evaluation Engine::evaluate(const std::function<void(data::HostBatch&)>& next, std::int64_t batches) {
  return impl_->evaluate(next, batches);
}
void Engine::consolidate(const TakeParam& take) { impl_->consolidate(take); }
void Engine::with_gathered(std::span<const plan::ParamId> params, std::optional<std::uint32_t> modifier,
                           const UseGathered& use) {
  impl_->with_gathered(params, modifier, use);
}
std::span<float> Engine::all_gather(plan::ParamId param) { return impl_->all_gather(param); }
void Engine::partition(plan::ParamId param, Updated updated) { impl_->partition(param, updated); }
float Engine::item(plan::ParamId param) { return impl_->item(param); }
void Engine::register_external_parameter(plan::ModuleId module, plan::ParamId param) {
  impl_->parameters().register_external(param, module);
}
void Engine::unregister_external_parameter(plan::ModuleId module, plan::ParamId param) {
  impl_->parameters().unregister_external(param, module);
}
void Engine::rehearse(const plan::Fault& fault) { impl_->rehearse(fault); }
void Engine::synchronize() { impl_->synchronize(); }
void Engine::name_kernels(const NameKernel& id_of) { impl_->name_kernels(id_of); }
const plan::Ownership& Engine::ownership() const noexcept { return impl_->ownership(); }
std::vector<std::string> Engine::describe_swap() const { return impl_->describe_swap(); }

}  // namespace shardscope::engine
