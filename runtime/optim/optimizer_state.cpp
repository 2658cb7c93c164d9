#include "runtime/optim/optimizer_state.h"

#include <algorithm>
#include <utility>

#include "runtime/execution/event_pool.h"
#include "runtime/execution/events.h"

namespace shardscope::optim {
namespace {

namespace ev = shardscope::instrumentation;

std::size_t fp32_bytes(std::int64_t elems) { return static_cast<std::size_t>(elems) * sizeof(float); }

template <typename Pointer>
Pointer offset(Pointer base, std::int64_t elems) {
  using Byte = std::conditional_t<std::is_same_v<Pointer, kernels::Ptr>, std::byte, const std::byte>;
  return {static_cast<Byte*>(base.data) + elems * static_cast<std::int64_t>(kernels::size_of(base.type)),
          base.type};
}

class DeviceOptimizer final : public OptimizerState {
 public:
  DeviceOptimizer(device::Device& device, ParamSink& params, kernels::ConstPtr gradient,
                  std::vector<plan::Range> sub_groups)
      : device_(device),
        params_(params),
        gradient_(gradient),
        type_(params.type()),
        groups_(std::move(sub_groups)),
        elems_(groups_.empty() ? 0 : groups_.back().end),
        events_(device) {
    const bool in_place = params_.in_place();
    if (type_ != kernels::DType::f32 || !in_place) master_ = make_zeroed(ev::MemoryCategory::master_weight);
    momentum_ = make_zeroed(ev::MemoryCategory::momentum);
    variance_ = make_zeroed(ev::MemoryCategory::variance);
    if (in_place || type_ == kernels::DType::f32) return;
    std::int64_t longest = 0;
    for (const plan::Range& group : groups_) longest = std::max(longest, group.size());
    rounded_ = device.memory().allocate(static_cast<std::size_t>(longest) * kernels::size_of(type_),
                                        {ev::MemoryCategory::temporary}, device.compute());
  }

  void begin_update() override {}
  void copy_gradients(std::uint32_t group, kernels::ConstPtr owned) override {
    const plan::Range range = groups_[group];
    copy_ = device_.memory().allocate(fp32_bytes(range.size()), {ev::MemoryCategory::grad_shard},
                                      device_.compute());
    device_.compute().run(
        [to = kernels::Ptr{copy_.data(), kernels::DType::f32}, from = offset(owned, range.begin),
         n = range.size()](const kernels::Exec& exec) { kernels::cast(exec, to, from, n); });
  }
  void update(std::uint32_t group, std::uint32_t step, const kernels::AdamW& settings) override {
    const plan::Range range = groups_[group];
    const kernels::ConstPtr gradients =
        copy_ ? kernels::ConstPtr{copy_.data(), kernels::DType::f32} : offset(gradient_, range.begin);
    const ev::Fields<ev::EventKind::optimizer_begin> fields{
        .sub_group = group, .step = step, .elems = range.size()};
    execution::emit_on<ev::EventKind::optimizer_begin>(device_.compute(), fields);
    device_.compute().run([master = at(base::StateKind::master, range),
                           m = at(base::StateKind::momentum, range), v = at(base::StateKind::variance, range),
                           rounded = rounded(range), grad = gradients, n = range.size(),
                           settings](const kernels::Exec& exec) {
      kernels::adamw_step(exec, master, m, v, rounded, grad, n, settings);
    });
    execution::emit_end_on<ev::EventKind::optimizer_begin>(device_.compute(), fields);
    copy_.reset();
    put(range, group);
  }

  void finish_update() override {
    if (!params_.in_place()) events_.order(device_.copy(), device_.compute());
  }

  void publish_params() override {
    for (std::uint32_t group = 0; group < groups_.size(); ++group) {
      const plan::Range range = groups_[group];
      if (type_ != kernels::DType::f32) {
        device_.compute().run([to = rounded(range), master = at(base::StateKind::master, range),
                               n = range.size()](const kernels::Exec& exec) {
          kernels::cast(exec, to, {master, kernels::DType::f32}, n);
        });
      }
      put(range, group);
    }
    finish_update();
  }

  void read(base::StateKind kind, plan::Range range, float* to) override {
    for_sub_groups(range, [&](plan::Range part) {
      device_.copy_async(to + (part.begin - range.begin), at(kind, part), fp32_bytes(part.size()),
                         device_.compute());
    });
    device_.compute().synchronize();
  }
  void write(base::StateKind kind, plan::Range range, const float* from) override {
    for_sub_groups(range, [&](plan::Range part) {
      device_.copy_async(at(kind, part), from + (part.begin - range.begin), fp32_bytes(part.size()),
                         device_.compute());
    });
    device_.compute().synchronize();
  }

 private:
  [[nodiscard]] device::Buffer make_zeroed(ev::MemoryCategory category) {
    device::Stream& stream = device_.compute();
    device::Buffer buffer = device_.memory().allocate(fp32_bytes(elems_), {category}, stream);
    stream.run([data = buffer.data(), bytes = buffer.bytes()](const kernels::Exec& exec) {
      kernels::fill_zero(exec, data, bytes);
    });
    return buffer;
  }

  /// Calls visit(part) for the part of `range` in each sub-group: parameters in place need not be contiguous.
  template <typename Visit>
  void for_sub_groups(plan::Range range, const Visit& visit) const {
    for (const plan::Range& group : groups_) {
      if (const plan::Range part = plan::intersect(range, group); part.size() > 0) visit(part);
    }
  }

  /// Elements of one sub-group.
  [[nodiscard]] float* at(base::StateKind kind, plan::Range range) const {
    switch (kind) {
      case base::StateKind::master:
        return master_ ? static_cast<float*>(master_.data()) + range.begin
                       : static_cast<float*>(params_.at(range).data);
      case base::StateKind::momentum:
        return static_cast<float*>(momentum_.data()) + range.begin;
      case base::StateKind::variance:
        return static_cast<float*>(variance_.data()) + range.begin;
      case base::StateKind::waiting_sum:
      case base::StateKind::published:
        break;  // ZenFlow's; not among kinds() here
    }
    return nullptr;
  }

  /// Destination of the kernel's 16-bit parameters; null in fp32.
  [[nodiscard]] kernels::Ptr rounded(const plan::Range& range) const {
    if (type_ == kernels::DType::f32) return {nullptr, type_};
    return params_.in_place() ? params_.at(range) : kernels::Ptr{rounded_.data(), type_};
  }

  /// Offloaded parameters are sent on the copy stream.
  void put(const plan::Range& range, std::uint32_t group) {
    if (params_.in_place()) return;
    events_.order(device_.compute(), device_.copy());
    if (rounded_) {
      params_.put(range, rounded_.data(), group);
      events_.order(device_.copy(), device_.compute());  // the next group writes the same buffer
    } else {
      params_.put(range, at(base::StateKind::master, range), group);
    }
  }

  device::Device& device_;
  ParamSink& params_;
  const kernels::ConstPtr gradient_;
  const kernels::DType type_;
  const std::vector<plan::Range> groups_;
  const std::int64_t elems_;
  execution::EventPool events_;
  device::Buffer master_, momentum_,
      variance_;            ///< [elems_] fp32; no master_ if parameters are fp32 in place
  device::Buffer copy_;     ///< [elems of a group] fp32: the gradients of the group that is updated next
  device::Buffer rounded_;  ///< [elems of the largest group], storage type; if parameters are offloaded
};

}  // namespace

std::unique_ptr<OptimizerState> make_device_optimizer(device::Device& device, ParamSink& params,
                                                      kernels::ConstPtr gradient,
                                                      std::vector<plan::Range> sub_groups) {
  return std::make_unique<DeviceOptimizer>(device, params, gradient, std::move(sub_groups));
}

}  // namespace shardscope::optim
