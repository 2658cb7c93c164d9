// `_core.Fsdp2Hooks`: the hooks of FSDP2's groups of parameters (fsdp2.py).
#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {

void add_fsdp2_hooks(nanobind::module_& module);

}  // namespace shardscope::python
