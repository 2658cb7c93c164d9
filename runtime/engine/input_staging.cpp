#include "runtime/engine/input_staging.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "runtime/execution/events.h"

namespace shardscope::engine {
using execution::emit_end_on;
using execution::emit_on;
using execution::EventPool;

namespace {

/// Bytes: alignment of a batch's arrays for vector loads, on the device and in the pinned copy.
constexpr std::size_t kPieceAlignment = 64;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;
}

}  // namespace

InputStaging::InputStaging(device::Device& device, EventPool& events) : device_(device), events_(events) {
  for (Slot& slot : slots_) slot.used = device.make_event();
}

model::Batch InputStaging::stage(const data::HostBatch& batch) {
  Slot& slot = slots_[next_];
  // The only host wait here: the readers of this slot are two micro-steps back.
  if (slot.in_use) slot.used->host_wait();
  slot.in_use = false;

  const std::size_t tokens = batch.tokens.size() * sizeof(std::int32_t);
  const std::size_t targets = batch.targets.size() * sizeof(std::int32_t);
  const std::size_t inputs = batch.inputs.size() * sizeof(float);
  const std::size_t labels = batch.labels.size() * sizeof(float);
  // Twice the tokens: positions have the same extent. Token models have targets, vector models inputs and
  // labels.
  const std::size_t bytes = 2 * aligned(tokens) + aligned(targets) + aligned(inputs) + aligned(labels);
  device::Stream& copy = device_.copy();
  if (slot.device.bytes() < bytes) {
    const device::MemoryTag tag{instrumentation::MemoryCategory::input, instrumentation::kNoId};
    // Both are freed before the new ones are allocated: the two need not fit in memory together.
    slot.device.reset();
    slot.pinned.reset();
    slot.device = device_.memory().allocate(bytes, tag, copy);
    slot.pinned = device_.pinned().allocate(bytes, tag, copy);
    // The new memory has no positions yet.
    slot.B = 0;
  }

  auto* host = static_cast<std::byte*>(slot.pinned.data());
  auto* there = static_cast<std::byte*>(slot.device.data());
  std::size_t at = 0;
  // Copies to pinned memory; returns the device address of the same bytes.
  const auto place = [&](const void* source, std::size_t size) -> const void* {
    if (size == 0) return nullptr;
    std::memcpy(host + at, source, size);
    const void* result = there + at;
    at += aligned(size);
    return result;
  };
  model::Batch result;
  result.B = batch.B;
  result.T = batch.T;
  result.tokens = static_cast<const std::int32_t*>(place(batch.tokens.data(), tokens));
  result.targets = static_cast<const std::int32_t*>(place(batch.targets.data(), targets));
  result.inputs = static_cast<const float*>(place(batch.inputs.data(), inputs));
  result.labels = static_cast<const float*>(place(batch.labels.data(), labels));
  // Padding: targets below 0 count for neither the loss nor the tokens.
  result.ignored = std::ranges::count_if(batch.targets, [](std::int32_t target) { return target < 0; });
  // Last: with the same B and T everything before them has the same size, so they keep their offset.
  if (tokens > 0) result.positions = reinterpret_cast<const std::int32_t*>(there + at);
  if (tokens > 0 && (slot.B != batch.B || slot.T != batch.T)) {  // else they are on the device already
    auto* const positions = reinterpret_cast<std::int32_t*>(host + at);
    for (std::int64_t i = 0; i < batch.B * batch.T; ++i)
      positions[i] = static_cast<std::int32_t>(i % batch.T);
    at += aligned(tokens);
    slot.B = batch.B;
    slot.T = batch.T;
  }
  const ev::Fields<ev::EventKind::transfer_begin> fields{.transfer = ev::TransferKind::input_to_device,
                                                         .queue_depth = 1,
                                                         .bytes = static_cast<std::int64_t>(at)};
  emit_on<ev::EventKind::transfer_begin>(copy, fields);
  // One copy of all arrays, without positions that are already on the device.
  device_.copy_async(there, host, at, copy);
  emit_end_on<ev::EventKind::transfer_begin>(copy, fields);
  // The compute stream waits for the copy; the host does not.
  events_.order(copy, device_.compute());
  return result;
}

// After the last reader is queued: until this event is reached the slot is not written again.
void InputStaging::done() {
  Slot& slot = slots_[next_];
  device_.compute().record(*slot.used);
  slot.in_use = true;
  next_ = (next_ + 1) % slots_.size();
}

}  // namespace shardscope::engine
