#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {

/// `CollectiveLane`: collectives of one lane, one open at a time.
void add_collective_lane(nanobind::module_& module);

}  // namespace shardscope::python
