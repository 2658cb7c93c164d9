#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {

/// `FetchWaits`: around the wait() of DeepSpeed's handles of gathers.
void add_fetch_waits(nanobind::module_& module);

}  // namespace shardscope::python
