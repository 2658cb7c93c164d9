// The type `_core.Wrapper`: a framework's function with what is called ahead of it and after it, and
// `_core.Switch`, which turns all wrappers of an adapter off. In C, because each call of a wrapped method
// passes here.
#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {

void add_wrapper(nanobind::module_& module);

/// Whether the object is a Switch; and whether that is on.
bool is_switch(PyObject* object);
bool switch_is_on(PyObject* toggle);
/// Hands the exception that is set to failed(error). False where it is none of ours to keep
/// (KeyboardInterrupt): it stays set.
bool report_failure(PyObject* failed);

}  // namespace shardscope::python
