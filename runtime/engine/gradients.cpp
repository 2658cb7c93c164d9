#include "runtime/engine/gradients.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "instrumentation/nvtx_ranges.h"
#include "kernels/ops.h"
#include "runtime/execution/events.h"
#include "runtime/offload/transfer.h"
#include "runtime/plan/offload.h"
#include "runtime/plan/param_groups.h"

namespace shardscope::engine {
using execution::bytes_of;
using execution::Context;
using execution::emit_end_on;
using execution::emit_host;
using execution::emit_on;
using execution::EventPool;

namespace {

std::unique_ptr<offload::HostGradients> make_host_gradients(const Context& context, EventPool& events,
                                                            plan::Range range) {
  // Null means that nothing is offloaded.
  if (range.size() == 0) return nullptr;
  device::Arena& pool = offload::host_pool(context.device, context.config.zero.offload_optimizer.pin_memory);
  return std::make_unique<offload::HostGradients>(context.device, events, context.sum_type(), range, pool);
}

/// How many of the owned gradients are kept in device memory.
std::int64_t device_gradients(const plan::ZeroConfig& zero, const plan::Ownership& ownership) {
  // ZenFlow updates some of them on the device in every step, so all are kept there; it sends the others
  // itself (O5).
  if (zero.zenflow) return ownership.owned_elems();
  return plan::first_offloaded_elem(zero.offload_optimizer, ownership.sub_groups());
}

}  // namespace

Gradients::Gradients(const Context& context, EventPool& events, const plan::Ownership& ownership)
    : context_(context),
      events_(events),
      ownership_(ownership),
      device_elems_(device_gradients(context.config.zero, ownership)),
      host_(make_host_gradients(context, events, {device_elems_, ownership.owned_elems()})),
      scaling_(make_scaling(context.config.zero, context.world())),
      planner_({.bucket_elems = context.config.zero.reduce_bucket_size,
                .buffers = plan::bucket_buffers(context.config.zero.overlap(),
                                                context.config.zero.contiguous_gradients)}),
      by_group_(plan::trained_by_group(context.model)),
      ready_(context.model.params.size(), false),
      seen_in_window_(context.model.params.size(), false),
      in_flight_(plan::outstanding_reductions(context.config.zero)) {}

bool Gradients::buffered() const noexcept { return plan::buckets_are_buffers(context_.config.zero); }

// Stage 1 reduces sums over the window; stages 2 and 3 reduce what one backward wrote.
kernels::DType Gradients::buffer_type() const noexcept {
  return ownership_.stage() == 1 ? context_.sum_type() : context_.type();
}

void Gradients::prepare_reductions() {
  // Once per backward: at its first gradient, or at its end if there was none.
  if (std::exchange(prepared_, true)) return;
  prepare_owned();
  if (!buffered()) return;
  const plan::ZeroConfig& zero = context_.config.zero;
  const std::uint32_t buffers = plan::allocated_bucket_buffers(zero);
  for (std::uint32_t i = 0; i < buffers; ++i) {
    // In stage 3 the buffers are kept for good.
    if (bucket_data_[i]) continue;
    bucket_data_[i] = context_.device.memory().allocate(bytes_of(zero.reduce_bucket_size, buffer_type()),
                                                        {ev::MemoryCategory::reduce_bucket, ev::kNoId},
                                                        context_.device.compute());
  }
}

void Gradients::copy_to_bucket(plan::ParamId param) {
  if (!buffered()) return;
  const bool two = static_cast<bool>(bucket_data_[1]);
  if (!two && open_elems_ == 0) drain();  // the content of the only buffer has to be reduced first
  const kernels::Ptr data{bucket_data_[two ? planner_.open_buffer() : 0].data(), buffer_type()};
  enter_buffer(param, execution::advance(data, open_elems_));
}

/// The end of a backward in DeepSpeed's stages 1 and 2, which waits for its reductions.
void Gradients::end_buffers() {
  if (!buffered() || ownership_.stage() == 3) return;
  drain();
  for (device::Buffer& buffer : bucket_data_) buffer.reset();
}

/// deepspeed/runtime/engine.py, allreduce_bucket. Both divide by world in the end; they differ in where a
/// 16-bit gradient could overflow.
Gradients::Scaling Gradients::make_scaling(const plan::ZeroConfig& zero, std::uint32_t world) noexcept {
  const auto ranks = static_cast<double>(world);
  if (zero.prescale_gradients) return {static_cast<float>(1 / ranks), 1};
  // before * after is 1 / ranks in either case.
  const double divisor = zero.gradient_predivide_factor;
  return {static_cast<float>(1 / divisor), static_cast<float>(divisor / ranks)};
}

kernels::Ptr Gradients::to_wire(kernels::Ptr gradient, std::int64_t elems, std::uint32_t owner, Held& held) {
  device::Stream& stream = context_.device.reduce();
  kernels::Ptr sent = gradient;
  // The copy is scaled, not the gradient; with equal types the gradient itself is.
  if (gradient.type != context_.wire_type()) {
    held.push_back(context_.device.memory().allocate(bytes_of(elems, context_.wire_type()),
                                                     {ev::MemoryCategory::reduce_bucket, owner},
                                                     context_.device.compute()));
    sent = {held.back().data(), context_.wire_type()};
    stream.run(
        [sent, gradient, elems](const kernels::Exec& exec) { kernels::cast(exec, sent, gradient, elems); });
  }
  // After the cast, so that prescaling is done in the wire type.
  if (scaling_.before != 1) {
    stream.run([sent, elems, factor = scaling_.before](const kernels::Exec& exec) {
      kernels::scale(exec, sent, factor, elems);
    });
  }
  return sent;
}

void Gradients::begin_backward(Window window) {
  window_ = window;
  prepared_ = false;
  std::fill(ready_.begin(), ready_.end(), false);
  // Sums of earlier micro-steps are kept until the first backward of the next window.
  if (window.index > 0) return;
  std::fill(seen_in_window_.begin(), seen_in_window_.end(), false);
  backward_order_.clear();
  begin_window();
}

void Gradients::completed(plan::ParamId param) {
  if (seen_in_window_[plan::raw(param)]) return;
  seen_in_window_[plan::raw(param)] = true;
  backward_order_.push_back(param);
}

void Gradients::ready(plan::ParamId param) {
  if (ready_[plan::raw(param)]) {
    throw std::logic_error("gradient of " + context_.model.params[plan::raw(param)].name +
                           " is ready twice in one backward");
  }
  ready_[plan::raw(param)] = true;
  completed(param);
  if (reduces_now()) prepare_reductions();
  // Before it enters a bucket: stage 1 adds it to its sum here, and the bucket contains the sum.
  joined(param);
  // S15. Otherwise it waits for a later micro-step or for the end of this backward.
  if (reduces_now() && !waits_for_end()) add_to_bucket(param);
}

bool Gradients::reduces_now() const noexcept {
  return plan::reduces_now(ownership_.stage(), window_.boundary());
}

bool Gradients::waits_for_end() const noexcept {
  return !in_buckets() || plan::joins_at_end(ownership_.stage(), context_.config.zero.overlap());
}

// Over the whole window: a parameter used in one of its micro-steps has a gradient.
void Gradients::refuse_unused() const {
  std::string names;
  for (const plan::ParamPlan& param : context_.model.params) {
    if (param.trainable && !seen_in_window_[plan::raw(param.id)])
      names += (names.empty() ? "" : ", ") + param.name;
  }
  if (names.empty()) return;
  throw std::runtime_error(
      "no gradient reached " + names +
      " in this step, and ignore_unused_parameters is false; set it to true or let every "
      "parameter take part in the loss");
}

void Gradients::add_to_bucket(plan::ParamId param) {
  const ev::nvtx::FunctionRange range(ev::nvtx::Function::add_gradient);
  const std::int64_t elems = context_.elems_of(param);
  // The plan flushes before the gradient joins, and an extra-large one by itself after it has.
  bool joined_bucket = false;
  // S8. Events contain the bucket number, which is the same on every rank: the plan depends only on the order
  // of gradients.
  const auto join = [&] {
    joined_bucket = true;
    const std::uint32_t bucket = plan::raw(planner_.open_bucket());
    if (open_elems_ == 0)
      emit_host<ev::EventKind::bucket_open>({.bucket = bucket, .buffer = planner_.open_buffer()});
    // Before open_elems_ grows: it is the gradient's offset in the buffer.
    copy_to_bucket(param);
    open_elems_ += elems;
    emit_host<ev::EventKind::bucket_add>(
        {.bucket = bucket, .param = plan::raw(param), .elems = elems, .bucket_elems = open_elems_});
  };
  for (const plan::Flush& due : planner_.add(param, elems)) {
    // A bucket of its own: opened, filled and flushed by one gradient.
    if (due.reason == plan::FlushReason::extra_large) {
      joined_bucket = true;
      emit_host<ev::EventKind::bucket_open>({.bucket = plan::raw(due.bucket), .buffer = due.buffer_index});
      emit_host<ev::EventKind::bucket_add>({.bucket = plan::raw(due.bucket),
                                            .param = plan::raw(param),
                                            .elems = elems,
                                            .bucket_elems = elems});
    }
    flush(due);
  }
  if (!joined_bucket) join();
}

void Gradients::end_backward() {
  const ev::nvtx::FunctionRange range(ev::nvtx::Function::gradient_epilogue);
  std::vector<plan::ParamId> unused;
  for (const plan::ParamPlan& param : context_.model.params) {
    // Frozen parameters have no gradient.
    if (param.trainable && !ready_[plan::raw(param.id)]) unused.push_back(param.id);
  }
  // Before anything is reduced: a rejected backward has not reached another rank.
  if (window_.boundary() && !context_.config.zero.ignore_unused_parameters) refuse_unused();
  if (reduces_now()) prepare_reductions();
  // Before the last flush: gradients that it adds join that bucket.
  settle_unused(unused);
  if (!reduces_now()) return;
  // In the order of parameter groups and parameters: the same on all ranks, independent of the order of
  // completion.
  if (in_buckets() && waits_for_end()) {
    for (const plan::ParamId param : by_group_) add_to_bucket(param);
  }
  device::Stream& reduce_stream = context_.device.reduce();
  const ev::Fields<ev::EventKind::phase_begin> phase{.phase = ev::Phase::reduce};
  emit_on<ev::EventKind::phase_begin>(reduce_stream, phase);
  if (!in_buckets()) {
    reduce_window();
  } else if (const std::optional<plan::Flush> last =
                 planner_.finish(plan::last_flush_reason(ownership_.stage()))) {
    flush(*last);
  }
  // MiCS' replicas: once per window, after its last bucket.
  if (window_.boundary() && in_buckets()) finish_window();
  end_buffers();
  emit_end_on<ev::EventKind::phase_begin>(reduce_stream, phase);
}

void Gradients::drain() {
  while (!outstanding_.empty()) retire_oldest();
  // The two lists must agree: only an outstanding bucket may be returned as the oldest.
  in_flight_.all_done();
}

plan::DueFlush Gradients::with_collectives(const plan::Flush& flush) const {
  plan::DueFlush due{flush, {}};
  const plan::ZeroConfig& zero = context_.config.zero;
  if (plan::issues_one_by_one(zero)) {
    due.collectives =
        plan::plan_reduce(ownership_.flat(), flush, plan::reduce_mode(zero), zero.reduce_bucket_size);
  } else {
    // By group, then by id: adjacent in the flat buffer, so that one collective carries long ranges.
    const auto place = [this](plan::ParamId id) {
      return std::pair(context_.model.params[plan::raw(id)].group, id);
    };
    std::sort(due.flush.params.begin(), due.flush.params.end(),
              [&place](plan::ParamId a, plan::ParamId b) { return place(a) < place(b); });
  }
  return due;
}

void Gradients::flush(const plan::Flush& flush) {
  // The next gradient is the first of its bucket, at offset 0 of its buffer.
  open_elems_ = 0;
  if (flush.params.empty()) return;
  const ev::nvtx::FunctionRange range(ev::nvtx::Function::reduce_gradients);
  const std::uint32_t bucket = plan::raw(flush.bucket);
  // Before the event: a rank held at the gate has not flushed.
  context_.gates.pass(ev::GateKind::bucket, bucket);
  emit_host<ev::EventKind::bucket_flush>({.reason = flush.reason,
                                          .bucket = bucket,
                                          .trigger_param = plan::raw(flush.trigger),
                                          .params = static_cast<std::uint32_t>(flush.params.size()),
                                          .elems = flush.elems});
  const plan::DueFlush due = with_collectives(flush);
  issue(bucket, flush.elems, [&](Held& held) -> device::Stream& { return reduce(due, {bucket}, held); });
}

void Gradients::issue(std::uint32_t bucket, std::int64_t elems,
                      const std::function<device::Stream&(Held&)>& queue) {
  const std::size_t before = in_flight_.in_flight();
  // If most + 1 are outstanding, the oldest is retired, so that there are most + 1 again after this one.
  if (const std::optional<std::uint32_t> oldest = in_flight_.admit()) {
    // C6: in DeepSpeed's stage 3 the host waits instead of the compute stream.
    if (plan::reductions_hold_host(context_.config.zero)) {
      emit_host<ev::EventKind::in_flight_limit>({.limited = plan::LimitedOperation::reductions,
                                                 .id = *oldest,
                                                 .in_flight = static_cast<std::int64_t>(before),
                                                 .limit = static_cast<std::int64_t>(*in_flight_.most())});
      outstanding_.front().done->host_wait();
    }
    // Also if the host has waited: memory is freed in the order of the compute stream.
    retire_oldest();
  }
  // The kernels that wrote these gradients come first.
  events_.order(context_.device.compute(), context_.device.reduce());
  Outstanding issued;
  issued.bucket = bucket;
  // Bytes in the wire type, for the event of the wait.
  issued.bytes = static_cast<std::int64_t>(bytes_of(elems, context_.wire_type()));
  device::Stream& last = queue(issued.held);
  issued.done = events_.take();
  // `queue` returns the last stream: the reduce stream, or the one that copies reduced gradients to the host.
  last.record(*issued.done);
  outstanding_.push_back(std::move(issued));
  in_flight_.started(bucket);
  // Without overlap_comm nothing overlaps a reduction.
  if (plan::wait_of(plan::overlap_of(context_.config.zero.overlap())) == plan::WaitFor::at_once) drain();
}

void Gradients::retire_oldest() {
  Outstanding& oldest = outstanding_.front();
  device::Stream& compute = context_.device.compute();
  const ev::Fields<ev::EventKind::reduce_wait_begin> fields{.bucket = oldest.bucket, .bytes = oldest.bytes};
  emit_on<ev::EventKind::reduce_wait_begin>(compute, fields);
  compute.wait(*oldest.done);
  emit_end_on<ev::EventKind::reduce_wait_begin>(compute, fields);
  events_.give_back(std::move(oldest.done));
  outstanding_.pop_front();  // frees the held buffers
}

}  // namespace shardscope::engine
