#include "runtime/offload/optimizer.h"

#include <algorithm>
#include <utility>

#include "runtime/offload/transfer.h"

namespace shardscope::offload {
namespace {

using base::StateKind;
using optim::OptimizerState;

/// Twin-Flow (ratio): the device updates the first sub-groups, the host the others, in parallel.
class SplitOptimizer final : public OptimizerState {
 public:
  SplitOptimizer(std::unique_ptr<OptimizerState> device, std::unique_ptr<OptimizerState> host,
                 std::uint32_t first_host_group, std::int64_t first_host_elem)
      : device_(std::move(device)),
        host_(std::move(host)),
        first_group_(first_host_group),
        first_elem_(first_host_elem) {}

  // Both begin before either updates: the device's sub-groups run on its streams in parallel to the host's on
  // the worker.
  void begin_update() override {
    device_->begin_update();
    host_->begin_update();
  }
  void copy_gradients(std::uint32_t group, kernels::ConstPtr owned) override {
    if (group < first_group_) device_->copy_gradients(group, owned);
  }
  void update(std::uint32_t group, std::uint32_t step, const kernels::AdamW& settings) override {
    (group < first_group_ ? *device_ : *host_).update(group, step, settings);
  }
  void finish_update() override {
    device_->finish_update();
    host_->finish_update();
  }
  void publish_params() override {
    device_->publish_params();
    host_->publish_params();
  }
  [[nodiscard]] std::string describe_swap() const override { return host_->describe_swap(); }
  void read(StateKind kind, plan::Range range, float* to) override {
    const plan::Range low = plan::intersect(range, {0, first_elem_});
    const plan::Range high{std::max(range.begin, first_elem_), range.end};
    if (low.size() > 0) device_->read(kind, low, to);
    if (high.size() > 0) host_->read(kind, high, to + (high.begin - range.begin));
  }
  void write(StateKind kind, plan::Range range, const float* from) override {
    const plan::Range low = plan::intersect(range, {0, first_elem_});
    const plan::Range high{std::max(range.begin, first_elem_), range.end};
    if (low.size() > 0) device_->write(kind, low, from);
    if (high.size() > 0) host_->write(kind, high, from + (high.begin - range.begin));
  }

 private:
  const std::unique_ptr<OptimizerState> device_, host_;
  const std::uint32_t first_group_;
  const std::int64_t first_elem_;
};

}  // namespace

std::unique_ptr<OptimizerState> make_optimizer(device::Device& device, optim::ParamSink& params,
                                               kernels::DType type, const optim::GradientParts& gradient,
                                               const std::vector<plan::Range>& sub_groups,
                                               const plan::ZeroConfig& zero) {
  const plan::OffloadOptimizerConfig& offload = zero.offload_optimizer;
  // Sub-groups [0, first) are the device's, the rest the host's; 0 where all are offloaded.
  const std::uint32_t first = plan::first_offloaded_group(offload, sub_groups.size());
  std::unique_ptr<OptimizerState> on_device, on_host;
  if (first > 0) {
    on_device = optim::make_device_optimizer(device, params, gradient.device,
                                             {sub_groups.begin(), sub_groups.begin() + first});
  }
  if (first < sub_groups.size()) {
    // The same pool for states and for staging of parameters.
    device::Arena& pool = host_pool(device, offload.pin_memory);
    std::unique_ptr<StateStorage> states = offload.device == plan::OffloadDevice::nvme
                                               ? make_swapped_states(device, pool, sub_groups, first, zero)
                                               : make_resident_states(device, pool, sub_groups, first);
    // `params` is the store of both: each writes the range of its own sub-groups.
    on_host = make_host_optimizer(device, params, type, gradient.host, std::move(states), pool);
  }
  // No split if one side has all sub-groups.
  if (!on_host) return on_device;
  if (!on_device) return on_host;
  return std::make_unique<SplitOptimizer>(std::move(on_device), std::move(on_host), first,
                                          plan::first_offloaded_elem(offload, sub_groups));
}

}  // namespace shardscope::offload
