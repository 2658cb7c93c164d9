#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {

/// `FetchWaits`: hooks around wait() of DeepSpeed's gather handles.
void add_fetch_waits(nanobind::module_& module);

}  // namespace shardscope::python
