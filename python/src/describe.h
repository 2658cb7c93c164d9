// The class `_core.Run`: a run of this process, described, started and ended from Python.
#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {

void add_run(nanobind::module_& module);

}  // namespace shardscope::python
