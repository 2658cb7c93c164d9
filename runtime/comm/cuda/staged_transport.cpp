#include "runtime/comm/cuda/staged_transport.h"

#include <utility>
#include <vector>

#include "runtime/device/error.h"

namespace shardscope::comm {

using instrumentation::CollectiveOp;

namespace {

// Parts begin at multiples of 256 bytes, whole cache lines: no two parts share one.
constexpr std::size_t kAlignment = 256;

/// Bytes of host memory that a part takes on this rank.
std::size_t room_for(CollectiveOp op, const Part& part, std::uint32_t world, std::size_t size) {
  const auto aligned = [size](std::int64_t elems) {
    return (static_cast<std::size_t>(elems) * size + kAlignment - 1) / kAlignment * kAlignment;
  };
  switch (op) {
    case CollectiveOp::all_gather:
      // One buffer (world, extent): this rank's shard is a row of it, and the host gathers in place.
      return aligned(part.extent * world);
    case CollectiveOp::reduce_scatter:
      // full (elems) and out (extent) apart.
      return aligned(part.elems) + aligned(part.extent);
    case CollectiveOp::reduce:
    case CollectiveOp::all_reduce:
      return aligned(part.elems);
    case CollectiveOp::all_to_all:
      return 2 * aligned(part.elems);
    case CollectiveOp::broadcast:
    case CollectiveOp::barrier:
    case CollectiveOp::send:
    case CollectiveOp::receive:
    case CollectiveOp::gather:
    case CollectiveOp::scatter:
      break;
  }
  return 0;
}

}  // namespace

// One cudaMemcpyAsync; `out` to the host before the collective, `back` to the device after it.
struct StagedTransport::Copy {
  void* to;
  const void* from;
  std::size_t bytes;
};

struct StagedTransport::Plan {
  Collective staged;  ///< the same collective in host memory
  std::vector<Copy> out, back;
};

StagedTransport::StagedTransport(std::shared_ptr<Staging> staging, std::unique_ptr<Transport> host,
                                 std::uint32_t rank, std::uint32_t world)
    : staging_(std::move(staging)),
      host_(std::move(host)),
      rank_(rank),
      world_(world),
      copied_(staging_->there().make_event()),
      done_(staging_->there().make_event()) {}

/// The stream's queued work holds host_ and refers to memory of staging_, so wait for it first.
StagedTransport::~StagedTransport() {
  if (here_ == nullptr) return;
  try {
    here_->synchronize();
  } catch (...) {
    // Reported by whatever waits for the stream's work.
  }
}

/// The same collective over host memory: every part gets an offset in one block, in the order of parts, and
/// its two copies. The block belongs to the lane and is reused by its next collective. Safe without a wait:
/// the next one's first copies into it are queued on the device's stream after this one's last copies out of
/// it.
StagedTransport::Plan StagedTransport::plan(const Collective& collective) {
  Plan plan;
  plan.staged = collective;
  const std::size_t size = kernels::size_of(collective.type);
  std::size_t bytes = 0;
  for (const Part& part : collective.parts) bytes += room_for(collective.op, part, world_, size);
  // The sum over parts is exact: room_for() and hold() round alike.
  std::byte* next = staging_->room(collective.lane, bytes);
  const auto hold = [&](std::int64_t elems) {
    std::byte* const at = next;
    next += (static_cast<std::size_t>(elems) * size + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  };
  for (Part& part : plan.staged.parts) {
    const auto extent = static_cast<std::size_t>(part.extent) * size;
    const auto elems = static_cast<std::size_t>(part.elems) * size;
    // Addresses of the device; `part` gets those of the host.
    const Part given = part;
    switch (collective.op) {
      case CollectiveOp::all_gather: {
        std::byte* full = hold(part.extent * world_);
        part.target = full;
        // The shard's own row, so that the gather on the host copies only the peers' rows.
        part.source = full + rank_ * extent;
        plan.out.push_back({full + rank_ * extent, given.source, extent});
        // All rows, this rank's too: target may be another buffer than the one that holds the shard.
        plan.back.push_back({given.target, full, extent * world_});
        break;
      }
      // Two places: peers read `full` while this rank writes `out`.
      case CollectiveOp::reduce_scatter: {
        std::byte* full = hold(part.elems);
        part.source = full;
        part.target = hold(part.extent);
        plan.out.push_back({full, given.source, elems});
        plan.back.push_back({given.target, part.target, extent});
        break;
      }
      case CollectiveOp::reduce: {
        std::byte* whole = hold(part.elems);
        part.source = whole;
        plan.out.push_back({whole, given.source, elems});
        // Other ranks' target stays null or the caller's device memory: the host collective does not touch
        // it.
        if (part.root != rank_) break;
        part.target = whole;
        plan.back.push_back({given.target, whole, elems});
        break;
      }
      case CollectiveOp::all_reduce: {
        std::byte* whole = hold(part.elems);
        part.source = whole;
        part.target = whole;
        plan.out.push_back({whole, given.source, elems});
        plan.back.push_back({given.target, whole, elems});
        break;
      }
      case CollectiveOp::all_to_all: {
        std::byte* send = hold(part.elems);
        part.source = send;
        part.target = hold(part.elems);
        plan.out.push_back({send, given.source, elems});
        plan.back.push_back({given.target, part.target, elems});
        break;
      }
      case CollectiveOp::broadcast:
      case CollectiveOp::barrier:
      case CollectiveOp::send:
      case CollectiveOp::receive:
      case CollectiveOp::gather:
      case CollectiveOp::scatter:
        break;
    }
  }
  return plan;
}

/// Host thread; returns when everything is queued. Order: the CUDA stream copies out and records copied_; the
/// host's stream waits for it, runs the collective (all three steps, with the waits for peers) and records
/// done_; the CUDA stream waits for that and copies back.
/// The events are recorded again by the next collective. A wait is for the recording at the time of the call,
/// so that does not disturb what is queued.
void StagedTransport::move(const Collective& collective, const kernels::Exec& /*exec*/) {
  device::Device& device = staging_->there();
  // The stream that the collective was submitted on: its lane names it.
  device::Stream& there = staging_->stream_there(collective.lane);
  device::Stream& here = staging_->stream_here(collective.lane);
  here_ = &here;
  Plan plan = this->plan(collective);
  for (const Copy& copy : plan.out) device.copy_async(copy.to, copy.from, copy.bytes, there);
  there.record(*copied_);
  here.wait(*copied_);
  // The lambda owns a reference to host_: it may run while this object is being destroyed.
  here.run([host = host_, staged = std::move(plan.staged)](const kernels::Exec& exec) {
    host->enter(staged);
    host->move(staged, exec);
    host->leave(staged);
  });
  here.record(*done_);
  there.wait(*done_);
  for (const Copy& copy : plan.back) device.copy_async(copy.to, copy.from, copy.bytes, there);
}

}  // namespace shardscope::comm
