// `_core.GradientHook`: a hook of a tensor, called when its gradient is ready, that begins or ends the
// backward of a module's call.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "module_backward.h"

namespace shardscope::python {

/// Where gradient hooks report to. Lives as long as its Python object, which every hook keeps alive.
struct BackwardHooks {
  ModuleBackward backward;
  nanobind::object failed;  ///< called with an exception of a hook, which is not rethrown
  bool on = false;          ///< whether hooks have an effect
};

/// A new hook; `owner`: the Python object that `hooks` is part of.
nanobind::object gradient_hook(BackwardHooks& hooks, nanobind::handle owner,
                               std::shared_ptr<const ModuleCall> call, bool begins);

void add_gradient_hook(nanobind::module_& module);

}  // namespace shardscope::python
