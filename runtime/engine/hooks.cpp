#include "runtime/engine/hooks.h"

#include <algorithm>

#include "runtime/execution/events.h"

namespace shardscope::engine {
using execution::Context;
using execution::EventPool;

EngineHooks::EngineHooks(const Context& context, EventPool& events, Parameters& parameters,
                         Gradients& gradients)
    : context_(context),
      parameters_(parameters),
      gradients_(gradients),
      leaves_(context, gradients),
      ends_(context.config.zero.compat.scheduler),
      returned_(context.model, context.config.zero.compat.scheduler),
      throttle_(context.device, events) {}

void EngineHooks::begin_micro_step(std::uint32_t micro_step, std::uint32_t step) {
  mode_ = plan::ModelMode::training;
  micro_step_ = micro_step;
  step_ = step;
}

void EngineHooks::begin_evaluation(std::uint32_t step) {
  mode_ = plan::ModelMode::evaluation;
  // Its fetches belong to no micro-step.
  micro_step_ = ev::kNoId;
  step_ = step;
}

// The gate comes first at each boundary: a rank held there has not yet performed the boundary's actions; at
// the next gate it has.
void EngineHooks::pre_forward(plan::ModuleId module) {
  context_.gates.pass(ev::GateKind::pre_forward, plan::raw(module));
  // The root: C4, once per micro-step. A recomputation of the root under checkpointing begins no iteration.
  if (plan::raw(module) == 0 && !recomputing_) {
    parameters_.begin_iteration(mode_, micro_step_, step_);
    forwards_.clear();
    returned_.clear();
  }
  forwards_.enter(module);
  if (mode_ == plan::ModelMode::training) {  // the backward decrements these counts
    if (!recomputing_) leaves_.entered(module);
    ends_.forward(module);
  }
  returned_.entered();
  parameters_.acquire(module, forward_pass());
}

void EngineHooks::post_forward(plan::ModuleId module) {
  context_.gates.pass(ev::GateKind::post_forward, plan::raw(module));
  // While the module is on the stack: returned parameters pass to the modules around it (P11) and are not
  // released below.
  return_params(module);
  forwards_.leave();
  returned_.left(module);
  parameters_.release(module, forward_pass());
  // Last: the release must be queued before the host may wait.
  throttle_.module_queued();
}

/// A parameter of another module is read by attribute first, as its forward must do to return it.
void EngineHooks::return_params(plan::ModuleId module) {
  const plan::ModulePlan& plan = context_.model.modules[plan::raw(module)];
  for (const plan::ParamId param : plan.returns) {
    const bool own = std::find(plan.params.begin(), plan.params.end(), param) != plan.params.end();
    if (!own) parameters_.acquire_external(param, module);
    parameters_.return_param(param, module, forwards_.around());
  }
}

void EngineHooks::begin_recompute(plan::ModuleId block) {
  recomputing_ = true;
  // Its first forward ran without a graph, see ReturnedValues.
  returned_.recomputes(block);
}
void EngineHooks::end_recompute(plan::ModuleId) { recomputing_ = false; }

void EngineHooks::pre_backward(plan::ModuleId module) {
  context_.gates.pass(ev::GateKind::pre_backward, plan::raw(module));
  // Under DeepSpeed's hooks a module that returned parameters is fetched once for each, and then once for
  // itself.
  for (std::size_t fetches = 1 + returned_.further_fetches(module); fetches > 0; --fetches) {
    parameters_.acquire(module, ev::Pass::backward);
  }
}

void EngineHooks::post_backward(plan::ModuleId module) {
  context_.gates.pass(ev::GateKind::post_backward, plan::raw(module));
  leaves_.left(module);
  // Parameters of modules that do not report are released at the end of the whole backward.
  if (ends_.reports(module)) parameters_.release(module, ev::Pass::backward);
  throttle_.module_queued();
}

void EngineHooks::use_external(plan::ParamId param, plan::ModuleId module) {
  returned_.read(param);
  parameters_.acquire_external(param, module);
}

}  // namespace shardscope::engine
