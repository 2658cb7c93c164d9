// model::Hooks for every stage: passes gates and calls parameters and gradients in order.
#pragma once

#include <cstdint>

#include "runtime/engine/gradients.h"
#include "runtime/engine/host_throttle.h"
#include "runtime/engine/leaf_gradients.h"
#include "runtime/engine/parameters.h"
#include "runtime/execution/context.h"
#include "runtime/model/executor.h"
#include "runtime/plan/backward_ends.h"
#include "runtime/plan/forward_stack.h"
#include "runtime/plan/model_mode.h"
#include "runtime/plan/returned_values.h"

namespace shardscope::engine {

class EngineHooks final : public model::Hooks {
 public:
  EngineHooks(const execution::Context& context, execution::EventPool& events, Parameters& parameters,
              Gradients& gradients);

  void begin_micro_step(std::uint32_t micro_step, std::uint32_t step);
  /// Begins a batch of an evaluation after `step`: only forwards until the next micro-step begins.
  void begin_evaluation(std::uint32_t step);
  /// The executor's backward is queued; gradients that waited for its end become ready.
  void end_backward() { leaves_.end_backward(); }

  void pre_forward(plan::ModuleId module) override;
  void post_forward(plan::ModuleId module) override;
  void begin_recompute(plan::ModuleId block) override;
  void end_recompute(plan::ModuleId block) override;
  void pre_backward(plan::ModuleId module) override;
  void post_backward(plan::ModuleId module) override;
  void use_external(plan::ParamId param, plan::ModuleId module) override;
  [[nodiscard]] kernels::ConstPtr param(plan::ParamId param) override { return parameters_.get(param); }
  [[nodiscard]] model::GradTarget grad(plan::ParamId param) override { return gradients_.target(param); }
  void grad_ready(plan::ParamId param) override {
    // Before a leaf module holds it: the wait must not change the recorded order of completion.
    gradients_.completed(param);
    if (!leaves_.hold(param)) gradients_.ready(param);
  }

 private:
  void return_params(plan::ModuleId module);
  [[nodiscard]] ev::Pass forward_pass() const noexcept {
    return recomputing_ ? ev::Pass::recompute : ev::Pass::forward;
  }

  const execution::Context& context_;
  Parameters& parameters_;
  Gradients& gradients_;
  LeafGradients leaves_;
  plan::BackwardEnds ends_;
  plan::ReturnedValues returned_;
  plan::ForwardStack forwards_;
  HostThrottle throttle_;
  plan::ModelMode mode_ = plan::ModelMode::training;
  std::uint32_t micro_step_ = 0;
  std::uint32_t step_ = 0;
  bool recomputing_ = false;
};

}  // namespace shardscope::engine
