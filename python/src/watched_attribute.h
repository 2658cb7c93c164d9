// The type `_core.WatchedAttribute`: an attribute of a class with a function that is called after each
// assignment.
#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {

void add_watched_attribute(nanobind::module_& module);

}  // namespace shardscope::python
