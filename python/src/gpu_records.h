// Records of the GPU: loads libshardscope_gpu.so, beside this extension, in a run with a GPU.
#pragma once

#include <nanobind/nanobind.h>

#include "shardscope/shardscope.h"

namespace shardscope::python {

/// Records while the detail level asks for it. `compute`: cudaStream_t. Raises ValueError if the library is
/// missing.
void record_gpu_of(shardscope_run* run, std::uintptr_t compute);
void add_gpu_records(nanobind::module_& module);

}  // namespace shardscope::python
