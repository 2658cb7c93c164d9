// `_core.resident_bytes()`: resident memory of this process, from the kernel.
#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {
void add_resident_memory(nanobind::module_& module);
}  // namespace shardscope::python
