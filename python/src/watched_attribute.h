// The type `_core.WatchedAttribute`: a class attribute that calls a function after each assignment on an
// instance.
#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {

void add_watched_attribute(nanobind::module_& module);

}  // namespace shardscope::python
