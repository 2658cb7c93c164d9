// Values passed between nodes, and the data that a visit keeps for backward.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/types.h"
#include "runtime/device/device.h"
#include "runtime/model/program.h"

namespace shardscope::model {

/// An activation or the gradient of one: [N, width] row-major on the device, N = B*T. Shared, because an
/// activation is read by several nodes (a residual sum, a layer that keeps its input) in an order that
/// the model file decides: the last holder to drop it frees it, in the compute stream's order.
class Value {
 public:
  Value() = default;
  /// Memory owned by someone else, who must keep it alive.
  Value(kernels::Ptr data, std::int64_t width, bool needs_grad)
      : data_(data), width_(width), needs_grad_(needs_grad) {}
  Value(device::Buffer buffer, kernels::DType type, std::int64_t width, bool needs_grad)
      : buffer_(std::make_shared<device::Buffer>(std::move(buffer))),
        data_{buffer_->data(), type},
        width_(width),
        needs_grad_(needs_grad) {}

  [[nodiscard]] kernels::Ptr ptr() const noexcept { return data_; }
  [[nodiscard]] std::int64_t width() const noexcept { return width_; }
  [[nodiscard]] bool needs_grad() const noexcept { return needs_grad_; }
  /// Marks the value as needing a gradient.
  void need_grad() noexcept { needs_grad_ = true; }
  [[nodiscard]] explicit operator bool() const noexcept { return data_.data != nullptr; }
  /// Whether this is the last reader, which may overwrite the memory.
  [[nodiscard]] bool sole_owner() const noexcept { return buffer_ != nullptr && buffer_.use_count() == 1; }
  void reset() { *this = Value(); }

 private:
  std::shared_ptr<device::Buffer> buffer_;  ///< [N, width] of data_'s type; null: somebody else's memory
  kernels::Ptr data_;                       ///< [N, width], row-major
  std::int64_t width_ = 0;                  ///< elements of a row
  bool needs_grad_ = false;
};

/// One visit of a node in forward: what its backward needs. A node that is visited twice (reuse) has
/// two frames; a skipped conditional has none.
struct Frame {
  const Node* node = nullptr;
  bool input_grad = false;    ///< backward must compute the gradient of the input
  bool output_grad = false;   ///< anything in here learns
  bool checkpointed = false;  ///< only x is kept; the rest comes from a recomputation
  /// Content of a GELU's x: its input, or the data kept by the linear layer before it; done: its gradient is
  /// already applied.
  enum class Gelu : std::uint8_t { input, kept, done };
  Gelu gelu = Gelu::input;
  Value x;  ///< input, or what `gelu` says; attention: [N, 3C], q | k | v
  Value y;  ///< output, if backward reads it: attention, [N, C]
  /// fp32. Layer norm: [2, N], mean then reciprocal standard deviation of each row. Attention: [B, heads, T],
  /// log-sum-exp of each row of scores.
  device::Buffer stats;
  std::vector<std::unique_ptr<Frame>> children;  ///< in order of the visits
};

}  // namespace shardscope::model
