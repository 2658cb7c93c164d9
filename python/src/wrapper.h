// The type `_core.Wrapper`: a framework's function with what is called ahead of it and after it, and
// `_core.Switch`, which turns all wrappers of an adapter off. In C, because each call of a wrapped method
// passes here.
#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {

void add_wrapper(nanobind::module_& module);

}  // namespace shardscope::python
