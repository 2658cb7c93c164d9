// The type `_core.Wrapper`: a framework's function with hooks before and after it, and `_core.Switch`,
// which turns all wrappers of an adapter off. In C, because every call of a wrapped method runs through
// it.
#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {

void add_wrapper(nanobind::module_& module);

/// Whether the object is a Switch; whether it is on.
bool is_switch(PyObject* object);
bool switch_is_on(PyObject* toggle);
/// Passes the current exception to failed(error). False if it must propagate (KeyboardInterrupt): it stays
/// set.
bool report_failure(PyObject* failed);

}  // namespace shardscope::python
