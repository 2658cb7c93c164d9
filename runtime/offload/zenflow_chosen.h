// ZenFlow's part on the device: which elements of the owned range are chosen, their optimizer states packed
// in device memory, and AdamW over them in every step.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/columns.h"
#include "kernels/ops.h"
#include "runtime/base/state_kind.h"
#include "runtime/execution/event_pool.h"
#include "runtime/offload/zenflow_optimizer.h"

namespace shardscope::offload {

class ZenFlowChosen {
 public:
  /// fp32 states of the owned range in host memory: master weights, momentum, variance.
  using HostStates = std::array<float*, 3>;
  /// Initially nothing is chosen. All arguments must outlive this object.
  ZenFlowChosen(const ZenFlowInput& input, execution::EventPool& events, const HostStates& whole);

  /// Whether columns have been chosen: from then on their elements are updated here.
  [[nodiscard]] bool any() const noexcept { return any_; }
  /// Computes the scores of every matrix's columns from this step's gradients, for choose() and masses().
  /// Waits for the device, which is idle after the norm anyway.
  void score();
  /// Chooses columns by score. Moves no states: call bring_back() before, take_out() after.
  void choose(std::uint32_t step, plan::SelectionCause cause);
  /// By matrix over all ranks: the sum of absolute gradients in chosen columns, then in all. From the scores.
  [[nodiscard]] std::vector<double> masses() const;

  /// Copies states of chosen elements from the device back to host memory, unless they are current there.
  /// Waits.
  void bring_back();
  /// The reverse. Waits.
  void take_out();
  /// Queues AdamW over the chosen elements, then writes their new values to the parameters.
  void step(std::uint32_t step, const kernels::AdamW& settings);

  /// The chosen columns of all matrices, each matrix's preceded by their number.
  [[nodiscard]] std::vector<std::int32_t> columns() const;
  /// The reverse; take_out() follows. Throws std::invalid_argument if they do not match the slices.
  void set_columns(const std::vector<std::int32_t>& columns);

 private:
  struct Item {
    plan::ColumnSlice slice;
    std::vector<std::int32_t> columns;  ///< ascending; for a matrix
    std::int64_t packed_offset = 0;     ///< of its elements on the device
    std::int64_t packed_elems = 0;
    std::int64_t chosen_offset = 0;  ///< of its columns in chosen_
    [[nodiscard]] kernels::MatrixPart part() const noexcept {
      return {slice.elems, slice.columns, slice.first_column};
    }
    [[nodiscard]] bool matrix() const noexcept { return slice.columns > 0; }
  };

  /// Scores of every matrix's columns, one matrix after the other.
  [[nodiscard]] const float* scores() const noexcept;
  void choose(Item& item, const float* scores) const;
  /// Assigns contiguous packed offsets to the items after their columns are chosen; queues the copy of the
  /// columns to the device.
  void pack();
  /// The columns of an item in device memory, for kernels of the compute stream.
  [[nodiscard]] const std::int32_t* chosen(const Item& item) const noexcept {
    return static_cast<const std::int32_t*>(chosen_.data()) + item.chosen_offset;
  }
  /// Queues writing the chosen elements' values to the parameters.
  void put();
  void put_where_they_rest();
  /// AdamW over the packed states; in pieces through the device if they are kept on the host.
  void update(const kernels::AdamW& settings);
  void update_by_pieces(const kernels::AdamW& settings);
  /// The chosen elements' new values, packed on the device, in storage type.
  [[nodiscard]] kernels::Ptr values() const noexcept;

  const ZenFlowInput& in_;
  device::Device& device_;
  execution::EventPool& events_;
  const HostStates whole_;
  std::vector<Item> items_;  ///< by slice; read by queued work, changed only when none is queued
  bool any_ = false;
  bool back_ = false;  ///< host memory has the states of the last step
  std::int64_t capacity_ = 0, elems_ = 0, scores_elems_ = 0;
  /// Packed: master weights, momentum, variance, [capacity_] fp32 each; with zenflow.offload in host memory.
  std::array<device::Buffer, base::kStateKinds.size()> states_;
  device::Buffer gradient_, params_;  ///< packed, [capacity_] in the type of gradients, of storage
  /// Device memory for a piece of states kept on the host, [min(capacity_, piece_elems)] fp32 each; `there`:
  /// the copy to the device has finished.
  struct Stage {
    std::array<device::Buffer, base::kStateKinds.size()> states;
    std::unique_ptr<device::Event> there;
  };
  std::array<Stage, 2> stages_;
  device::Buffer chosen_, host_chosen_;  ///< [sum of columns to choose] int32, by item
  device::Buffer scores_, host_scores_;  ///< [scores_elems_] fp32, a score of each column
  /// Host staging memory, [capacity_] fp32: packed states, or values of offloaded parameters.
  device::Buffer moving_;
  /// With Backend::cost, which computes nothing: scores of equal gradients, i.e. the elements of each column.
  /// Otherwise empty.
  std::vector<float> even_scores_;
};

}  // namespace shardscope::offload
