// Leaf modules of ZeRO-3 (C13): modules that fetch everything below them at once, with no hooks inside, for
// parts whose order changes (experts) or that are too fine to fetch one by one.
#pragma once

#include <vector>

#include "runtime/plan/ids.h"
#include "runtime/plan/model_plan.h"
#include "runtime/plan/model_spec.h"
#include "runtime/plan/zero_config.h"

namespace shardscope::plan {

/// Marks as leaf what `leaf_module` names (by type, by path, by the end of a path) and what
/// `stage3_module_granularity_threshold` calls fine-grained, beside what the spec marks itself. Other stages
/// than 3 have no leaf modules: the spec comes back as it is.
///
/// The granularity of a module is parameters / (1 + descendants), where descendants are the composite modules
/// and the innermost ones with parameters; modules over 10^9 parameters, containers (Sequential, ModuleList)
/// and innermost modules have none. From the root down, the first at or below the threshold is a leaf
/// (deepspeed/runtime/zero/parameter_offload.py).
///
/// Throws std::invalid_argument naming an entry that matches nothing (DeepSpeed warns; its own default
/// classes may match nothing here too), and a leaf that no forward of its own enters.
[[nodiscard]] ModelSpec mark_leaf_modules(ModelSpec spec, const ZeroConfig& zero);

/// By ModuleId: the parameters whose gradients wait for the end of this leaf module's backward, in parameter
/// order. What modules outside share or read stays with the others: it is ready after its last use.
[[nodiscard]] std::vector<std::vector<ParamId>> leaf_gradients(const ModelPlan& model);

}  // namespace shardscope::plan
