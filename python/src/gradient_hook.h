// `_core.GradientHook`: a hook of a tensor, called when its gradient is ready, that begins and ends the
// backwards of modules' calls.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "module_backward.h"

namespace shardscope::python {

/// Where gradient hooks report to. Lives as long as its Python object, which every hook keeps alive.
struct BackwardHooks {
  nanobind::handle owner{};  ///< that Python object
  ModuleBackward backward;
  nanobind::object failed;  ///< called with an exception of a hook, which is not rethrown
  bool on = false;          ///< whether hooks have an effect
};

/// A new hook that begins or ends the backward of one call.
nanobind::object gradient_hook(BackwardHooks& hooks, std::shared_ptr<const ModuleCall> call, bool begins);
/// The same by the hook that a tensor has already, by the table of its hooks: a module's output is mostly the
/// next one's input. False: it has none. In the backward the last one added is the first.
[[nodiscard]] bool added_to_hook(nanobind::handle table, const BackwardHooks& hooks,
                                 const std::shared_ptr<const ModuleCall>& call, bool begins);

void add_gradient_hook(nanobind::module_& module);

}  // namespace shardscope::python
