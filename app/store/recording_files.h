// The files that are opened as one recording: one, or the parts of a series that lie side by side.
// docs/recording.md, "Parts".
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/store/recording_end.h"
#include "app/store/recording_file.h"
#include "app/store/recording_parts.h"
#include "app/store/recording_problems.h"

namespace shardscope::store {

/// A file of a recording, open; where it keeps a part of its run, in a transaction. Its log is looked at
/// before SQLite sees it: RecordingEnd.
struct OpenFile {
  /// Throws std::runtime_error: path, reason, what to do.
  OpenFile(const std::string& path, Problems& problems);

  std::string path;
  RecordingFile file;  ///< found to be one before `end` reads its log, and opened after that
  RecordingEnd end;
  std::optional<PartIdentity> identity;  ///< of a part
};

/// Opens what `path` names, and with a part, or the link to the newest one, all parts beside it without one
/// missing between them: oldest first, one at least. What is not here or not read is added to `problems`.
/// Throws std::runtime_error where the file itself cannot be opened.
[[nodiscard]] std::vector<std::unique_ptr<OpenFile>> open_files(const std::string& path, Problems& problems);

}  // namespace shardscope::store
