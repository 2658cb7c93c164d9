// Records of the GPU: libshardscope_gpu.so, loaded from beside this extension where a run has a GPU.
#pragma once

#include <nanobind/nanobind.h>

#include "shardscope/shardscope.h"

namespace shardscope::python {

/// Begins to record whenever the level asks for it. `compute`: cudaStream_t. Raises ValueError where there is
/// no library.
void record_gpu_of(shardscope_run* run, std::uintptr_t compute);
void add_gpu_records(nanobind::module_& module);

}  // namespace shardscope::python
