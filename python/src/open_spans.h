#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {

/// `OpenSpans`: spans of modules that are open in the compute lane.
void add_open_spans(nanobind::module_& module);

}  // namespace shardscope::python
