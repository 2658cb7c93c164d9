#include "runtime/engine/optimizer.h"

#include <utility>

#include "runtime/offload/optimizer.h"
#include "runtime/offload/zenflow_optimizer.h"
#include "runtime/plan/zenflow.h"

namespace shardscope::engine {
using execution::Context;

namespace {

std::unique_ptr<optim::OptimizerState> make_zenflow(const Context& context, Parameters& parameters,
                                                    const Gradients& gradients,
                                                    const plan::Ownership& ownership) {
  const plan::ZeroConfig& zero = context.config.zero;
  // All owned gradients are on the device: device_gradients() keeps them there with ZenFlow.
  offload::ZenFlowInput input{.device = context.device,
                              .params = parameters.sink(),
                              .type = context.type(),
                              .gradient = gradients.owned().device,
                              .elems = ownership.owned_elems(),
                              .slices = {},
                              .settings = plan::resolve_zenflow(*zero.zenflow),
                              .matrices = 0,
                              .matrix_of = {},
                              .pin_memory = zero.offload_optimizer.pin_memory,
                              // On the host: a few doubles per matrix, when votes are counted.
                              .sum_over_ranks = [&comm = context.control_comm](std::span<double> sums) {
                                comm.all_reduce_host(sums);
                              }};
  input.slices = plan::column_slices(context.model, ownership, context.rank(), input.settings.topk_ratio);
  // By ParamId; for a parameter that is no trained matrix the entry is not used.
  for (const plan::ParamPlan& param : context.model.params) {
    input.matrix_of.push_back(static_cast<std::uint32_t>(input.matrices));
    if (param.trainable && param.shape.size() == 2) ++input.matrices;
  }
  return offload::make_zenflow_optimizer(std::move(input));
}

}  // namespace

std::unique_ptr<optim::OptimizerState> make_optimizer(const Context& context, Parameters& parameters,
                                                      const Gradients& gradients,
                                                      const plan::Ownership& ownership) {
  const plan::ZeroConfig& zero = context.config.zero;
  // A separate optimizer: it has columns and intervals instead of independently updated sub-groups (O5).
  if (zero.zenflow) return make_zenflow(context, parameters, gradients, ownership);
  return offload::make_optimizer(context.device, parameters.sink(), context.type(), gradients.owned(),
                                 ownership.sub_groups(), zero);
}

kernels::AdamW adamw_of(const config::TrainingConfig& config, std::uint32_t param_group,
                        std::int64_t updates) {
  const config::OptimizerConfig& group = config.param_groups.at(param_group).optimizer;
  const config::TrainingConfig::Betas betas = config.betas(updates, param_group);
  kernels::AdamW settings;
  settings.lr = static_cast<float>(config.learning_rate(updates, param_group));
  settings.beta1 = static_cast<float>(betas.beta1);
  settings.beta2 = static_cast<float>(betas.beta2);
  settings.epsilon = static_cast<float>(group.eps);
  settings.weight_decay = static_cast<float>(group.weight_decay);
  settings.decoupled = group.decoupled;
  // From 1: the bias correction divides by 1 - beta^step.
  settings.step = updates + 1;
  return settings;
}

}  // namespace shardscope::engine
