#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {

/// `ModuleCalls`: spans and gates of modules by torch's global hooks of modules.
void add_module_calls(nanobind::module_& module);

}  // namespace shardscope::python
