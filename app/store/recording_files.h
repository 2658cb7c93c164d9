// The files that are opened as one recording: a single file, or the parts of one series in the same folder.
// docs/recording.md, "Parts".
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/store/recording_end.h"
#include "app/store/recording_file.h"
#include "app/store/recording_parts.h"
#include "app/store/recording_problems.h"

namespace shardscope::store {

/// An open file of a recording; opened within a read transaction if RecordingFile::keeps_a_part(). The log is
/// scanned before SQLite opens the file (RecordingEnd).
struct OpenFile {
  /// Throws std::runtime_error: path, reason, what to do.
  OpenFile(const std::string& path, Problems& problems);

  std::string path;
  RecordingFile file;  ///< checked before `end` reads the log, opened after that
  RecordingEnd end;
  std::optional<PartIdentity> identity;  ///< nullopt: not a part
};

/// Older parts are not opened beyond this number, since each takes an open file and the memory of an SQLite
/// connection. Of those only the sums are read.
inline constexpr std::size_t kMostParts = 256;

/// Opens the file at `path`. If it is a part, or the link to one, also opens the parts before and after it up
/// to the first one that is missing or cannot be read; of more than `most` the newest. Returns them oldest
/// first, at least one. Parts that are missing or cannot be read are added to `problems`. Throws
/// std::runtime_error if the file at `path` cannot be opened.
[[nodiscard]] std::vector<std::unique_ptr<OpenFile>> open_files(const std::string& path, Problems& problems,
                                                                std::size_t most = kMostParts);

}  // namespace shardscope::store
