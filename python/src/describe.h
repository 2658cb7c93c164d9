// The class `_core.Run`: describes, starts and ends the run of this process from Python.
#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {

void add_run(nanobind::module_& module);

}  // namespace shardscope::python
