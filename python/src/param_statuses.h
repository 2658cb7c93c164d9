#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {

/// `ParamStatuses`: what DeepSpeed assigns to Parameter.ds_status, recorded.
void add_param_statuses(nanobind::module_& module);

}  // namespace shardscope::python
