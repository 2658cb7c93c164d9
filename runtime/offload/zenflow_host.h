// ZenFlow's part in host memory: fp32 states of the whole owned range, the accumulating sum of gradients, and
// the update with a complete sum, which may run piece by piece during the steps of the next interval.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "kernels/ops.h"
#include "runtime/base/state_kind.h"
#include "runtime/execution/event_pool.h"
#include "runtime/offload/zenflow_optimizer.h"

namespace shardscope::offload {

class ZenFlowHost {
 public:
  /// States are initially zero. All arguments must outlive this object.
  ZenFlowHost(const ZenFlowInput& input, execution::EventPool& events);

  [[nodiscard]] float* states(base::StateKind kind) const noexcept;

  /// Queues adding this step's gradients, unscaled and clipped by their own norm, to the current sum.
  void add_to_sum(std::int64_t steps_in_sum, const kernels::AdamW& settings);
  /// The sum of `steps` gradients is complete: its update may be queued, and the next sum begins, with
  /// overlap_step in the other buffer, unless `at_once`.
  enum class Run : std::uint8_t { at_once, beside };
  void begin(std::int64_t steps, plan::UpdateCause cause, std::uint32_t step, const kernels::AdamW& settings,
             Run run);
  /// Queues the pieces of the update in flight that are due at the `steps_in_sum`th step of the next
  /// interval.
  void advance(std::int64_t steps_in_sum, std::uint32_t step);
  /// Queues the rest of the update in flight, then the copy of its parameters to the device; the compute
  /// stream waits.
  void publish(std::uint32_t step);
  /// Whether an update is in the states, or in flight, but not yet in the parameters.
  [[nodiscard]] bool unpublished() const noexcept { return unpublished_; }
  /// Queues writing the device's parameters from the master weights; once after continue_unpublished() from
  /// the restored parameters instead.
  void publish_states();
  /// Waits until the update in flight has finished in host memory.
  void settle(std::uint32_t step);

  /// Reads elements of the current sum, or of the parameters as on the device. Call after settle(); waits.
  void read_sum(plan::Range range, float* to) const;
  void read_published(plan::Range range, float* to) const;
  /// The reverse, for a resumed run. Call write_published() after continue_unpublished().
  void write_sum(plan::Range range, const float* from);
  void write_published(plan::Range range, const float* from);
  /// The restored states include an update that the parameters of write_published() lack: it is published at
  /// the end of the interval.
  void continue_unpublished();

 private:
  /// Staging buffers of one piece, [min(elems, piece_elems)] each in host memory.
  struct Piece {
    device::Buffer raw;                    ///< gradients from the device, in their type
    device::Buffer wide;                   ///< these in fp32; empty if they are fp32 already
    device::Buffer rounded;                ///< updated parameters in the storage type; empty in fp32
    std::unique_ptr<device::Event> taken;  ///< the worker has read the gradients from the device
    std::unique_ptr<device::Event> sent;   ///< the copy stream has read the parameters to send
  };

  [[nodiscard]] std::size_t piece_bytes(kernels::DType type) const noexcept;
  [[nodiscard]] plan::Range piece_range(std::int64_t piece) const noexcept;
  [[nodiscard]] Piece& next_piece() noexcept;
  void queue(std::int64_t end, std::uint32_t step);
  void publish_from(const float* values);
  /// read_published() for parameters that are not in place.
  void read_stored(plan::Range range, float* to) const;

  const ZenFlowInput& in_;
  device::Device& device_;
  execution::EventPool& events_;
  device::Arena& pool_;
  device::Buffer master_, momentum_, variance_;  ///< [elems] fp32, of the worker stream
  std::array<device::Buffer, 2> sums_;           ///< [elems] fp32: gradients; the second with overlap_step
  std::size_t filling_ = 0;                      ///< which sum this interval adds to
  std::int64_t pieces_ = 0;
  std::array<Piece, 2> staging_;
  std::size_t next_ = 0;

  kernels::AdamW settings_;  ///< of the update in flight
  float* sum_ = nullptr;     ///< its gradients
  std::int64_t done_ = 0;    ///< its pieces queued
  std::int64_t interval_ = 1;
  bool unpublished_ = false;
  bool restored_ = false;  ///< the idle sum buffer holds the restored published parameters
};

}  // namespace shardscope::offload
