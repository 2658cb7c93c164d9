// The type `_core.WatchedAttribute`: an attribute of a class whose assignments are told to a function.
#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {

void add_watched_attribute(nanobind::module_& module);

}  // namespace shardscope::python
