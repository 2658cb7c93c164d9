// Weights of a model in one safetensors file: by GPT-2's names for GPT models, by module path otherwise.
//
// [Note: GPT-2 names]
// Hugging Face's GPT-2 keeps c_attn, c_proj and c_fc as Conv1D, whose weight is [in,out]; a linear layer here
// has [out,in]. So tensors of these names are transposed when read and when written; only the name decides,
// because a square weight does not show its layout. The prefix "transformer." may be missing, as in the
// published files.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/dtype.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/plan/model_plan.h"
#include "runtime/plan/partition.h"

namespace shardscope::checkpoint {

/// Finds each parameter of a model in a file and reads any range of it.
class WeightReader {
 public:
  /// Throws CheckpointError: unreadable file, missing parameters or other shapes (all are listed), a type
  /// that is not for weights.
  WeightReader(const std::string& path, const plan::ModelPlan& model);
  /// Elements `range` of the parameter (row-major in the model's shape) to `out`, as fp32. Reads only the
  /// pages that contain them. Throws CheckpointError on a NaN or an infinity, naming tensor and element.
  void read(plan::ParamId param, plan::Range range, float* out) const;
  /// Checksum of the model's parameters in the file: types and all bytes. Reads all of them.
  [[nodiscard]] std::uint64_t checksum() const;
  /// Names of tensors in the file that the model does not use.
  [[nodiscard]] const std::vector<std::string>& unused() const noexcept { return unused_; }

 private:
  struct Source {
    const TensorInfo* tensor = nullptr;
    bool transposed = false;
  };
  void read_unchecked(const Source& source, plan::Range range, float* out) const;
  const plan::ModelPlan& model_;
  SafetensorsReader file_;
  std::vector<Source> sources_;  ///< by ParamId
  std::vector<std::string> unused_;
};

/// Writes every parameter of a model once, in any order, then finishes. The file gets its name only when it
/// is complete.
class WeightWriter {
 public:
  WeightWriter(const std::string& path, const plan::ModelPlan& model, kernels::DType type);
  /// The whole parameter in the model's shape, fp32.
  void write(plan::ParamId param, std::span<const float> values);
  /// Throws CheckpointError if a parameter was not written or the disk is full.
  void finish();

 private:
  const plan::ModelPlan& model_;
  SafetensorsWriter file_;
  std::vector<bool> written_;
};

}  // namespace shardscope::checkpoint
