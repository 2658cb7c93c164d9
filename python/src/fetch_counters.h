// `_core.FetchCounters`: the eight counters of the coordinator's profiler.
#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {
void add_fetch_counters(nanobind::module_& module);
}  // namespace shardscope::python
