#include "runtime/offload/zenflow_host.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/execution/context.h"
#include "runtime/execution/events.h"
#include "runtime/offload/floats.h"
#include "runtime/offload/transfer.h"

namespace shardscope::offload {
namespace {

namespace ev = shardscope::instrumentation;
using execution::bytes_of;
using kernels::DType;

}  // namespace

ZenFlowHost::ZenFlowHost(const ZenFlowInput& input, execution::EventPool& events)
    : in_(input),
      device_(input.device),
      events_(events),
      pool_(host_pool(input.device, input.pin_memory)),
      // The last piece may be shorter.
      pieces_((input.elems + input.piece_elems - 1) / input.piece_elems) {
  const auto host = [&](ev::MemoryCategory category) {
    return pool_.allocate(floats(in_.elems), {category, ev::kNoId}, device_.worker());
  };
  for (auto [buffer, category] : {std::pair{&master_, ev::MemoryCategory::master_weight},
                                  {&momentum_, ev::MemoryCategory::momentum},
                                  {&variance_, ev::MemoryCategory::variance},
                                  {&sums_[0], ev::MemoryCategory::grad_shard}}) {
    *buffer = host(category);
  }
  // A second sum: the update reads one while the other accumulates.
  if (in_.settings.overlap_step) sums_[1] = host(ev::MemoryCategory::grad_shard);
  // The sums are not zeroed: the first step of an interval overwrites them.
  for (const device::Buffer* buffer : {&master_, &momentum_, &variance_}) {
    device_.worker().run([data = buffer->data(), bytes = buffer->bytes()](const kernels::Exec& exec) {
      kernels::fill_zero(exec, data, bytes);
    });
  }
  // Staging holds two pieces: its size does not grow with the model.
  const auto temporary = [&](DType type) {
    return pool_.allocate(piece_bytes(type), {ev::MemoryCategory::temporary}, device_.worker());
  };
  for (Piece& piece : staging_) {
    piece.raw = temporary(in_.gradient.type);
    if (in_.gradient.type != DType::f32) piece.wide = temporary(DType::f32);
    if (in_.type != DType::f32) piece.rounded = temporary(in_.type);
    piece.taken = device_.make_event();
    piece.sent = device_.make_event();
  }
}

float* ZenFlowHost::states(base::StateKind kind) const noexcept {
  return data(kind == base::StateKind::master     ? master_
              : kind == base::StateKind::momentum ? momentum_
                                                  : variance_);
}

std::size_t ZenFlowHost::piece_bytes(DType type) const noexcept {
  return bytes_of(std::min(in_.elems, in_.piece_elems), type);
}

plan::Range ZenFlowHost::piece_range(std::int64_t piece) const noexcept {
  return {piece * in_.piece_elems, std::min(in_.elems, (piece + 1) * in_.piece_elems)};
}

/// Two pieces alternate, for gradients received and parameters sent: after `taken` and `sent` a piece's
/// buffers may be written again.
ZenFlowHost::Piece& ZenFlowHost::next_piece() noexcept {
  next_ = (next_ + 1) % staging_.size();
  return staging_[next_];
}

/// sum[i] (+)= grad_scale * gradient[i], in fp32: each step is unscaled and clipped by its own norm before it
/// is added, so steps with different loss scales can be summed. The copy of piece k + 1 overlaps the sum of
/// piece k.
void ZenFlowHost::add_to_sum(std::int64_t steps_in_sum, const kernels::AdamW& settings) {
  events_.order(device_.compute(), device_.copy());
  float* sum = data(sums_[filling_]);
  for (std::int64_t i = 0; i < pieces_; ++i) {
    const plan::Range range = piece_range(i);
    Piece& piece = next_piece();
    // `raw` was read by the worker two pieces ago.
    device_.copy().wait(*piece.taken);
    transfer(device_, ev::TransferKind::device_to_host, piece.raw.data(),
             execution::advance(in_.gradient, range.begin).data, bytes_of(range.size(), in_.gradient.type),
             {});
    events_.order(device_.copy(), device_.worker());
    device_.worker().run([raw = kernels::Ptr{piece.raw.data(), in_.gradient.type},
                          wide = kernels::Ptr{piece.wide ? piece.wide.data() : piece.raw.data(), DType::f32},
                          to = kernels::Ptr{sum + range.begin, DType::f32}, n = range.size(),
                          // The first step of an interval sets the sum, later ones add to it.
                          first = steps_in_sum == 1,
                          factor = settings.grad_scale](const kernels::Exec& exec) {
      if (first) {
        kernels::cast(exec, to, raw, n);
        kernels::scale(exec, to, factor, n);
        return;
      }
      // Scaled in fp32, not in the gradient's type: a 16-bit product would be rounded once more. In fp32
      // `raw` itself is scaled, which nothing else reads.
      if (wide.data != raw.data) kernels::cast(exec, wide, raw, n);
      kernels::scale(exec, wide, factor, n);
      kernels::accumulate(exec, to, wide, n);
    });
    // After the sum: the next copy into `raw` waits for it.
    device_.worker().record(*piece.taken);
  }
}

/// Queues nothing. The additions to the sum precede the update on the worker stream, so no event is needed.
void ZenFlowHost::begin(std::int64_t steps, plan::UpdateCause cause, std::uint32_t step,
                        const kernels::AdamW& settings, Run run) {
  settings_ = settings;
  // The terms are unscaled already; the update uses their mean.
  settings_.grad_scale = 1.0F / static_cast<float>(steps);
  sum_ = data(sums_[filling_]);
  done_ = 0;
  unpublished_ = true;
  interval_ = steps;
  execution::emit_host<ev::EventKind::deferred_update>({.state = ev::DeferredState::begun,
                                                        .cause = cause,
                                                        .step = step,
                                                        .steps_summed = static_cast<std::uint32_t>(steps),
                                                        .elems = in_.elems});
  // The update reads one buffer while the next interval fills the other. An update at once needs only one:
  // the worker runs it before the sum is overwritten.
  if (run == Run::beside) filling_ ^= 1;
}

/// Pieces in proportion to the elapsed steps of the interval: the update is spread evenly.
void ZenFlowHost::advance(std::int64_t steps_in_sum, std::uint32_t step) {
  queue(plan::pieces_due(pieces_, steps_in_sum, interval_), step);
}

/// Queues the update in flight up to, not including, piece number `end`.
void ZenFlowHost::queue(std::int64_t end, std::uint32_t step) {
  if (!unpublished_ || done_ >= end) return;
  device::Stream& worker = device_.worker();
  // Adjacent pieces are queued as one update.
  const plan::Range range{piece_range(done_).begin, piece_range(end - 1).end};
  const ev::Fields<ev::EventKind::optimizer_begin> fields{
      .sub_group = 0, .step = step, .elems = range.size()};
  execution::emit_on<ev::EventKind::optimizer_begin>(worker, fields);
  // Element-wise, so dividing the update into pieces does not change the result.
  worker.run([this, range, sum = sum_, settings = settings_](const kernels::Exec& exec) {
    kernels::adamw_step(exec, data(master_) + range.begin, data(momentum_) + range.begin,
                        data(variance_) + range.begin, {nullptr, DType::f32}, {sum + range.begin, DType::f32},
                        range.size(), settings);
  });
  execution::emit_end_on<ev::EventKind::optimizer_begin>(worker, fields);
  done_ = end;
}

/// Between deferred_wait_begin and its end the compute stream waits: the part of the update not hidden by the
/// steps of the interval.
void ZenFlowHost::publish(std::uint32_t step) {
  if (!unpublished_) return;
  queue(pieces_, step);
  const ev::Fields<ev::EventKind::deferred_wait_begin> fields{.step = step, .elems = in_.elems};
  execution::emit_on<ev::EventKind::deferred_wait_begin>(device_.compute(), fields);
  publish_from(data(master_));
  execution::emit_end_on<ev::EventKind::deferred_wait_begin>(device_.compute(), fields);
  unpublished_ = false;
  execution::emit_host<ev::EventKind::deferred_update>(
      {.state = ev::DeferredState::published, .step = step, .elems = in_.elems});
}

void ZenFlowHost::publish_states() {
  publish_from(std::exchange(restored_, false) ? data(sums_[filling_ ^ 1]) : data(master_));
}

void ZenFlowHost::publish_from(const float* values) {
  events_.order(device_.compute(), device_.copy());
  for (std::int64_t i = 0; i < pieces_; ++i) {
    const plan::Range range = piece_range(i);
    Piece& piece = next_piece();
    const void* from = values + range.begin;
    // Rounded on the host: half the bytes are transferred, and staging holds one piece.
    if (in_.type != DType::f32) {
      device_.worker().wait(*piece.sent);
      device_.worker().run(
          [to = kernels::Ptr{piece.rounded.data(), in_.type}, from = kernels::ConstPtr{from, DType::f32},
           n = range.size()](const kernels::Exec& exec) { kernels::cast(exec, to, from, n); });
      from = piece.rounded.data();
    }
    events_.order(device_.worker(), device_.copy());
    // On the copy stream, after the rounding of this piece and overlapping that of the next one.
    in_.params.put(range, from, ev::kNoId);
    device_.copy().record(*piece.sent);
  }
  events_.order(device_.copy(), device_.compute());
  // In fp32 the copies read the values themselves.
  events_.order(device_.copy(), device_.worker());
}

/// Host thread; afterwards no queued work uses host memory of this object.
void ZenFlowHost::settle(std::uint32_t step) {
  queue(pieces_, step);
  device_.worker().synchronize();
  device_.copy().synchronize();
}

void ZenFlowHost::read_sum(plan::Range range, float* to) const {
  std::memcpy(to, data(sums_[filling_]) + range.begin, floats(range.size()));
}

/// The store has the parameters shard by shard; `range` is within the owned range. Waits for each slice,
/// since `to` is the caller's memory.
void ZenFlowHost::read_stored(plan::Range range, float* to) const {
  std::fill(to, to + range.size(), 0.0F);  // gaps between slices
  for (const plan::ColumnSlice& slice : in_.slices) {
    const plan::Range part = plan::intersect(range, {slice.owned_offset, slice.owned_offset + slice.elems});
    if (part.size() <= 0) continue;
    const optim::StoredPart stored = in_.params.open(slice.param);
    kernels::ConstPtr from = execution::advance(stored.data, part.begin - slice.owned_offset);
    device::Buffer host_copy;  // [part.size()] of the storage type
    // On the device: through a host buffer. A part in host memory is read in place.
    if (stored.stream == &device_.compute()) {
      host_copy =
          pool_.allocate(bytes_of(part.size(), in_.type), {ev::MemoryCategory::temporary}, device_.copy());
      events_.order(device_.compute(), device_.copy());
      transfer(device_, ev::TransferKind::device_to_host, host_copy.data(), from.data, host_copy.bytes(), {});
      events_.order(device_.copy(), device_.worker());
      from.data = host_copy.data();
    }
    device_.worker().run([to = kernels::Ptr{to + (part.begin - range.begin), DType::f32}, from,
                          n = part.size()](const kernels::Exec& exec) { kernels::cast(exec, to, from, n); });
    in_.params.close(slice.param, optim::PartUse::read);
    device_.worker().synchronize();
  }
}

void ZenFlowHost::read_published(plan::Range range, float* to) const {
  if (!in_.params.in_place()) return read_stored(range, to);
  const kernels::Ptr params = in_.params.at(range);
  const device::Buffer stored =
      pool_.allocate(bytes_of(range.size(), in_.type), {ev::MemoryCategory::temporary}, device_.copy());
  events_.order(device_.compute(), device_.copy());
  transfer(device_, ev::TransferKind::device_to_host, stored.data(), params.data, stored.bytes(), {});
  events_.order(device_.copy(), device_.worker());
  device_.worker().run([to = kernels::Ptr{to, DType::f32}, from = kernels::ConstPtr{stored.data(), in_.type},
                        n = range.size()](const kernels::Exec& exec) { kernels::cast(exec, to, from, n); });
  device_.worker().synchronize();
}

void ZenFlowHost::write_sum(plan::Range range, const float* from) {
  std::memcpy(data(sums_[filling_]) + range.begin, from, floats(range.size()));
}

/// The idle sum buffer: its update is complete (continue_unpublished()), so it is free.
void ZenFlowHost::write_published(plan::Range range, const float* from) {
  std::memcpy(data(sums_[filling_ ^ 1]) + range.begin, from, floats(range.size()));
}

void ZenFlowHost::continue_unpublished() {
  unpublished_ = true;
  restored_ = true;
  done_ = pieces_;
}

}  // namespace shardscope::offload
