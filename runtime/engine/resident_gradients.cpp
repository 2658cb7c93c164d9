// Stages 0 and 1: one flat gradient buffer beside the flat parameters, reduced in place.
#include <algorithm>

#include "kernels/ops.h"
#include "runtime/engine/events.h"
#include "runtime/engine/gradients.h"
#include "runtime/plan/stage12.h"

namespace shardscope::engine {
namespace {

using plan::ParamId;

class ResidentGradients final : public Gradients {
 public:
  ResidentGradients(const Context& context, EventPool& events, const plan::Ownership& ownership)
      : Gradients(context, events, ownership),
        buffer_(context.device.memory().allocate(context.bytes_of(ownership.flat().flat_elems),
                                                 {ev::MemoryCategory::grad_full, ev::kNoId},
                                                 context.device.compute())),
        written_(context.model.params.size(), false) {
    // Padding stays zero for good: nothing writes it and reductions leave it out.
    context_.device.compute().run([data = buffer_.data(), bytes = buffer_.bytes()](
                                      const kernels::Exec& exec) { kernels::fill_zero(exec, data, bytes); });
  }

  [[nodiscard]] model::GradTarget target(ParamId param) override {
    const bool accumulate = written_[plan::raw(param)];
    written_[plan::raw(param)] = true;
    return {whole(param), accumulate};
  }
  [[nodiscard]] kernels::ConstPtr owned() const override {
    const std::uint32_t range = ownership_.stage() == 0 ? 0 : context_.rank();
    return advance(kernels::ConstPtr{buffer_.data(), context_.type()}, ownership_.owned_elems() * range);
  }

 protected:
  [[nodiscard]] bool reduces_now() const noexcept override { return window().boundary(); }

  void begin_window() override { std::fill(written_.begin(), written_.end(), false); }

  void settle_unused(const std::vector<ParamId>& params) override {
    if (!window().boundary()) return;
    for (const ParamId param : params) {
      if (written_[plan::raw(param)]) {
        // Used in an earlier micro-step of the window only. Without overlap all are added anyway.
        if (context_.config.zero.overlap()) add_to_bucket(param);
        continue;
      }
      const kernels::Ptr gradient = whole(param);
      context_.device.compute().run(
          [gradient, bytes = context_.bytes_of(context_.elems_of(param))](const kernels::Exec& exec) {
            kernels::fill_zero(exec, gradient.data, bytes);
          });
    }
  }

  void reduce(const std::vector<ParamId>& params, comm::CollectiveLabel label,
              std::vector<device::Buffer>&) override {
    for (const ParamId param : params) prescale(whole(param), context_.elems_of(param));
    if (plan::reduce_mode(context_.config.zero) == plan::ReduceMode::to_owners) {
      reduce_to_owners(params, label);
    } else {
      all_reduce(params, label);
    }
  }

 private:
  [[nodiscard]] kernels::Ptr whole(ParamId param) const {
    return advance(kernels::Ptr{buffer_.data(), context_.type()},
                   ownership_.flat().param_offset[plan::raw(param)]);
  }

  /// Neighbours in the flat buffer go together: a bucket is usually one or two runs.
  void all_reduce(const std::vector<ParamId>& params, comm::CollectiveLabel label) {
    for (std::size_t i = 0; i < params.size();) {
      const kernels::Ptr begin = whole(params[i]);
      std::int64_t elems = context_.elems_of(params[i]);
      for (++i; i < params.size() && whole(params[i]).data == advance(begin, elems).data; ++i) {
        elems += context_.elems_of(params[i]);
      }
      context_.reduce_comm.all_reduce(begin.data, elems, context_.type(), mean_factor(),
                                      context_.device.reduce(), label);
    }
  }

  void reduce_to_owners(const std::vector<ParamId>& params, comm::CollectiveLabel label) {
    std::vector<comm::ReducePart> parts;
    for (const ParamId param : params) {
      for (const plan::FlatSlice& slice : ownership_.flat().slices_of(param)) {
        void* at = advance(whole(param), slice.param_offset).data;
        parts.push_back({at, at, slice.elems, slice.rank, plan::raw(param)});
      }
    }
    context_.reduce_comm.reduce(parts, context_.type(), mean_factor(), context_.device.reduce(), label);
  }

  device::Buffer buffer_;
  std::vector<bool> written_;  ///< by ParamId: holds a gradient of this accumulation window
};

}  // namespace

std::unique_ptr<Gradients> make_resident_gradients(const Context& context, EventPool& events,
                                                   const plan::Ownership& ownership) {
  return std::make_unique<ResidentGradients>(context, events, ownership);
}

}  // namespace shardscope::engine
