#pragma once

#include <nanobind/nanobind.h>

namespace shardscope::python {

/// `Parts`: what is emitted for each parameter of a gather or a bucket, in one call.
void add_parts(nanobind::module_& module);

}  // namespace shardscope::python
