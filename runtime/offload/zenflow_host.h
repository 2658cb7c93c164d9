// ZenFlow's part in host memory: fp32 states of the whole owned range, the sum of gradients that waits, and
// the update of a complete sum, which may run piece by piece beside the steps of the next interval.
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
  /// States are zero. What is named outlives this.
  ZenFlowHost(const ZenFlowInput& input, execution::EventPool& events);

  [[nodiscard]] float* states(base::StateKind kind) const noexcept;

  /// Queues this step's gradients, unscaled and clipped by their own norm, into the sum that fills.
  void add_to_sum(std::int64_t steps_in_sum, const kernels::AdamW& settings);
  /// The sum of `steps` gradients is complete: its update may be queued, and the next sum begins. With
  /// overlap_step in another buffer, unless `at_once`.
  enum class Run : std::uint8_t { at_once, beside };
  void begin(std::int64_t steps, plan::UpdateCause cause, std::uint32_t step, const kernels::AdamW& settings,
             Run run);
  /// Queues the update in flight as far as it is due when the `steps_in_sum`th step of the next interval is.
  void advance(std::int64_t steps_in_sum, std::uint32_t step);
  /// What is left of the update in flight, then its parameters to the device; the compute stream waits.
  void publish(std::uint32_t step);
  /// An update is in the states, or will be, and not yet in the parameters.
  [[nodiscard]] bool unpublished() const noexcept { return unpublished_; }
  /// Queues making the device's parameters from the master weights; after continue_unpublished() from what
  /// was restored instead, once.
  void publish_states();
  /// Host memory is what it will be: the update in flight is done. Waits.
  void settle(std::uint32_t step);

  /// Elements of the sum that fills, or of the parameters as they are on the device. After settle(); wait.
  void read_sum(plan::Range range, float* to) const;
  void read_published(plan::Range range, float* to) const;
  /// The reverse, of a run to continue. write_published() after continue_unpublished().
  void write_sum(plan::Range range, const float* from);
  void write_published(plan::Range range, const float* from);
  /// The states hold an update whose parameters write_published() will not: it is published at the end of the
  /// interval.
  void continue_unpublished();

 private:
  /// Buffers of a piece on its way, [min(elems, piece_elems)] each in host memory.
  struct Piece {
    device::Buffer raw;                    ///< gradients as they come from the device, in their type
    device::Buffer wide;                   ///< these in fp32; empty where they are
    device::Buffer rounded;                ///< updated parameters in the storage type; empty in fp32
    std::unique_ptr<device::Event> taken;  ///< the worker has read what came from the device
    std::unique_ptr<device::Event> sent;   ///< the copy stream has read what goes there
  };

  [[nodiscard]] std::size_t piece_bytes(kernels::DType type) const noexcept;
  [[nodiscard]] plan::Range piece_range(std::int64_t piece) const noexcept;
  [[nodiscard]] Piece& next_piece() noexcept;
  void queue(std::int64_t end, std::uint32_t step);
  void publish_from(const float* values);
  /// read_published() of parameters that are not in place.
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
  bool restored_ = false;  ///< the sum that does not fill holds parameters as they were published
};

}  // namespace shardscope::offload
