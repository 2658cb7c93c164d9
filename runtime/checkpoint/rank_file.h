// One rank's file of a checkpoint: master weights, momentum and variance of its slices (weights only of
// frozen parameters, which come last), one fp32 tensor each, and ZenFlow's pending sum and parameters.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/state_kind.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/safetensors.h"

namespace shardscope::checkpoint {

/// Name of a tensor: "fp32", "exp_avg", "exp_avg_sq" (as in DeepSpeed's checkpoints, docs/zero.md O13), and
/// our own "zenflow_sum", "zenflow_published".
[[nodiscard]] const char* tensor_name(base::StateKind kind) noexcept;
/// int32: ZenFlow's chosen columns of the rank that wrote it (optim::OptimizerState::chosen_columns).
inline constexpr const char* kColumnsName = "zenflow_columns";
[[nodiscard]] std::string rank_file_name(std::uint32_t rank);

class RankFileWriter {
 public:
  /// `elems` of each of `kinds`, `frozen_elems` more of master weights, and chosen columns if any. Throws
  /// CheckpointError with the file's path, as all members do.
  RankFileWriter(const std::filesystem::path& folder, std::uint32_t rank, std::int64_t elems,
                 std::vector<base::StateKind> kinds = {base::kStateKinds.begin(), base::kStateKinds.end()},
                 const std::vector<std::int32_t>& columns = {}, std::int64_t frozen_elems = 0);
  /// Writes elements [first, first + values.size()) of the tensor of `kind`.
  void write(base::StateKind kind, std::int64_t first, std::span<const float> values);
  /// Flushes to the disk; returns name, size and checksums.
  [[nodiscard]] RankFile finish();

 private:
  std::filesystem::path path_;
  std::vector<base::StateKind> kinds_;
  SafetensorsWriter file_;
};

}  // namespace shardscope::checkpoint
