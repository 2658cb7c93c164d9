// Reads any range of any parameter's state from a checkpoint of any world and stage.
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

/// Not thread-safe.
class CheckpointReader {
 public:
  /// `path`: DIR (its latest) or DIR/step-N. Reads the manifest only, and checks that every file exists with
  /// the right size. Throws CheckpointError naming the file.
  explicit CheckpointReader(const std::filesystem::path& path);
  ~CheckpointReader();
  CheckpointReader(const CheckpointReader&) = delete;
  CheckpointReader& operator=(const CheckpointReader&) = delete;

  [[nodiscard]] const Manifest& manifest() const noexcept { return manifest_; }
  [[nodiscard]] std::string folder() const { return folder_.string(); }
  /// Throws CheckpointError unless the checkpoint belongs to this model: same parameters, frozen flags and
  /// structure.
  void require_model(const plan::ModelPlan& model) const;

  /// Reads elements `range` of `param` to `out`. Verifies each block that contains them once. Throws
  /// CheckpointError naming file and bytes if a block is damaged, and for a state other than weights of a
  /// frozen parameter.
  void read(base::StateKind kind, plan::ParamId param, plan::Range range, float* out) const;
  /// The chosen columns written by `rank`; empty if there are none.
  [[nodiscard]] std::vector<std::int32_t> columns(std::uint32_t rank) const;

 private:
  class File;
  /// Location of a range of elements of a parameter.
  struct Piece {
    std::int64_t offset = 0;
    std::int64_t elems = 0;
    std::uint32_t file = 0;
    std::int64_t at = 0;        ///< first element in the file's tensor of weights
    std::int64_t state_at = 0;  ///< the same in its other tensors, which have no frozen parameters
  };
  std::filesystem::path folder_;
  Manifest manifest_;
  std::vector<std::vector<Piece>> pieces_;  ///< by parameter, ascending, without gaps
  [[nodiscard]] File& file(std::uint32_t number) const;
  mutable std::vector<std::unique_ptr<File>> files_;  ///< mapped on first use
};

}  // namespace shardscope::checkpoint
