// The manifest of a checkpoint folder, as JSON (docs/checkpoint.md): training progress, model and
// configuration, and which elements of each parameter are in which file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/plan/loss_scale.h"
#include "runtime/plan/model_plan.h"
#include "runtime/plan/zenflow.h"

namespace shardscope::checkpoint {

inline constexpr int kFormatVersion = 1;
inline constexpr const char* kManifestName = "manifest.json";

/// Counters and scaler at the boundary between two steps. The learning rate is a function of `updates`.
struct Progress {
  std::int64_t step = 0;        ///< steps made, skipped ones included
  std::int64_t micro_step = 0;  ///< micro-steps made
  std::int64_t updates = 0;     ///< steps that were not skipped: position of optimizer and schedule
  std::optional<plan::LossScaler::Saved> loss_scaler;  ///< of a dynamic scale
  std::optional<plan::ZenFlowProgress> zenflow;        ///< of a run with ZenFlow
};

/// The next sample to read, counted over all ranks, so independent of their number.
struct DataPosition {
  std::int64_t epoch = 0;
  std::int64_t position = 0;  ///< consumed samples of the epoch; generated data: micro-steps
  std::int64_t samples = 0;   ///< of an epoch; 0: generated data
  std::uint64_t seed = 0;
  std::uint64_t fingerprint = 0;
};

/// `elems` elements of a parameter, from `offset` on.
struct FileSlice {
  std::uint32_t param = 0;  ///< index in Manifest::params
  std::int64_t offset = 0;
  std::int64_t elems = 0;
};

/// One rank's file: three fp32 tensors, each the concatenated slices; those of frozen parameters come last
/// and are in the tensor of weights only.
struct RankFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> blocks;  ///< checksums, kBlockBytes each
  std::vector<FileSlice> slices;
};

struct SavedParam {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t elems = 0;
  bool trainable = true;
};

struct Manifest {
  Progress progress;
  DataPosition data;
  std::uint32_t world = 1;
  std::uint32_t stage = 0;
  std::string type;  ///< of parameters while training: fp32, bf16, fp16
  std::string model;
  std::uint64_t model_fingerprint = 0;
  std::vector<SavedParam> params;
  std::string config_json;  ///< the effective configuration
  std::vector<RankFile> files;
};

/// Name, parameters and fingerprint of `model`.
void describe_model(const plan::ModelPlan& model, Manifest& manifest);
/// Equal for models that compute the same function of the same parameters, however they are stored or
/// recomputed.
[[nodiscard]] std::uint64_t model_fingerprint(const plan::ModelPlan& model);

/// The text of manifest.json, its own checksum last.
[[nodiscard]] std::string to_text(const Manifest& manifest);
/// Throws CheckpointError: damaged, another format version, or inconsistent values. The message contains
/// `path`.
[[nodiscard]] Manifest parse_manifest(const std::string& text, const std::string& path);

}  // namespace shardscope::checkpoint
