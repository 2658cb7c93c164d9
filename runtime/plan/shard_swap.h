// Shards on NVMe and the host buffers they pass through: which shards are read ahead, and which are buffered
// (docs/zero.md C8, C12). Pure: it decides, the engine's ShardStore reads.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan/compat.h"
#include "runtime/plan/ids.h"
#include "runtime/plan/scheduler_compat.h"

namespace shardscope::plan {

/// State of a shard's copy in a host buffer.
enum class SwapStatus : std::uint8_t { not_available, buffered };

/// Compat::shardscope: a buffer is free again as soon as its shard has been copied to the device, and not
/// before, and one buffer is never used for reading ahead, so that a gather can always read a shard that is
/// missing. Shards of parameters gathered or in flight are not read ahead: if the parameter stays for its
/// next use, as persistent ones do, the shard would never leave its buffer, until no buffer is left. So a
/// buffered shard always belongs to a parameter that has to be gathered. Compat::deepspeed: a gathered shard
/// keeps its buffer until the parameter is released, whether it was read ahead or not, and all buffers may be
/// used for reading ahead.
class ShardSwap {
 public:
  ShardSwap() = default;
  /// `on_nvme` by ParamId.
  ShardSwap(std::vector<bool> on_nvme, std::uint32_t buffers, Compat compat);

  /// Whether a prefetch may gather the parameter now: its shard is not on NVMe alone (C8).
  [[nodiscard]] bool ready(ParamId param) const noexcept;
  /// The parameter is being gathered. Throws std::runtime_error under Compat::deepspeed when no buffer is
  /// left, where DeepSpeed fails with "Not enough buffers".
  void gather(ParamId param);
  /// The gathered parameter is released.
  void release(ParamId param) noexcept;
  /// Drops shards read ahead: the optimizer is about to change them.
  void forget() noexcept;
  /// The shards to read ahead, in order: walks the queue of upcoming uses until the parameters visited, with
  /// `elems` by ParamId, exceed twice `in_flight_elems`, or no buffer is left (C12). `resident(param)`: it is
  /// gathered or in flight; DeepSpeed checks only whether its shard is in a buffer.
  template <typename Queue, typename Resident>
  [[nodiscard]] std::vector<ParamId> read_ahead(const Queue& queue, const std::vector<std::int64_t>& elems,
                                                std::int64_t in_flight_elems, const Resident& resident) {
    std::vector<ParamId> chosen;
    if (on_nvme_.empty()) return chosen;
    std::int64_t considered = 0;
    for (const auto& use : queue) {
      if (considered > 2 * in_flight_elems || available() == 0) break;
      if (!ready(use.param) && (compat_.reads_ahead_what_is_gathered() || !resident(use.param))) {
        buffer(use.param);
        chosen.push_back(use.param);
      }
      considered += elems[raw(use.param)];
    }
    return chosen;
  }

  /// Number of free buffers for reading ahead.
  [[nodiscard]] std::uint32_t available() const noexcept;

 private:
  void buffer(ParamId param);
  void give_back(ParamId param) noexcept;

  std::vector<bool> on_nvme_;
  std::vector<SwapStatus> status_;
  std::uint32_t buffers_ = 0;
  std::uint32_t used_ = 0;
  SchedulerCompat compat_{Compat::shardscope};
};

}  // namespace shardscope::plan
