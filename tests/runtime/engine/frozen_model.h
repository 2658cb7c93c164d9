// Sample models with frozen parameters, as people freeze them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/plan/model_plan.h"
#include "tests/runtime/engine/support.h"

namespace shardscope::engine::testing {

enum class Freeze {
  bottom,    ///< embeddings or first layer and first block: nothing learns below the second block
  adapters,  ///< all but the normalisations and second layer of each block, which gradients reach through the
             ///< rest
  weights,   ///< all but biases (BitFit)
  top,       ///< head or last layer, and the last block: what learns is below
};
inline constexpr Freeze kFreezings[] = {Freeze::bottom, Freeze::adapters, Freeze::weights, Freeze::top};

inline std::string name_of(Freeze freeze) {
  switch (freeze) {
    case Freeze::bottom:
      return "bottom";
    case Freeze::adapters:
      return "adapters";
    case Freeze::weights:
      return "weights";
    case Freeze::top:
      return "top";
  }
  return "?";
}

inline void freeze_nodes(plan::NodeSpec& node, Freeze freeze) {
  const auto is = [&](std::vector<std::string> names) {
    return std::find(names.begin(), names.end(), node.name) != names.end();
  };
  switch (freeze) {
    case Freeze::bottom:
      if (is({"inp", "wte", "wpe", "0"})) node.trainable = false;
      break;
    case Freeze::adapters:
      if (is({"ln", "ln1", "fc2"})) node.trainable = true;
      break;
    case Freeze::weights:
      if (node.kind == plan::NodeKind::linear && node.bias) node.trainable_bias = true;
      break;
    case Freeze::top:
      if (is({"out", "head", "lnf", "1", "2"})) node.trainable = false;
      break;
  }
  for (plan::NodeSpec& child : node.children) freeze_nodes(child, freeze);
}

inline plan::ModelSpec frozen_model(const std::string& name, Freeze freeze) {
  plan::ModelSpec spec = model_named(name);
  freeze_nodes(spec.root, freeze);
  if (freeze == Freeze::adapters || freeze == Freeze::weights) spec.root.trainable = false;
  return spec;
}

/// Frozen weights after training are bitwise those before it, in the type they are held in; all others have
/// changed. "" or what is otherwise.
inline std::string wrongly_trained(const plan::ModelPlan& model, const TrainingRun& before,
                                   const TrainingRun& after) {
  for (const plan::ParamPlan& param : model.params) {
    const bool same = before.weights[plan::raw(param.id)] == after.weights[plan::raw(param.id)];
    if (same == param.trainable) return param.name + (same ? " did not learn" : " is frozen and changed");
  }
  return "";
}

/// The run's state before its first step.
inline TrainingRun untrained(RunSpec spec) {
  spec.steps = 0;
  return train(spec);
}

}  // namespace shardscope::engine::testing
