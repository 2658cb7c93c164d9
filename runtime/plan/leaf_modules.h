// Leaf modules of ZeRO-3 (C13): modules that fetch all parameters below them at once, with no hooks inside,
// for parts whose order changes (experts) or that are too fine-grained to fetch one by one.
#pragma once

#include <vector>

#include "runtime/plan/ids.h"
#include "runtime/plan/model_plan.h"
#include "runtime/plan/model_spec.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::plan {

/// Marks as leaf the modules that `leaf_module` names (by type, path or suffix of a path) and those that
/// `stage3_module_granularity_threshold` selects, in addition to those marked in the spec. Returns the spec
/// unchanged in stages other than 3.
///
/// The granularity of a module is parameters / (1 + descendants), where descendants are the composite modules
/// and the innermost ones with parameters; modules over 10^9 parameters, containers (Sequential, ModuleList)
/// and innermost modules have none. From the root down, the first module at or below the threshold is a leaf
/// (deepspeed/runtime/zero/parameter_offload.py).
///
/// Throws std::invalid_argument naming an entry that matches nothing (DeepSpeed warns; its own default
/// classes may match nothing here too), and a leaf that has no forward of its own.
[[nodiscard]] ModelSpec mark_leaf_modules(ModelSpec spec, const ZeroConfig& zero);

/// By ModuleId: the parameters whose gradients wait for the end of this leaf module's backward, in parameter
/// order. Parameters that modules outside share or read are left out: their gradients are complete after the
/// last use.
[[nodiscard]] std::vector<std::vector<ParamId>> leaf_gradients(const ModelPlan& model);

}  // namespace shardscope::plan
