#include "runtime/engine/gather_executor.h"

#include <optional>
#include <utility>

#include "instrumentation/nvtx_ranges.h"
#include "instrumentation/param_status.h"
#include "kernels/ops.h"
#include "runtime/plan/quantization.h"
#include "runtime/plan/scheduler_compat.h"

namespace shardscope::engine {
using execution::advance;
using execution::emit_end_on;
using execution::emit_host;
using execution::emit_on;
using plan::ParamId;
using plan::ParamStatus;

GatherExecutor::GatherExecutor(const execution::Context& context, execution::EventPool& events,
                               const plan::Ownership& ownership, const plan::FetchScheduler& scheduler,
                               GatherPath& path, offload::ShardStore& shards)
    : context_(context),
      events_(events),
      ownership_(ownership),
      scheduler_(scheduler),
      path_(path),
      shards_(shards),
      watch_(context.device),
      ongoing_(plan::max_ongoing(context.config.zero.compat.max_ongoing_fetch_events)),
      params_(context.model.params.size()) {}

void GatherExecutor::issue(const plan::Gather& gather, plan::ModuleId module, ev::StatusCause cause,
                           std::int64_t available_elems) {
  // An empty gather has no id and emits no event: counters of a run count collectives.
  if (gather.id == plan::kNone<plan::GatherId> || gather.params.empty()) return;
  const ev::nvtx::FunctionRange range(ev::nvtx::Function::all_gather);
  device::Stream& stream = context_.device.gather();
  device::Stream& destination = shards_.destination();
  Issued issued;
  std::vector<GatherPath::Part> parts;
  std::vector<offload::ShardLoad> loads;
  parts.reserve(gather.params.size());
  for (const ParamId id : gather.params) {
    const plan::ParamPartition& partition = ownership_.shards().partitions[plan::raw(id)];
    // Evaluated now, since it depends on the issuing pass; gather() below evaluates it again, with the same
    // result.
    const bool copied = path_.source(id) == plan::GatherSource::secondary;
    const std::int64_t whole_elems = partition.shard_elems * ownership_.shard_world();
    void* shard = shards_.at_rest(id);
    Param& param = params_[plan::raw(id)];
    const bool packed = shards_.quantized(id);
    // One rank: its shard is the parameter. An int8 shard is not in the type that kernels read.
    if (ownership_.shard_world() == 1 && shard != nullptr && !packed) {
      param.data = shard;
    } else {
      // Padding included: the last shard is as long as the others.
      const std::size_t bytes = context_.bytes_of(whole_elems);
      param.buffer = context_.device.memory().allocate(
          bytes, {ev::MemoryCategory::param_gathered, plan::raw(id)}, destination);
      param.data = param.buffer.data();
    }
    if (shard == nullptr && !copied && packed) {
      // Kept until its parameter is freed, after every use by the peers.
      param.packed = context_.device.memory().allocate(
          static_cast<std::size_t>(plan::packed_shard(partition.shard_elems).bytes()),
          {ev::MemoryCategory::quantization, plan::raw(id)}, destination);
      shard = param.packed.data();
      loads.push_back({id, shard});
    } else if (shard == nullptr && !copied) {  // loaded to its offset in the whole, where the peers read it
      const kernels::Ptr whole{param.data, context_.type()};
      const std::uint32_t place = context_.rank() % ownership_.shard_world();
      shard = advance(whole, partition.shard_elems * place).data;
      loads.push_back({id, shard});
    }
    // Before emit_status(), which emits it.
    param.gather = gather.id;
    param.cause = cause;
    // For the event of the wait: bytes of the whole, not those that this rank receives.
    issued.bytes += static_cast<std::int64_t>(context_.bytes_of(whole_elems));
    ++issued.held;
    parts.push_back(
        {id, shard, param.data,
         scheduler_.persistent(id) ? plan::Persistence::persistent : plan::Persistence::released});
    // On the gather stream, before the collective: its timestamp is the start of being in flight.
    emit_status(stream, id, module, ParamStatus::in_flight, cause, available_elems);
  }
  // After all are allocated, in one call, so that reads of several shards overlap.
  shards_.load(loads);
  // The collective reads loaded shards and writes memory that belongs to `destination`.
  if (&destination != &stream) events_.order(destination, stream);
  // Only prefetches have an outcome; a gather that a module waits for at once cannot be late.
  if (cause == ev::StatusCause::prefetch) watch_.began(gather.id, gather.params.size());
  const plan::SchedulerCompat compat(context_.config.zero.compat.scheduler);
  // One by one, as DeepSpeed after its step; otherwise one coalesced collective for all.
  if (cause == ev::StatusCause::persistent && compat.gathers_persistent_one_by_one()) {
    for (const GatherPath::Part& part : parts) path_.gather({&part, 1}, {plan::raw(gather.id)});
  } else {
    path_.gather(parts, {plan::raw(gather.id)});
  }
  // Ignored where the gather is not watched.
  watch_.ended(gather.id);
  // Recorded after all collectives of the gather: one event for all its parameters (P13a).
  issued.done = events_.take();
  stream.record(*issued.done);
  issued_.emplace(plan::raw(gather.id), std::move(issued));
}

void GatherExecutor::limit_ongoing(const std::vector<ParamId>& waited, plan::ModuleId module) {
  // No limit by default: see [Note: gathers in flight].
  if (!ongoing_.most()) return;
  const bool counted = context_.config.zero.module_granularity_threshold == 0 ||
                       !context_.model.modules[plan::raw(module)].leaf;  // C14
  // Parameter by parameter, as DeepSpeed's loop: a gather of several may be counted more than once.
  for (const ParamId id : waited) {
    const std::size_t in_flight = ongoing_.in_flight();
    if (const std::optional<plan::GatherId> oldest = ongoing_.admit()) {
      emit_host<ev::EventKind::in_flight_limit>({.limited = plan::LimitedOperation::gathers,
                                                 .id = plan::raw(*oldest),
                                                 .in_flight = static_cast<std::int64_t>(in_flight),
                                                 .limit = static_cast<std::int64_t>(*ongoing_.most())});
      // Always found: `ongoing` keeps the entry while it is tracked, even if its parameters are freed.
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

void GatherExecutor::wait_for(const std::vector<plan::GatherId>& gathers, plan::ModuleId module) {
  device::Stream& compute = context_.device.compute();
  for (const plan::GatherId id : gathers) {
    const auto found = issued_.find(plan::raw(id));
    // One wait is enough for everything queued on the compute stream later.
    if (found == issued_.end() || found->second.waited) continue;
    const ev::nvtx::FunctionRange range(ev::nvtx::Function::wait);
    const ev::Fields<ev::EventKind::fetch_wait_begin> fields{
        .module = plan::raw(module), .gather = plan::raw(id), .bytes = found->second.bytes};
    watch_.needed(id);  // before the span: a span that begins before the gather ends means late
    emit_on<ev::EventKind::fetch_wait_begin>(compute, fields);
    // The stream's wait, not the host's.
    compute.wait(*found->second.done);
    watch_.resumed(id);
    emit_end_on<ev::EventKind::fetch_wait_begin>(compute, fields);
    found->second.waited = true;
  }
}

void GatherExecutor::announce(const std::vector<ParamId>& params, plan::ModuleId module,
                              std::int64_t available_elems) {
  for (const ParamId id : params) {
    emit_status(context_.device.compute(), id, module, ParamStatus::available, params_[plan::raw(id)].cause,
                available_elems);
    watch_.used(params_[plan::raw(id)].gather, module);
  }
}

void GatherExecutor::free(const std::vector<ParamId>& params, plan::ModuleId module, ev::StatusCause cause,
                          std::int64_t available_elems) {
  if (params.empty()) return;
  const ev::nvtx::FunctionRange range(ev::nvtx::Function::release_param);
  device::Stream& compute = context_.device.compute();
  device::Stream& destination = shards_.destination();
  bool kept = false;
  for (const ParamId id : params) {
    // Without a buffer the stored shard was used in place, and there is nothing to copy.
    const Param& param = params_[plan::raw(id)];
    if (cause == ev::StatusCause::release && param.buffer) kept |= path_.released(id, param.data);
  }
  // A copy is read from the parameter on the gather stream: its memory may be reused only after that.
  if (kept && &destination != &context_.device.gather()) events_.order(context_.device.gather(), destination);
  // Before the buffers are reset: a reset frees memory in the order of `destination`.
  events_.order(compute, destination);
  for (const ParamId id : params) {
    Param& param = params_[plan::raw(id)];
    // Freed already, or never gathered by this executor.
    if (param.data == nullptr) continue;
    param.buffer.reset();
    param.packed.reset();
    param.data = nullptr;
    emit_status(compute, id, module, ParamStatus::not_available, cause, available_elems);
    if (const auto found = issued_.find(plan::raw(param.gather)); found != issued_.end()) {
      const bool last = --found->second.held == 0;
      watch_.freed(param.gather,
                   cause == ev::StatusCause::invalidation ? PrefetchWatch::Freed::invalidated
                                                          : PrefetchWatch::Freed::released,
                   last);
      forget_if_done(found);
    }
    // Last: the event above contains the gather of the parameter.
    param.gather = plan::kNone<plan::GatherId>;
  }
}

// Ids increase over the whole run: entries must be erased.
void GatherExecutor::forget_if_done(IssuedById::iterator issued) {
  if (issued->second.held > 0 || issued->second.ongoing > 0) return;
  events_.give_back(std::move(issued->second.done));
  issued_.erase(issued);
}

void GatherExecutor::emit_status(device::Stream& stream, ParamId param, plan::ModuleId module,
                                 ParamStatus status, ev::StatusCause cause, std::int64_t available_elems) {
  emit_on<ev::EventKind::param_status>(stream, {.status = {status, path_.secondary_held(param)},
                                                .cause = cause,
                                                .param = plan::raw(param),
                                                .module = plan::raw(module),
                                                .gather = plan::raw(params_[plan::raw(param)].gather),
                                                .elems = context_.elems_of(param),
                                                .available_elems = available_elems});
}

}  // namespace shardscope::engine
