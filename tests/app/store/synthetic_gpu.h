// What CUPTI would have recorded of a synthetic run, had its ranks been GPUs: records through the same join
// that a real rank's go through.
#pragma once

#include "tests/app/store/synthetic_run.h"

namespace shardscope::store {

/// Adds the lanes of the GPU to every rank: kernels within the modules and the optimizer, one per collective,
/// launched ahead of their start, and now and then late.
void add_gpu(SyntheticRun& run);
/// Such a run as a store.
[[nodiscard]] Store make_synthetic_gpu_store(const SyntheticOptions& options = {});
/// Names of its kernels, by id.
[[nodiscard]] const std::vector<std::string>& gpu_names();

}  // namespace shardscope::store
