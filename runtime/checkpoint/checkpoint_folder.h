// The folders of a run's checkpoints: DIR/step-N/, complete or absent, and DIR/latest, which names the
// newest.
//
// [Note: a checkpoint appears at once]
// Files are written to DIR/.step-N.partial. Once all are on the disk the folder is renamed to DIR/step-N or,
// if that exists, exchanged with it atomically; then DIR/latest is replaced by a rename. Files and folders
// are flushed before a reference to them changes. If a process ends at any time, or the machine loses power,
// `latest` names a complete checkpoint: the previous or the new one. Folders are renamed before they are
// deleted. The next save removes remains of a killed run, whose names begin with ".step-".
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/checkpoint/manifest.h"

namespace shardscope::checkpoint {

/// Saves one checkpoint into a folder; used on one rank, on a file system shared by all ranks.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Where the files of `step` are written until commit(): the same on every rank.
  [[nodiscard]] std::filesystem::path partial(std::int64_t step) const;
  [[nodiscard]] std::filesystem::path whole(std::int64_t step) const;

  /// Creates partial(step), empty, and its parent folders; removes remains of a killed run. Throws
  /// CheckpointError.
  void begin(std::int64_t step) const;
  /// Writes the manifest and makes the checkpoint the latest. Call after every file is written and flushed.
  /// Throws CheckpointError; earlier checkpoints are then untouched.
  void commit(const Manifest& manifest) const;
  /// Removes the folder created by begin().
  void discard(std::int64_t step) const noexcept;
  /// Removes all but the newest `keep` of the checkpoints up to `step`; 0 keeps all. Later ones, if the run
  /// was resumed from an earlier step, are kept until they are saved again. Throws CheckpointError.
  void prune(std::int64_t step, std::int64_t keep) const;

  /// Whether there is a checkpoint to resume from.
  [[nodiscard]] bool holds_checkpoint() const;

 private:
  std::filesystem::path folder_;
};

/// The folder of one checkpoint: `path` itself if it contains a manifest, else the one named by its `latest`.
/// Throws CheckpointError.
[[nodiscard]] std::filesystem::path find_checkpoint(const std::filesystem::path& path);

}  // namespace shardscope::checkpoint
