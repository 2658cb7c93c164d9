// Stage 3: the engine's side of plan::FetchScheduler. The scheduler decides; this class emits each decision
// and passes it to GatherExecutor, which manages memory and stream waits.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "instrumentation/nvtx_ranges.h"
#include "runtime/engine/gather_executor.h"
#include "runtime/engine/gather_path.h"
#include "runtime/engine/parameters.h"
#include "runtime/engine/stored_shards.h"
#include "runtime/engine/trace_check.h"
#include "runtime/execution/events.h"
#include "runtime/offload/shard_store.h"
#include "runtime/plan/fetch_counters.h"
#include "runtime/plan/offload.h"
#include "runtime/plan/quantization.h"
#include "runtime/plan/scheduler.h"
#include "runtime/plan/scheduler_compat.h"
#include "runtime/plan/scheduler_config.h"
#include "runtime/plan/trace_warning.h"

namespace shardscope::engine {
using execution::Context;
using execution::emit_host;
using execution::emit_on;
using execution::EventPool;

namespace {

using plan::ParamId;
using plan::ParamStatus;

/// Where shards are kept (P6), in which form, and the host buffers of those on NVMe.
struct Placement {
  std::vector<plan::ShardPlace> places;
  std::vector<bool> quantized;  ///< by ParamId
  plan::SwapBuffers buffers;
};

// Depends on sizes and settings only, so that every rank decides alike.
Placement make_placement(const Context& context, const plan::Ownership& ownership) {
  const plan::ZeroConfig& zero = context.config.zero;
  std::vector<std::int64_t> elems;
  for (const plan::ParamPlan& param : context.model.params) elems.push_back(param.elems);
  const std::vector<bool> persistent =
      plan::persistent_params(elems, zero.param_persistence_threshold, zero.model_persistence_threshold);
  Placement placement;
  placement.places = plan::place_shards(ownership.shards(), zero, context.element_bytes(), persistent);
  placement.quantized =
      plan::quantized_shards(elems, plan::trainable_params(context.model), zero, ownership.shard_world(),
                             static_cast<std::int64_t>(context.element_bytes()));
  placement.buffers = plan::plan_swap_buffers(placement.places, ownership.shards(), zero.offload_param);
  return placement;
}

// The scheduler has to know which shards are on NVMe: it stops a prefetch at them (C8) and counts buffers
// (C12).
plan::SchedulerConfig scheduler_config(const plan::ZeroConfig& zero, const Placement& placement) {
  plan::SchedulerConfig config = plan::make_scheduler_config(zero);
  for (const plan::ShardPlace place : placement.places) {
    config.on_nvme.push_back(place == plan::ShardPlace::nvme);
  }
  config.swap_buffers = placement.buffers.count;
  return config;
}

std::unique_ptr<offload::ShardStore> make_shards(const Context& context, const plan::Ownership& ownership,
                                                 const Placement& placement) {
  const plan::ZeroConfig& zero = context.config.zero;
  // All on the device: one buffer, and nothing to load.
  if (zero.offload_param.device == plan::OffloadDevice::none) {
    return offload::make_device_shards(context.device, context.type(), ownership.shards(),
                                       placement.quantized);
  }
  return offload::make_placed_shards(context.device, context.type(), ownership.shards(), placement.places,
                                     placement.quantized, placement.buffers, zero);
}

plan::FetchCounters make_counters(const Context& context, const plan::Ownership& ownership) {
  std::vector<std::int64_t> elems, shard_elems;
  for (const plan::ParamPlan& param : context.model.params) elems.push_back(param.elems);
  for (const plan::ParamPartition& shard : ownership.shards().partitions) {
    shard_elems.push_back(shard.shard_elems);
  }
  return {std::move(elems), std::move(shard_elems)};
}

/// A recomputation is part of the backward.
plan::Direction inside(ev::Pass pass) noexcept {
  return pass == ev::Pass::forward ? plan::Direction::forward : plan::Direction::backward;
}

class PartitionedParameters final : public Parameters {
 public:
  PartitionedParameters(const Context& context, EventPool& events, const plan::Ownership& ownership)
      : context_(context),
        events_(events),
        ownership_(ownership),
        placement_(make_placement(context, ownership)),
        scheduler_(context.model, context.world(), scheduler_config(context.config.zero, placement_)),
        counters_(make_counters(context, ownership)),
        path_(context, ownership, placement_.quantized),
        shards_(make_shards(context, ownership, placement_)),
        stored_shards_(context, ownership, *shards_),
        gathers_(context, events, ownership, scheduler_, path_, *shards_) {
    // The first gather waits for the work that the members above queued on the compute stream.
    events_.order(context_.device.compute(), context_.device.gather());
  }

  void begin_iteration(plan::ModelMode model_mode, std::uint32_t micro_step, std::uint32_t step) override {
    model_mode_ = model_mode;
    micro_step_ = micro_step;
    step_ = step;
    // The trace mode for `model_mode`: evaluation has its own trace (C17).
    const plan::TraceMode before = scheduler_.mode(model_mode);
    const plan::TraceMode mode = scheduler_.begin_iteration(model_mode);
    const plan::Drain& drain = scheduler_.drained();
    // Gathers that the previous iteration left in flight (C4): waited for before they are freed, since a
    // collective still writes to them.
    gathers_.wait_for(drain.wait_for, plan::kNone<plan::ModuleId>);
    gathers_.free(drain.released, plan::kNone<plan::ModuleId>, ev::StatusCause::release,
                  scheduler_.available_elems());
    path_.begin_iteration(model_mode);
    // C3: the trace was recorded in the iteration that has just ended, on every rank. Ranks with different
    // orders would issue different collectives and deadlock.
    if (before == plan::TraceMode::record) {
      check_same_trace(scheduler_, context_.model, context_.control_comm);
    }
    // A separate event kind, so that an evaluation does not appear to change training's trace.
    if (model_mode == plan::ModelMode::evaluation) {
      emit_host<ev::EventKind::eval_trace_mode>({.mode = mode, .step = step});
    } else {
      emit_host<ev::EventKind::trace_mode>({.mode = mode, .micro_step = micro_step, .step = step});
    }
  }

  void acquire(plan::ModuleId module, ev::Pass pass) override {
    const ev::nvtx::FunctionRange range(ev::nvtx::Function::fetch);
    // Before the gathers are issued: the pass decides which copies they read (D6).
    path_.enter(inside(pass));
    const plan::FetchPlan plan = pass == ev::Pass::recompute ? scheduler_.fetch_recomputed(module)
                                                             : scheduler_.fetch(module, inside(pass));
    // Counters are per micro-step: fetches of an evaluation would count to the next one.
    if (model_mode_ == plan::ModelMode::training) count(plan, pass);
    execute(plan, module, ev::StatusCause::fetch);
  }
  // Not counted: C16 counts the coordinator's fetches only.
  void acquire_external(ParamId param, plan::ModuleId module) override {
    execute(scheduler_.fetch_external(param, module), module, ev::StatusCause::external);
  }

  void return_param(ParamId param, plan::ModuleId module, std::span<const plan::ModuleId> around) override {
    const plan::ReturnPlan plan = scheduler_.return_param(param, module, around);
    // No module around it could use it.
    if (plan.holder == plan::kNone<plan::ModuleId>) return;
    emit_host<ev::EventKind::fetch_decision>({.stop = plan.fetch.stop,
                                              .module = plan::raw(plan.holder),
                                              .gather = plan::raw(plan.fetch.gather.id),
                                              .trace_step = static_cast<std::uint32_t>(plan.fetch.trace_step),
                                              .prefetched_elems = plan::raw(param),
                                              .available_elems = plan.fetch.available_elems});
    // No prefetch and no limit: DeepSpeed gathers returned parameters outside its coordinator.
    gathers_.issue(plan.fetch.gather, plan.holder, ev::StatusCause::external, plan.fetch.available_elems);
    gathers_.wait_for(plan.fetch.wait_for, plan.holder);
    gathers_.announce(plan.fetch.completed, plan.holder, plan.fetch.available_elems);
    if (plan.moved) emit_external(param, plan.holder);
  }

  void register_external(ParamId param, plan::ModuleId module) override {
    scheduler_.register_external(param, module);
    emit_external(param, module);
  }
  // kNone: it is no longer external to `module`.
  void unregister_external(ParamId param, plan::ModuleId module) override {
    scheduler_.unregister_external(param, module);
    emit_external(param, plan::kNone<plan::ModuleId>);
  }

  void release(plan::ModuleId module, ev::Pass pass) override {
    const ev::nvtx::FunctionRange range(ev::nvtx::Function::release);
    const plan::ReleasePlan plan = pass == ev::Pass::recompute ? scheduler_.release_recomputed(module)
                                                               : scheduler_.release(module, inside(pass));
    // The pass decides whether a freed parameter leaves a secondary copy (D6).
    path_.enter(inside(pass));
    for (const plan::Kept& kept : plan.kept) {
      emit_host<ev::EventKind::release_kept>({.reason = kept.reason,
                                              .module = plan::raw(module),
                                              .param = plan::raw(kept.param),
                                              .elems = context_.elems_of(kept.param)});
    }
    gathers_.free(plan.released, module, ev::StatusCause::release, plan.available_elems);
  }

  void end_backward() override {
    const ev::nvtx::FunctionRange range(ev::nvtx::Function::release_all);
    // Modules without a post-backward (P12) still hold their parameters.
    const std::vector<ParamId> released = scheduler_.release_leftovers();
    gathers_.free(released, plan::kNone<plan::ModuleId>, ev::StatusCause::release,
                  scheduler_.available_elems());
    // At the end of each backward: counters are per micro-step.
    emit_counters();
  }

  void before_update() override {
    // A frozen shard set between steps must be quantized before it is gathered again.
    stored_shards_.finish();
    // A collective that still reads shards would see half of the update.
    gathers_.wait_for(scheduler_.in_flight_gathers(), plan::kNone<plan::ModuleId>);
    const std::vector<ParamId> released = scheduler_.begin_update();
    gathers_.free(released, plan::kNone<plan::ModuleId>, ev::StatusCause::partition,
                  scheduler_.available_elems());
    // After the last gather: shards read ahead from NVMe are about to be outdated.
    shards_->forget();
  }

  void after_update(Update update) override {
    const plan::WeightChange change = weight_change(update);
    // Gathered parameters whose weights changed have the old values.
    const std::vector<ParamId> outdated = scheduler_.end_update(change);
    gathers_.free(outdated, plan::kNone<plan::ModuleId>, ev::StatusCause::partition,
                  scheduler_.available_elems());
    for (const ParamId param : path_.weights_change(change)) {
      gathers_.emit_status(context_.device.compute(), param, plan::kNone<plan::ModuleId>,
                           ParamStatus::not_available, ev::StatusCause::partition,
                           scheduler_.available_elems());
    }
    // Peers read the shards from the gather stream.
    events_.order(context_.device.compute(), context_.device.gather());
    const plan::SchedulerCompat compat(context_.config.zero.compat.scheduler);
    // DeepSpeed gathers persistent parameters after an update; otherwise their first use does.
    if (compat.gathers_persistent_only_after_updates() &&
        (update == Update::initial || update == Update::skipped))
      return;
    const plan::Gather gather = scheduler_.gather_persistent();
    if (gather.id == plan::kNone<plan::GatherId>) return;
    device::Stream& stream = context_.device.gather();
    emit_on<ev::EventKind::phase_begin>(stream, {.phase = ev::Phase::gather});
    gathers_.issue(gather, plan::kNone<plan::ModuleId>, ev::StatusCause::persistent,
                   scheduler_.available_elems());
    emit_on<ev::EventKind::phase_end>(stream, {.phase = ev::Phase::gather});
    // Here, not at the first use: the parameters count as available from now on.
    gathers_.wait_for({gather.id}, plan::kNone<plan::ModuleId>);
    gathers_.announce(gather.params, plan::kNone<plan::ModuleId>, scheduler_.available_elems());
  }

  [[nodiscard]] kernels::ConstPtr get(ParamId param) const override {
    const void* data = gathers_.data(param);
    // A wrong decision is an error here, instead of a kernel that reads freed memory.
    if (data == nullptr) {
      throw std::logic_error("parameter " + context_.model.params[plan::raw(param)].name +
                             " is used while it is partitioned: its module was not fetched");
    }
    return {data, context_.type()};
  }
  [[nodiscard]] std::string describe_swap() const override { return shards_->describe_swap(); }
  [[nodiscard]] optim::ParamSink& sink() override { return *shards_; }

  [[nodiscard]] optim::StoredPart open_frozen(ParamId param) override { return stored_shards_.open(param); }
  void close_frozen(ParamId param, optim::PartUse use) override { stored_shards_.close(param, use); }

 private:
  void count(const plan::FetchPlan& plan, ev::Pass pass) {
    // By source (FetchCounters::kGatherSources): copies and int8 shards are separate gathers (C11a), and
    // counted as such.
    counters_.fetched(plan, pass == ev::Pass::backward ? plan::Direction::backward : plan::Direction::forward,
                      [this](ParamId id) -> std::size_t {
                        const bool copied = path_.source(id) == plan::GatherSource::secondary;
                        return (copied ? 1 : 0) + (shards_->quantized(id) ? 2 : 0);
                      });
  }

  /// On the host lane with the compute stream's timestamp, so that they fall into their micro-step.
  void emit_counters() {
    const plan::FetchCounts counts = counters_.take();
    for (std::size_t i = 0; i < counts.size(); ++i) {
      emit_on<ev::EventKind::fetch_counter>(context_.device.compute(), ev::StreamId::host,
                                            {.counter = static_cast<plan::FetchCounter>(i),
                                             .micro_step = micro_step_,
                                             .step = step_,
                                             .count = static_cast<std::uint32_t>(counts[i].count),
                                             .elems = counts[i].elems});
    }
  }

  void execute(const plan::FetchPlan& plan, plan::ModuleId module, ev::StatusCause cause) {
    // C1, C2: in the order of the plan. In-flight parameters are freed before anything is gathered again.
    if (plan.invalidated) {
      const plan::Invalidation& invalid = *plan.invalidated;
      emit_host<ev::EventKind::trace_invalidated>(
          {.cause = invalid.cause,
           .expected_module = plan::raw(invalid.expected),
           .got_module = plan::raw(invalid.got),
           .trace_step = static_cast<std::uint32_t>(invalid.trace_step),
           .recorded_modules = invalid.recorded});
      // On one rank only: all have the same trace.
      if (context_.config.zero.log_trace_cache_warnings && context_.rank() == 0) {
        std::fprintf(stderr, "%s\n", plan::trace_cache_warning(invalid).c_str());
      }
      gathers_.wait_for(invalid.wait_for, module);
      gathers_.free(invalid.released, module, ev::StatusCause::invalidation, plan.available_elems);
    }
    emit_host<ev::EventKind::fetch_decision>({.stop = plan.stop,
                                              .module = plan::raw(module),
                                              .gather = plan::raw(plan.gather.id),
                                              .trace_step = static_cast<std::uint32_t>(plan.trace_step),
                                              .prefetched_elems = plan.prefetch.elems,
                                              .available_elems = plan.available_elems});
    gathers_.issue(plan.gather, module, cause, plan.available_elems);
    // Parameters read by attribute are gathered outside DeepSpeed's coordinator and not counted.
    if (cause == ev::StatusCause::fetch) gathers_.limit_ongoing(plan.wait, module);
    // This module's gather, and earlier prefetches of its parameters.
    gathers_.wait_for(plan.wait_for, module);
    // After the wait on the compute stream, so that the event's timestamp is that of the first possible use.
    gathers_.announce(plan.completed, module, plan.available_elems);
    // After the waits: a prefetch must not delay the parameters that this module needs (C5).
    if (plan.prefetch.id != plan::kNone<plan::GatherId>) {
      emit_host<ev::EventKind::prefetch_issued>(
          {.gather = plan::raw(plan.prefetch.id),
           .module = plan::raw(module),
           .params = static_cast<std::uint32_t>(plan.prefetch.params.size()),
           .elems = plan.prefetch.elems});
      gathers_.issue(plan.prefetch, module, ev::StatusCause::prefetch, plan.available_elems);
    }
    // Without overlap_comm: waits for the prefetch issued above.
    gathers_.wait_for(plan.wait_at_once, module);
    if (plan.read_ahead.empty()) return;
    const ev::nvtx::FunctionRange range(ev::nvtx::Function::prefetch_nvme);
    shards_->read_ahead(plan.read_ahead);
  }

  /// Same status; the module to which the parameter is external is new.
  void emit_external(ParamId param, plan::ModuleId module) {
    gathers_.emit_status(context_.device.compute(), param, module, scheduler_.status(param),
                         ev::StatusCause::external, scheduler_.available_elems());
  }

  const Context& context_;
  EventPool& events_;
  const plan::Ownership& ownership_;
  const Placement placement_;
  plan::FetchScheduler scheduler_;
  plan::FetchCounters counters_;
  GatherPath path_;
  std::unique_ptr<offload::ShardStore> shards_;
  StoredShards stored_shards_;
  GatherExecutor gathers_;
  plan::ModelMode model_mode_ = plan::ModelMode::training;
  std::uint32_t micro_step_ = 0, step_ = 0;
};

}  // namespace

std::unique_ptr<Parameters> make_partitioned_parameters(const Context& context, EventPool& events,
                                                        const plan::Ownership& ownership) {
  return std::make_unique<PartitionedParameters>(context, events, ownership);
}

}  // namespace shardscope::engine
