#include "runtime/train/initial_weights.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "instrumentation/event.h"
#include "runtime/model/init.h"
#include "runtime/train/weight_sums.h"

namespace shardscope::train {
namespace {

using Fill = engine::Engine::FillParam;

/// The model as a script has it before DeepSpeed sees it: every parameter whole, fp32, in host memory.
class WholeModel {
 public:
  WholeModel(const InitialWeights& from, const Fill& fill) {
    const bool broadcast = from.config.zero.compat.broadcast_weights;
    for (const plan::ParamPlan& param : from.model.params) {
      const auto elems = static_cast<std::size_t>(param.elems);
      buffers_.push_back(from.device.host().allocate(
          elems * sizeof(float), {instrumentation::MemoryCategory::temporary, plan::raw(param.id)},
          from.device.worker()));
      const std::span values(static_cast<float*>(buffers_.back().data()), elems);
      if (!broadcast || from.control.rank() == 0) fill(param.id, {0, param.elems}, values.data());
      if (broadcast) from.control.broadcast_host(std::as_writable_bytes(values), 0);
    }
  }
  void copy(plan::ParamId param, plan::Range range, float* to) const {
    const auto* values = static_cast<const float*>(buffers_[plan::raw(param)].data());
    std::memcpy(to, values + range.begin, static_cast<std::size_t>(range.size()) * sizeof(float));
  }

 private:
  std::vector<device::Buffer> buffers_;  ///< by ParamId
};

void set_weights(const InitialWeights& from, const Fill& fill, engine::Engine& engine) {
  WeightSums sums(engine.ownership());
  const auto set = [&](const Fill& values) {
    engine.set_weights([&](plan::ParamId param, plan::Range range, float* to) {
      values(param, range, to);
      sums.add(param, to, range.size());
    });
  };
  if (!from.config.shardscope.zero_init) {
    const WholeModel whole(from, fill);
    set([&](plan::ParamId param, plan::Range range, float* to) { whole.copy(param, range, to); });
  } else if (from.config.zero.compat.broadcast_weights) {
    engine.broadcast_weights(0, fill);
    return;  // alike by construction
  } else {
    set(fill);
  }
  sums.check(from.control);
}

}  // namespace

void set_initial_weights(const InitialWeights& from, engine::Engine& engine) {
  if (from.init != nullptr) {
    set_weights(
        from, [&](plan::ParamId param, plan::Range range, float* to) { from.init->read(param, range, to); },
        engine);
    return;
  }
  const model::Initializer initializer(from.model, model::parse_init_scheme(from.options.init_scheme),
                                       from.options.seed);
  set_weights(
      from, [&](plan::ParamId param, plan::Range range, float* to) { initializer.fill(param, range, to); },
      engine);
}

std::string describe_initial_weights(const config::TrainingConfig& config) {
  const bool whole = !config.shardscope.zero_init;
  const bool broadcast = config.zero.compat.broadcast_weights;
  if (!whole && !broadcast) return "";
  return std::string("initial weights: ") +
         (whole ? "every rank has the whole model in host memory, in fp32, until its part has moved"
                : "one parameter is whole at a time") +
         (broadcast ? "; the values are rank 0's, broadcast" : "");
}

}  // namespace shardscope::train
