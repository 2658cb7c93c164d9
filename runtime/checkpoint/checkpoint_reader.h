// Reads any range of any parameter's state from a checkpoint, whatever ranks and stage it was written with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/state_kind.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/plan/ids.h"
#include "runtime/plan/model_plan.h"
#include "runtime/plan/partition.h"

namespace shardscope::checkpoint {

/// Not for several threads at a time.
class CheckpointReader {
 public:
  /// `path`: DIR (its latest) or DIR/step-N. Reads the manifest only, and looks that every file is there in
  /// its size. Throws CheckpointError naming the file.
  explicit CheckpointReader(const std::filesystem::path& path);
  ~CheckpointReader();
  CheckpointReader(const CheckpointReader&) = delete;
  CheckpointReader& operator=(const CheckpointReader&) = delete;

  [[nodiscard]] const Manifest& manifest() const noexcept { return manifest_; }
  [[nodiscard]] std::string folder() const { return folder_.string(); }
  /// Throws CheckpointError unless the checkpoint is of this model: same parameters, the same of them frozen,
  /// same structure.
  void require_model(const plan::ModelPlan& model) const;

  /// Elements `range` of parameter number `param` to `out`. Reads and verifies the blocks that hold them,
  /// each once. Throws CheckpointError naming file and bytes when a block is damaged, and when other
  /// states than weights are asked of a frozen parameter.
  void read(base::StateKind kind, plan::ParamId param, plan::Range range, float* out) const;
  /// The chosen columns that rank number `rank` wrote; empty where there are none.
  [[nodiscard]] std::vector<std::int32_t> columns(std::uint32_t rank) const;

 private:
  class File;
  /// Where a run of elements of a parameter lies.
  struct Piece {
    std::int64_t offset = 0;
    std::int64_t elems = 0;
    std::uint32_t file = 0;
    std::int64_t at = 0;        ///< first element in the file's row of weights
    std::int64_t state_at = 0;  ///< and in its other rows, which have no frozen parameters
  };
  std::filesystem::path folder_;
  Manifest manifest_;
  std::vector<std::vector<Piece>> pieces_;  ///< by parameter, ascending, without holes
  [[nodiscard]] File& file(std::uint32_t number) const;
  mutable std::vector<std::unique_ptr<File>> files_;  ///< mapped at first use
};

}  // namespace shardscope::checkpoint
