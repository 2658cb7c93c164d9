// Whole fp32 weights from the files of a checkpoint: no ranks, no device, no model file (docs/zero.md O12,
// DeepSpeed's zero_to_fp32).
#pragma once

#include <string>

namespace shardscope::checkpoint {

/// Writes every parameter to `output` (safetensors, fp32, the names and layouts of WeightWriter), one at a
/// time. `checkpoint`: DIR or DIR/step-N. Throws CheckpointError.
void consolidate(const std::string& checkpoint, const std::string& output);

}  // namespace shardscope::checkpoint
