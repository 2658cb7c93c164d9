// The folders of a run's checkpoints: DIR/step-N/, whole or not there, and DIR/latest, which names the
// newest.
//
// [Note: a checkpoint appears at once]
// Files are written to DIR/.step-N.partial. Once all are on the disk the folder is renamed to DIR/step-N, or,
// where that exists, exchanged with it in one operation; then DIR/latest is replaced by a rename. Names and
// folders are flushed before what refers to them changes. A process that ends at any instant, or a machine
// that loses power, leaves `latest` naming a whole checkpoint: the one before or the new one. Folders to be
// deleted lose their name first. What a killed run left under names that begin with ".step-" is removed by
// the next save.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/checkpoint/manifest.h"

namespace shardscope::checkpoint {

/// Saves one checkpoint into a folder; used on one rank, on a file system that all ranks see.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Where the files of `step` are written until commit(): the same on every rank.
  [[nodiscard]] std::filesystem::path partial(std::int64_t step) const;
  [[nodiscard]] std::filesystem::path whole(std::int64_t step) const;

  /// Makes partial(step), empty, and the folders above it; removes what a killed run left. Throws
  /// CheckpointError.
  void begin(std::int64_t step) const;
  /// Writes the manifest and makes the checkpoint the latest. Every file is written and flushed. Throws
  /// CheckpointError; the checkpoints before are untouched then.
  void commit(const Manifest& manifest) const;
  /// Removes what begin() made.
  void discard(std::int64_t step) const noexcept;
  /// Removes all but the newest `keep` of the checkpoints up to `step`; 0 keeps all. Later ones, of a run
  /// that was continued from before them, stay until they are saved anew. Throws CheckpointError.
  void prune(std::int64_t step, std::int64_t keep) const;

  /// Whether there is a checkpoint to continue from.
  [[nodiscard]] bool holds_checkpoint() const;

 private:
  std::filesystem::path folder_;
};

/// The folder of one checkpoint: `path` itself if it holds a manifest, else what its `latest` names. Throws
/// CheckpointError.
[[nodiscard]] std::filesystem::path find_checkpoint(const std::filesystem::path& path);

}  // namespace shardscope::checkpoint
