// Files that a verb must not overwrite: recordings of real training runs, and their weights.
#pragma once

#include <cstdint>
#include <string>

namespace shardscope::cli {

/// Throws UserError where `path`, given by `option`, is the recording of a real run: unlike a simulation, it
/// cannot be repeated. For other files the writer decides what may be replaced.
void keep_made_run(const std::string& option, const std::string& path);

/// For output of a run, perhaps hours of training: throws UserError where anything is at `path`, or the log
/// of a recording that was cut off. Not called with --overwrite.
void keep_existing(const std::string& option, const std::string& path);

enum class Written : std::uint8_t { file, folder };
/// For output that can be made again, but whose path may be given by mistake: throws UserError where `path`
/// is a file, or a folder to be written that is not empty. For recordings the writer decides,
/// with --overwrite too. Not called with --overwrite.
void keep_written(const std::string& option, const std::string& path, Written written);

/// The path of a run's new recording. Where no rank connected the recording is removed again, so that the
/// same command can be repeated; an earlier file at `path` is kept. Construct it before the file's writer,
/// so that it is destroyed after it.
class NewRecording {
 public:
  explicit NewRecording(std::string path);
  ~NewRecording();
  NewRecording(const NewRecording&) = delete;
  NewRecording& operator=(const NewRecording&) = delete;
  void recording_has_ranks() noexcept { path_.clear(); }

 private:
  std::string path_;  ///< empty: nothing to remove
};

}  // namespace shardscope::cli
