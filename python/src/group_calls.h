#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {

/// `GroupCalls`: called by torch's hooks of one process group around each collective.
void add_group_calls(nanobind::module_& module);

}  // namespace shardscope::python
