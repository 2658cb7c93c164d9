#include "runtime/comm/cuda/staged_transport.h"

#include <utility>
#include <vector>

#include "runtime/device/error.h"

namespace shardscope::comm {

using instrumentation::CollectiveOp;

namespace {

device::Stream& stream_of(device::Device& device, instrumentation::StreamId lane) {
  using enum instrumentation::StreamId;
  switch (lane) {
    case compute:
      return device.compute();
    case gather:
      return device.gather();
    case reduce:
      return device.reduce();
    case copy:
      return device.copy();
    default:
      break;
  }
  throw BackendError("staged collective", 0,
                     "collectives run on the compute, gather, reduce and copy streams only", "comm/cuda");
}

}  // namespace

struct StagedTransport::Copy {
  void* to;
  const void* from;
  std::size_t bytes;
};

struct StagedTransport::Plan {
  Collective staged;  ///< the same collective in host memory
  std::vector<Copy> out, back;
  std::vector<device::Buffer> buffers;
};

StagedTransport::StagedTransport(std::shared_ptr<Staging> staging, std::unique_ptr<Transport> host,
                                 std::uint32_t rank, std::uint32_t world)
    : staging_(std::move(staging)),
      host_(std::move(host)),
      rank_(rank),
      world_(world),
      copied_(staging_->there.make_event()),
      done_(staging_->there.make_event()) {}

StagedTransport::~StagedTransport() {
  if (here_ == nullptr) return;
  try {
    here_->synchronize();
  } catch (...) {
    // Told already, or to be told, by whoever waits for the stream's work.
  }
}

StagedTransport::Plan StagedTransport::plan(const Collective& collective, device::Stream& here) {
  Plan plan;
  plan.staged = collective;
  const std::size_t size = kernels::size_of(collective.type);
  const auto hold = [&](std::int64_t elems) {
    plan.buffers.push_back(staging_->here->memory().allocate(
        static_cast<std::size_t>(elems) * size, {instrumentation::MemoryCategory::temporary}, here));
    return static_cast<std::byte*>(plan.buffers.back().data());
  };
  for (Part& part : plan.staged.parts) {
    const auto extent = static_cast<std::size_t>(part.extent) * size;
    const auto elems = static_cast<std::size_t>(part.elems) * size;
    const Part given = part;
    switch (collective.op) {
      case CollectiveOp::all_gather: {
        std::byte* full = hold(part.extent * world_);
        part.target = full;
        part.source = full + rank_ * extent;
        plan.out.push_back({full + rank_ * extent, given.source, extent});
        plan.back.push_back({given.target, full, extent * world_});
        break;
      }
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
        break;
    }
  }
  return plan;
}

void StagedTransport::move(const Collective& collective, const kernels::Exec& /*exec*/) {
  device::Stream& there = stream_of(staging_->there, collective.lane);
  device::Stream& here = stream_of(*staging_->here, collective.lane);
  here_ = &here;
  Plan plan = this->plan(collective, here);
  for (const Copy& copy : plan.out) staging_->there.copy_async(copy.to, copy.from, copy.bytes, there);
  there.record(*copied_);
  here.wait(*copied_);
  here.run([host = host_, staged = std::move(plan.staged)](const kernels::Exec& exec) {
    host->enter(staged);
    host->move(staged, exec);
    host->leave(staged);
  });
  here.record(*done_);
  there.wait(*done_);
  for (const Copy& copy : plan.back) staging_->there.copy_async(copy.to, copy.from, copy.bytes, there);
  // The buffers are free now in host order. Their next user is a copy on the same CUDA stream, after these.
}

}  // namespace shardscope::comm
