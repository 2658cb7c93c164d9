// `_core.resident_bytes()`: what this process holds in memory, by the kernel's count.
#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {
void add_resident_memory(nanobind::module_& module);
}  // namespace shardscope::python
