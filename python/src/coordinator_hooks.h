#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {

/// `CoordinatorHooks`: hooks before and after methods of DeepSpeed's parameter coordinator.
void add_coordinator_hooks(nanobind::module_& module);

}  // namespace shardscope::python
