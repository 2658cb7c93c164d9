#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {

/// `ModuleHooks`: hooks that DeepSpeed's stage 3 calls for every module of every pass.
void add_module_hooks(nanobind::module_& module);

}  // namespace shardscope::python
