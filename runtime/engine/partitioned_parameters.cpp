// Stage 3: the engine's side of plan::FetchScheduler. The scheduler decides; this executes on streams.
//
// [Note: gathered parameters and streams]
// A gathered parameter is allocated on the stream that first writes to it (ShardStore::destination: the
// gather stream, or the copy stream where shards are loaded from elsewhere). The compute stream waits for the
// gather's event before the first use. To free it, that stream first waits for an event recorded on
// the compute stream after the last use; from then on the memory serves later gathers, which run after that
// wait. So at any time memory holds what the scheduler calls in flight or available, computed from the
// plan alone, and the host never waits to free.
//
// [Note: gathers in flight]
// DeepSpeed lets its host run at most two finished handles ahead (C6), because memory that two streams used
// comes back to its allocator only when the host sees both done. Here memory comes back in stream order and
// HostThrottle bounds how far the host is ahead, so another wait would only delay launches: by default there
// is none. compat.max_ongoing_fetch_events (2 in deepspeed and notes) makes the host wait as DeepSpeed's
// does.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "instrumentation/param_status.h"
#include "kernels/ops.h"
#include "runtime/engine/gather_path.h"
#include "runtime/engine/parameters.h"
#include "runtime/engine/prefetch_watch.h"
#include "runtime/engine/stored_shards.h"
#include "runtime/engine/trace_check.h"
#include "runtime/execution/events.h"
#include "runtime/offload/shard_store.h"
#include "runtime/plan/fetch_counters.h"
#include "runtime/plan/in_flight_limit.h"
#include "runtime/plan/offload.h"
#include "runtime/plan/quantization.h"
#include "runtime/plan/scheduler.h"
#include "runtime/plan/scheduler_compat.h"
#include "runtime/plan/scheduler_config.h"
#include "runtime/plan/trace_warning.h"

namespace shardscope::engine {
using execution::advance;
using execution::Context;
using execution::emit_end_on;
using execution::emit_host;
using execution::emit_on;
using execution::EventPool;

namespace {

using plan::ParamId;
using plan::ParamStatus;

/// Where shards rest (P6) and how, and the host buffers of those on NVMe.
struct Placement {
  std::vector<plan::ShardPlace> places;
  std::vector<bool> quantized;  ///< by ParamId
  plan::SwapBuffers buffers;
};

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
        watch_(context.device),
        ongoing_(plan::max_ongoing(context.config.zero.compat.max_ongoing_fetch_events)),
        shards_(make_shards(context, ownership, placement_)),
        stored_shards_(context, ownership, *shards_),
        params_(context.model.params.size()) {
    events_.order(context_.device.compute(), context_.device.gather());
  }

  void begin_iteration(std::uint32_t micro_step, std::uint32_t step) override {
    micro_step_ = micro_step;
    step_ = step;
    const plan::TraceMode before = scheduler_.mode();
    const plan::TraceMode mode = scheduler_.begin_iteration();
    const plan::Drain& drain = scheduler_.drained();
    wait_for(drain.wait_for, plan::kNone<plan::ModuleId>);
    free(drain.released, plan::kNone<plan::ModuleId>, ev::StatusCause::release, scheduler_.available_elems());
    path_.begin_iteration();
    if (before == plan::TraceMode::record) {
      check_same_trace(scheduler_, context_.model, context_.control_comm);
    }
    emit_host<ev::EventKind::trace_mode>({.mode = mode, .micro_step = micro_step, .step = step});
  }

  void acquire(plan::ModuleId module, ev::Pass pass) override {
    path_.enter(inside(pass));
    const plan::FetchPlan plan = pass == ev::Pass::recompute ? scheduler_.fetch_recomputed(module)
                                                             : scheduler_.fetch(module, inside(pass));
    counters_.fetched(plan, pass == ev::Pass::backward ? plan::Direction::backward : plan::Direction::forward,
                      [this](ParamId id) -> std::size_t {
                        const bool copied = path_.source(id) == plan::GatherSource::secondary;
                        return (copied ? 1 : 0) + (shards_->quantized(id) ? 2 : 0);
                      });
    execute(plan, module, ev::StatusCause::fetch);
  }
  void acquire_external(ParamId param, plan::ModuleId module) override {
    execute(scheduler_.fetch_external(param, module), module, ev::StatusCause::external);
  }

  void return_param(ParamId param, plan::ModuleId module, std::span<const plan::ModuleId> around) override {
    const plan::ReturnPlan plan = scheduler_.return_param(param, module, around);
    if (plan.holder == plan::kNone<plan::ModuleId>) return;
    emit_host<ev::EventKind::fetch_decision>({.stop = plan.fetch.stop,
                                              .module = plan::raw(plan.holder),
                                              .gather = plan::raw(plan.fetch.gather.id),
                                              .trace_step = static_cast<std::uint32_t>(plan.fetch.trace_step),
                                              .prefetched_elems = plan::raw(param),
                                              .available_elems = plan.fetch.available_elems});
    issue(plan.fetch.gather, plan.holder, ev::StatusCause::external, plan.fetch.available_elems);
    wait_for(plan.fetch.wait_for, plan.holder);
    announce(plan.fetch.completed, plan.holder, plan.fetch.available_elems);
    if (plan.moved) emit_external(param, plan.holder);
  }

  void register_external(ParamId param, plan::ModuleId module) override {
    scheduler_.register_external(param, module);
    emit_external(param, module);
  }
  void unregister_external(ParamId param, plan::ModuleId module) override {
    scheduler_.unregister_external(param, module);
    emit_external(param, plan::kNone<plan::ModuleId>);
  }

  void release(plan::ModuleId module, ev::Pass pass) override {
    const plan::ReleasePlan plan = pass == ev::Pass::recompute ? scheduler_.release_recomputed(module)
                                                               : scheduler_.release(module, inside(pass));
    path_.enter(inside(pass));
    for (const plan::Kept& kept : plan.kept) {
      emit_host<ev::EventKind::release_kept>({.reason = kept.reason,
                                              .module = plan::raw(module),
                                              .param = plan::raw(kept.param),
                                              .elems = context_.elems_of(kept.param)});
    }
    free(plan.released, module, ev::StatusCause::release, plan.available_elems);
  }

  void end_backward() override {
    const std::vector<ParamId> released = scheduler_.release_leftovers();
    free(released, plan::kNone<plan::ModuleId>, ev::StatusCause::release, scheduler_.available_elems());
    emit_counters();
  }

  void before_update() override {
    stored_shards_.finish();
    wait_for(scheduler_.in_flight_gathers(), plan::kNone<plan::ModuleId>);
    const std::vector<ParamId> released = scheduler_.begin_update();
    free(released, plan::kNone<plan::ModuleId>, ev::StatusCause::partition, scheduler_.available_elems());
    shards_->forget();
  }

  void after_update(Update update) override {
    const plan::WeightChange change = weight_change(update);
    const std::vector<ParamId> outdated = scheduler_.end_update(change);
    free(outdated, plan::kNone<plan::ModuleId>, ev::StatusCause::partition, scheduler_.available_elems());
    for (const ParamId param : path_.weights_change(change)) {
      emit_status(context_.device.compute(), param, plan::kNone<plan::ModuleId>, ParamStatus::not_available,
                  ev::StatusCause::partition, scheduler_.available_elems());
    }
    // Peers read the shards from the gather stream.
    events_.order(context_.device.compute(), context_.device.gather());
    const plan::SchedulerCompat compat(context_.config.zero.compat.scheduler);
    if (compat.gathers_persistent_only_after_updates() &&
        (update == Update::initial || update == Update::skipped))
      return;
    const plan::Gather gather = scheduler_.gather_persistent();
    if (gather.id == plan::kNone<plan::GatherId>) return;
    device::Stream& stream = context_.device.gather();
    emit_on<ev::EventKind::phase_begin>(stream, {.phase = ev::Phase::gather});
    issue(gather, plan::kNone<plan::ModuleId>, ev::StatusCause::persistent, scheduler_.available_elems());
    emit_on<ev::EventKind::phase_end>(stream, {.phase = ev::Phase::gather});
    wait_for({gather.id}, plan::kNone<plan::ModuleId>);
    announce(gather.params, plan::kNone<plan::ModuleId>, scheduler_.available_elems());
  }

  [[nodiscard]] kernels::ConstPtr get(ParamId param) const override {
    const Param& state = params_[plan::raw(param)];
    if (state.data == nullptr) {
      throw std::logic_error("parameter " + context_.model.params[plan::raw(param)].name +
                             " is used while it is partitioned: its module was not fetched");
    }
    return {state.data, context_.type()};
  }
  [[nodiscard]] std::string describe_swap() const override { return shards_->describe_swap(); }
  [[nodiscard]] optim::ParamSink& sink() override { return *shards_; }

  [[nodiscard]] optim::StoredPart open_frozen(ParamId param) override { return stored_shards_.open(param); }
  void close_frozen(ParamId param, optim::PartUse use) override { stored_shards_.close(param, use); }

 private:
  struct Param {
    device::Buffer
        buffer;  ///< of ShardStore::destination(); empty where the shard at rest is whole (one rank)
    device::Buffer packed;  ///< the same: a quantized shard that was loaded
    void* data = nullptr;   ///< set while in flight or available
    plan::GatherId gather = plan::kNone<plan::GatherId>;
    ev::StatusCause cause{};
  };
  /// A gather some of whose parameters are still held.
  struct Issued {
    std::unique_ptr<device::Event> done;  ///< recorded on the gather stream after the collective
    std::size_t held = 0;                 ///< parameters not yet freed
    std::size_t ongoing = 0;              ///< times that `ongoing_` may still name it
    std::int64_t bytes = 0;
    bool waited = false;  ///< the compute stream has waited for it
  };

  /// On the host lane with the compute stream's time, so that they lie in their micro-step.
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
    if (plan.invalidated) {
      const plan::Invalidation& invalid = *plan.invalidated;
      emit_host<ev::EventKind::trace_invalidated>(
          {.cause = invalid.cause,
           .expected_module = plan::raw(invalid.expected),
           .got_module = plan::raw(invalid.got),
           .trace_step = static_cast<std::uint32_t>(invalid.trace_step),
           .recorded_modules = invalid.recorded});
      if (context_.config.zero.log_trace_cache_warnings && context_.rank() == 0) {
        std::fprintf(stderr, "%s\n", plan::trace_cache_warning(invalid).c_str());
      }
      wait_for(invalid.wait_for, module);
      free(invalid.released, module, ev::StatusCause::invalidation, plan.available_elems);
    }
    emit_host<ev::EventKind::fetch_decision>({.stop = plan.stop,
                                              .module = plan::raw(module),
                                              .gather = plan::raw(plan.gather.id),
                                              .trace_step = static_cast<std::uint32_t>(plan.trace_step),
                                              .prefetched_elems = plan.prefetch.elems,
                                              .available_elems = plan.available_elems});
    issue(plan.gather, module, cause, plan.available_elems);
    // What is read by attribute is gathered outside DeepSpeed's coordinator, where nothing is counted.
    if (cause == ev::StatusCause::fetch) limit_ongoing(plan.wait, module);
    wait_for(plan.wait_for, module);
    announce(plan.completed, module, plan.available_elems);
    if (plan.prefetch.id != plan::kNone<plan::GatherId>) {
      emit_host<ev::EventKind::prefetch_issued>(
          {.gather = plan::raw(plan.prefetch.id),
           .module = plan::raw(module),
           .params = static_cast<std::uint32_t>(plan.prefetch.params.size()),
           .elems = plan.prefetch.elems});
      issue(plan.prefetch, module, ev::StatusCause::prefetch, plan.available_elems);
    }
    wait_for(plan.wait_at_once, module);
    shards_->read_ahead(plan.read_ahead);
  }

  /// The status stays; which module the parameter is external to is new.
  void emit_external(ParamId param, plan::ModuleId module) {
    emit_status(context_.device.compute(), param, module, scheduler_.status(param), ev::StatusCause::external,
                scheduler_.available_elems());
  }

  /// Queues one coalesced, in-place all-gather on the gather stream.
  void issue(const plan::Gather& gather, plan::ModuleId module, ev::StatusCause cause,
             std::int64_t available_elems) {
    if (gather.id == plan::kNone<plan::GatherId> || gather.params.empty()) return;
    device::Stream& stream = context_.device.gather();
    device::Stream& destination = shards_->destination();
    Issued issued;
    std::vector<GatherPath::Part> parts;
    std::vector<offload::ShardLoad> loads;
    parts.reserve(gather.params.size());
    for (const ParamId id : gather.params) {
      const plan::ParamPartition& partition = ownership_.shards().partitions[plan::raw(id)];
      const bool copied = path_.source(id) == plan::GatherSource::secondary;
      const std::int64_t whole_elems = partition.shard_elems * ownership_.shard_world();
      void* shard = shards_->at_rest(id);
      Param& param = params_[plan::raw(id)];
      const bool packed = shards_->quantized(id);
      if (ownership_.shard_world() == 1 && shard != nullptr && !packed) {
        param.data = shard;
      } else {
        const std::size_t bytes = context_.bytes_of(whole_elems);
        param.buffer = context_.device.memory().allocate(
            bytes, {ev::MemoryCategory::param_gathered, plan::raw(id)}, destination);
        param.data = param.buffer.data();
      }
      if (shard == nullptr && !copied && packed) {
        // Kept beside its parameter until that is freed, which follows every use by the peers.
        param.packed = context_.device.memory().allocate(
            static_cast<std::size_t>(plan::packed_shard(partition.shard_elems).bytes()),
            {ev::MemoryCategory::quantization, plan::raw(id)}, destination);
        shard = param.packed.data();
        loads.push_back({id, shard});
      } else if (shard == nullptr && !copied) {  // loaded to its place, from where the peers read it
        const kernels::Ptr whole{param.data, context_.type()};
        const std::uint32_t place = context_.rank() % ownership_.shard_world();
        shard = advance(whole, partition.shard_elems * place).data;
        loads.push_back({id, shard});
      }
      param.gather = gather.id;
      param.cause = cause;
      issued.bytes += static_cast<std::int64_t>(context_.bytes_of(whole_elems));
      ++issued.held;
      parts.push_back(
          {id, shard, param.data,
           scheduler_.persistent(id) ? plan::Persistence::persistent : plan::Persistence::released});
      emit_status(stream, id, module, ParamStatus::in_flight, cause, available_elems);
    }
    shards_->load(loads);
    if (&destination != &stream) events_.order(destination, stream);
    if (cause == ev::StatusCause::prefetch) watch_.began(gather.id, gather.params.size());
    path_.gather(parts, {plan::raw(gather.id)});
    watch_.ended(gather.id);
    issued.done = events_.take();
    stream.record(*issued.done);
    issued_.emplace(plan::raw(gather.id), std::move(issued));
  }

  /// The waits of one fetch, parameter by parameter. See [Note: gathers in flight].
  void limit_ongoing(const std::vector<ParamId>& waited, plan::ModuleId module) {
    if (!ongoing_.most()) return;
    const bool counted = context_.config.zero.module_granularity_threshold == 0 ||
                         !context_.model.modules[plan::raw(module)].leaf;  // C14
    for (const ParamId id : waited) {
      const std::size_t in_flight = ongoing_.in_flight();
      if (const std::optional<plan::GatherId> oldest = ongoing_.admit()) {
        emit_host<ev::EventKind::in_flight_limit>({.limited = plan::InFlight::gathers,
                                                   .id = plan::raw(*oldest),
                                                   .in_flight = static_cast<std::int64_t>(in_flight),
                                                   .limit = static_cast<std::int64_t>(*ongoing_.most())});
        const auto found = issued_.find(plan::raw(*oldest));
        found->second.done->host_wait();
        --found->second.ongoing;
        forget_if_done(found);
      }
      const plan::GatherId gather = params_[plan::raw(id)].gather;
      wait_for({gather}, module);
      if (!counted) continue;
      ongoing_.started(gather);
      ++issued_.at(plan::raw(gather)).ongoing;
    }
  }

  /// The compute stream waits for these gathers, unless it has.
  void wait_for(const std::vector<plan::GatherId>& gathers, plan::ModuleId module) {
    device::Stream& compute = context_.device.compute();
    for (const plan::GatherId id : gathers) {
      const auto found = issued_.find(plan::raw(id));
      if (found == issued_.end() || found->second.waited) continue;
      const ev::Fields<ev::EventKind::fetch_wait_begin> fields{
          .module = plan::raw(module), .gather = plan::raw(id), .bytes = found->second.bytes};
      watch_.needed(id);  // before the span: where that begins before the gather ends, it was late
      emit_on<ev::EventKind::fetch_wait_begin>(compute, fields);
      compute.wait(*found->second.done);
      watch_.resumed(id);
      emit_end_on<ev::EventKind::fetch_wait_begin>(compute, fields);
      found->second.waited = true;
    }
  }

  void announce(const std::vector<ParamId>& params, plan::ModuleId module, std::int64_t available_elems) {
    for (const ParamId id : params) {
      emit_status(context_.device.compute(), id, module, ParamStatus::available, params_[plan::raw(id)].cause,
                  available_elems);
      watch_.used(params_[plan::raw(id)].gather, module);
    }
  }

  /// See [Note: gathered parameters and streams].
  void free(const std::vector<ParamId>& params, plan::ModuleId module, ev::StatusCause cause,
            std::int64_t available_elems) {
    if (params.empty()) return;
    device::Stream& compute = context_.device.compute();
    device::Stream& destination = shards_->destination();
    bool kept = false;
    for (const ParamId id : params) {
      const Param& param = params_[plan::raw(id)];
      if (cause == ev::StatusCause::release && param.buffer) kept |= path_.released(id, param.data);
    }
    if (kept && &destination != &context_.device.gather())
      events_.order(context_.device.gather(), destination);
    events_.order(compute, destination);
    for (const ParamId id : params) {
      Param& param = params_[plan::raw(id)];
      if (param.data == nullptr) continue;
      param.buffer.reset();
      param.packed.reset();
      param.data = nullptr;
      emit_status(compute, id, module, ParamStatus::not_available, cause, available_elems);
      if (const auto found = issued_.find(plan::raw(param.gather)); found != issued_.end()) {
        const bool last = --found->second.held == 0;
        watch_.gone(param.gather,
                    cause == ev::StatusCause::invalidation ? PrefetchWatch::Gone::invalidated
                                                           : PrefetchWatch::Gone::released,
                    last);
        forget_if_done(found);
      }
      param.gather = plan::kNone<plan::GatherId>;
    }
  }

  using IssuedById = std::unordered_map<std::uint32_t, Issued>;
  void forget_if_done(IssuedById::iterator issued) {
    if (issued->second.held > 0 || issued->second.ongoing > 0) return;
    events_.give_back(std::move(issued->second.done));
    issued_.erase(issued);
  }

  void emit_status(device::Stream& stream, ParamId param, plan::ModuleId module, ParamStatus status,
                   ev::StatusCause cause, std::int64_t available_elems) {
    emit_on<ev::EventKind::param_status>(stream, {.status = {status, path_.secondary_held(param)},
                                                  .cause = cause,
                                                  .param = plan::raw(param),
                                                  .module = plan::raw(module),
                                                  .gather = plan::raw(params_[plan::raw(param)].gather),
                                                  .elems = context_.elems_of(param),
                                                  .available_elems = available_elems});
  }

  const Context& context_;
  EventPool& events_;
  const plan::Ownership& ownership_;
  const Placement placement_;
  plan::FetchScheduler scheduler_;
  plan::FetchCounters counters_;
  GatherPath path_;
  PrefetchWatch watch_;
  plan::InFlightLimit<plan::GatherId> ongoing_;
  std::unique_ptr<offload::ShardStore> shards_;
  StoredShards stored_shards_;
  std::vector<Param> params_;  ///< by ParamId
  IssuedById issued_;          ///< by GatherId
  std::uint32_t micro_step_ = 0, step_ = 0;
};

}  // namespace

std::unique_ptr<Parameters> make_partitioned_parameters(const Context& context, EventPool& events,
                                                        const plan::Ownership& ownership) {
  return std::make_unique<PartitionedParameters>(context, events, ownership);
}

}  // namespace shardscope::engine
