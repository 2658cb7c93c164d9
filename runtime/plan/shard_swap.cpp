#include "runtime/plan/shard_swap.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace shardscope::plan {

ShardSwap::ShardSwap(std::vector<bool> on_nvme, std::uint32_t buffers, Compat compat)
    : on_nvme_(std::move(on_nvme)),
      status_(on_nvme_.size(), SwapStatus::not_available),
      buffers_(buffers),
      compat_(compat) {
  // Empty means that no shard is on NVMe: ready() and gather() then return at once, and read_ahead() reads
  // nothing.
  if (std::find(on_nvme_.begin(), on_nvme_.end(), true) == on_nvme_.end()) on_nvme_.clear();
}

// The reserved buffer serves gathers of shards that were not read ahead, so that any shard can be read.
std::uint32_t ShardSwap::available() const noexcept {
  const std::uint32_t reserved = compat_.reads_ahead_into_last_buffer() ? 0 : 1;
  return buffers_ > used_ + reserved ? buffers_ - used_ - reserved : 0;
}

// Three cases: the run has no shards on NVMe, this one is in memory, or its copy in a buffer is complete or
// being read (the gather then waits for the read).
bool ShardSwap::ready(ParamId param) const noexcept {
  return on_nvme_.empty() || !on_nvme_[raw(param)] || status_[raw(param)] == SwapStatus::buffered;
}

// Callers have checked that a buffer is free: used_ <= buffers_ always holds.
void ShardSwap::buffer(ParamId param) {
  status_[raw(param)] = SwapStatus::buffered;
  ++used_;
}

void ShardSwap::gather(ParamId param) {
  if (on_nvme_.empty() || !on_nvme_[raw(param)]) return;
  if (!compat_.gathered_shards_keep_buffers()) {
    give_back(param);  // copied to the device; a shard not read ahead passes through the reserved buffer
    return;
  }
  // Read ahead: its buffer is counted already.
  if (status_[raw(param)] == SwapStatus::buffered) return;
  if (used_ == buffers_) {
    throw std::runtime_error(
        "parameter " + std::to_string(raw(param)) + " is to be gathered from NVMe, but all " +
        std::to_string(buffers_) +
        " buffers of offload_param hold shards of parameters in use; raise buffer_count, or leave "
        "shardscope.compat.scheduler at \"shardscope\", which frees a buffer once its shard is copied");
  }
  buffer(param);
}

void ShardSwap::release(ParamId param) noexcept {
  // By default the gather has returned the buffer.
  if (compat_.gathered_shards_keep_buffers() && !on_nvme_.empty() && on_nvme_[raw(param)]) give_back(param);
}

// A second call has no effect: a shard gathered without a buffer of its own has nothing to return.
void ShardSwap::give_back(ParamId param) noexcept {
  if (status_[raw(param)] != SwapStatus::buffered) return;
  status_[raw(param)] = SwapStatus::not_available;
  --used_;
}

/// Shards must be read from the files again: the optimizer writes new ones.
void ShardSwap::forget() noexcept {
  std::fill(status_.begin(), status_.end(), SwapStatus::not_available);
  used_ = 0;
}

}  // namespace shardscope::plan
