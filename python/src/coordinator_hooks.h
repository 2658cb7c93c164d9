#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {

/// `CoordinatorHooks`: what stands before and after the methods of DeepSpeed's coordinator of fetches.
void add_coordinator_hooks(nanobind::module_& module);

}  // namespace shardscope::python
