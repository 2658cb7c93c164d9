// Copies micro-batches to the device: two slots, so that the next batch is copied while the current one is
// computed, and the host is never more than two micro-steps ahead. A slot grows to the size of its largest
// batch.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "runtime/data/stream.h"
#include "runtime/device/device.h"
#include "runtime/execution/event_pool.h"
#include "runtime/model/executor.h"

namespace shardscope::engine {

class InputStaging {
 public:
  InputStaging(device::Device& device, execution::EventPool& events);

  /// Queues the copy on the copy stream and makes the compute stream wait for it. The result is valid
  /// until the second next call. `batch` may be changed when this returns.
  [[nodiscard]] model::Batch stage(const data::HostBatch& batch);
  /// The work that reads the last staged batch is queued.
  void done();

 private:
  struct Slot {
    device::Buffer pinned, device;        ///< a whole batch: tokens and targets [B,T], or inputs and labels
    std::int64_t B = 0, T = 0;            ///< shape of the positions stored after the batch on the device
    std::unique_ptr<device::Event> used;  ///< recorded on the compute stream after the last reader
    bool in_use = false;
  };
  device::Device& device_;
  execution::EventPool& events_;
  std::array<Slot, 2> slots_;
  std::size_t next_ = 0;
};

}  // namespace shardscope::engine
