// Files that a verb must not overwrite: recordings of real training runs, and their weights.
#pragma once

#include <cstdint>
#include <string>

namespace shardscope::cli {

/// Throws UserError where `path`, given by `option`, is a recording of a run that was made: what is simulated
/// can be simulated again, that cannot. Of other files the writer says what may be replaced.
void keep_made_run(const std::string& option, const std::string& path);

/// For what a run leaves, hours of training perhaps: throws UserError where anything is at `path`, or the log
/// of a recording that was cut off. Not called with --overwrite.
void keep_existing(const std::string& option, const std::string& path);

enum class Written : std::uint8_t { file, folder };
/// For what can be made again, but perhaps took its place by mistake: throws UserError where `path` is a
/// file, or the folder that is to be written has anything in it. Of a recording the writer says what it is,
/// with --overwrite too. Not called with --overwrite.
void keep_written(const std::string& option, const std::string& path, Written written);

/// The recording that a run is to be in. Where no rank came it is removed again, so that the same command can
/// be given once more; what was at `path` before is not its own, and stays. Made before what writes the file,
/// so that it outlives it.
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
