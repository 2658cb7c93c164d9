// Stages 0 and 1: one flat gradient buffer beside the flat parameters, reduced in place.
#pragma once

#include <vector>

#include "runtime/engine/gradients.h"

namespace shardscope::engine {

/// Gradients lie in the flat buffer in grad_accum_dtype. With several parameter groups this rank's parts are
/// separate: once all are reduced join_owned() moves them together, over gradients no longer needed. Backward
/// writes there directly or, if that is not the storage type, into a separate buffer that is added to the sum
/// when the gradient is complete.
class ResidentGradients : public Gradients {
 public:
  ResidentGradients(const execution::Context& context, execution::EventPool& events,
                    const plan::Ownership& ownership);

  [[nodiscard]] model::GradTarget target(plan::ParamId param) override;
  [[nodiscard]] optim::GradientParts owned() const override;
  void join_owned() override;

 protected:
  void begin_window() override;
  void joined(plan::ParamId param) override;
  void settle_unused(const std::vector<plan::ParamId>& params) override;
  device::Stream& reduce(const plan::DueFlush& due, comm::CollectiveLabel label, Held& held) override;

  [[nodiscard]] bool apart() const noexcept;
  /// The flat buffer from element `offset` on.
  [[nodiscard]] kernels::Ptr flat_at(std::int64_t offset) const;

 private:
  [[nodiscard]] kernels::Ptr whole(plan::ParamId param) const;
  void zero_padding();
  /// This rank's slices are sent to the host as soon as they are reduced: they are sums over the whole
  /// window.
  device::Stream& offload(const std::vector<plan::ParamId>& params, Held& held);
  void reduce_one_by_one(const plan::DueFlush& due, comm::CollectiveLabel label, Held& held);
  void all_reduce(const std::vector<plan::ParamId>& params, comm::CollectiveLabel label, Held& held);
  void reduce_to_owners(const std::vector<plan::ParamId>& params, comm::CollectiveLabel label, Held& held);

  device::Buffer buffer_;      ///< [flat_elems] sum type, laid out as the flat parameters
  std::vector<bool> written_;  ///< by ParamId: holds a gradient of this accumulation window
  /// By ParamId, [elems] each: gradients being written, in storage type; of the compute stream.
  std::vector<device::Buffer> separate_;
};

}  // namespace shardscope::engine
