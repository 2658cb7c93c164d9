#include "runtime/engine/leaf_gradients.h"

#include "kernels/ops.h"
#include "runtime/plan/leaf_modules.h"

namespace shardscope::engine {
using execution::Context;

using plan::ModuleId;
using plan::ParamId;

LeafGradients::LeafGradients(const Context& context, Gradients& gradients)
    : context_(context),
      gradients_(gradients),
      params_(context.model.modules.size()),
      leaf_of_(context.model.params.size(), plan::kNone<ModuleId>),
      ready_(context.model.params.size(), false),
      visits_(context.model.modules.size(), 0) {
  // C13 applies to stage 3 only: otherwise no parameter has a leaf, and hold() returns false.
  if (context.config.zero.stage != 3) return;
  params_ = plan::leaf_gradients(context.model);
  for (const plan::ModulePlan& module : context.model.modules) {
    // A parameter has at most one leaf: plan::leaf_gradients() returns only those not used outside.
    for (const ParamId param : params_[plan::raw(module.id)]) leaf_of_[plan::raw(param)] = module.id;
  }
}

// A module that is used twice has two backwards; its gradients are complete after the last.
void LeafGradients::entered(ModuleId module) {
  if (!params_[plan::raw(module)].empty()) ++visits_[plan::raw(module)];
}

bool LeafGradients::hold(ParamId param) {
  if (leaf_of_[plan::raw(param)] == plan::kNone<ModuleId>) return false;
  ready_[plan::raw(param)] = true;
  return true;
}

void LeafGradients::left(ModuleId module) {
  std::uint32_t& visits = visits_[plan::raw(module)];
  // 0: a recomputation, which does not enter, or a module that is no leaf with gradients.
  if (visits > 0 && --visits == 0) give(module);
}

void LeafGradients::end_backward() {
  for (const plan::ModulePlan& module : context_.model.modules) {
    std::uint32_t& visits = visits_[plan::raw(module.id)];
    // P12: its input needed no gradient, so left() was not called.
    if (visits > 0) give(module.id);
    visits = 0;
  }
}

void LeafGradients::give(ModuleId module) {
  for (const ParamId param : params_[plan::raw(module)]) {
    // An expert without tokens: other ranks may have its gradient, and every rank must reduce the same list.
    if (!ready_[plan::raw(param)]) {
      const model::GradTarget target = gradients_.target(param);
      context_.device.compute().run(
          [data = target.data.data, bytes = context_.bytes_of(context_.elems_of(param))](
              const kernels::Exec& exec) { kernels::fill_zero(exec, data, bytes); });
    }
    // Before ready(): from then on the gradient belongs to the bucket.
    ready_[plan::raw(param)] = false;
    gradients_.ready(param);
  }
}

}  // namespace shardscope::engine
