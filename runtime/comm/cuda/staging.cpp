#include "runtime/comm/cuda/staging.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <string>

#include "runtime/device/cuda/check.h"
#include "runtime/device/error.h"

namespace shardscope::comm {
namespace {

// Blocks are whole MiB: pinning and the region's allocator work on pages.
constexpr std::size_t kUnit = std::size_t{1} << 20;

/// One lane of the device, one of the host: collectives of different lanes do not wait for each other.
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

/// A CPU device used only for its streams: their worker threads run the host side of the collectives. It has
/// no region, since no buffer is allocated from it.
Staging::Staging(device::Device& there, device::SharedRegion* region)
    : there_(there), region_(region), here_(device::make_cpu_device(nullptr)) {
  // The whole region is for staging: with a CUDA device no other memory is allocated from it.
  if (region_ != nullptr) free_.emplace(region_->bytes().size());
}

/// Queued work may still use the blocks: wait before they are freed.
Staging::~Staging() {
  try {
    here_->synchronize();
  } catch (...) {
    // Reported by whatever waits for the streams' work.
  }
  for (Block& block : blocks_) give_back(block);
}

device::Stream& Staging::stream_there(instrumentation::StreamId lane) { return stream_of(there_, lane); }
device::Stream& Staging::stream_here(instrumentation::StreamId lane) { return stream_of(*here_, lane); }

/// Host thread. Grown memory replaces the block, so both streams are drained first: a copy, or a collective
/// whose peers read this block, may still be queued on either.
std::byte* Staging::room(instrumentation::StreamId lane, std::size_t bytes) {
  Block& block = blocks_[static_cast<std::size_t>(lane)];
  // The usual case: as large as the largest collective so far.
  if (bytes <= block.bytes) return block.data;
  stream_there(lane).synchronize();
  stream_here(lane).synchronize();
  // Grows by at least half, so that slowly growing collectives do not pin memory each time.
  const std::size_t wanted = (std::max(bytes, block.bytes + block.bytes / 2) + kUnit - 1) / kUnit * kUnit;
  give_back(block);
  const std::string where = "staging of collectives, " + std::to_string(wanted >> 20) + " MiB";
  void* data = nullptr;
  if (region_ == nullptr) {
    device::cuda::check(cudaHostAlloc(&data, wanted, cudaHostAllocPortable), "cudaHostAlloc", where);
  } else {
    // Allocated after the old block was freed: a lane never has two.
    const auto offset = free_->take(wanted);
    if (!offset)
      throw BackendError("staged collective", 0, "the memory shared with the peers is used up", where);
    data = region_->bytes().data() + *offset;
    // Pinned in place. Portable: every context of the process may copy from it.
    if (const cudaError_t result = cudaHostRegister(data, wanted, cudaHostRegisterPortable);
        result != cudaSuccess) {
      free_->give_back(*offset, wanted);
      device::cuda::check(result, "cudaHostRegister", where);
    }
  }
  block = {static_cast<std::byte*>(data), wanted};
  return block.data;
}

void Staging::give_back(Block& block) noexcept {
  if (block.data == nullptr) return;
  if (region_ == nullptr) {
    cudaFreeHost(block.data);
  } else {
    // Before the pages are discarded: they are locked until then.
    cudaHostUnregister(block.data);
    region_->discard({block.data, block.bytes});
    free_->give_back(static_cast<std::size_t>(block.data - region_->bytes().data()), block.bytes);
  }
  block = {};
}

}  // namespace shardscope::comm
