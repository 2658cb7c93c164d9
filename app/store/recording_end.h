// How a recording ended, by its own account: finished, stopped and why, cut off, or before anything came.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "app/store/database.h"
#include "app/store/recording_problems.h"
#include "app/store/store.h"
#include "app/store/write_ahead_log.h"

namespace shardscope::store {

class RecordingEnd {
 public:
  /// Reads the log beside the file at `path`. Before SQLite opens it: that makes an empty log where there is
  /// none.
  explicit RecordingEnd(const std::string& path);

  /// Before its tables are read.
  void look_for_rows(Database& database);
  /// There was no row of what a recording begins with, and none that cannot be read. False in doubt.
  [[nodiscard]] bool holds_nothing() const noexcept { return holds_nothing_; }
  /// Its recorder was running when this was made.
  [[nodiscard]] bool being_written() const noexcept { return being_written_; }

  /// What was read of the events.
  struct Read {
    std::uint64_t chunks = 0;
    std::map<std::uint32_t, std::uint64_t> events;  ///< by rank
  };
  /// Whether the run goes on in a part that is not read: then events that are not here may be there.
  enum class Run : std::uint8_t { ends_here, goes_on_in_a_part };
  /// Adds to `problems` what the end left out: why recording stopped and where, what is wrong with the log,
  /// how many chunks are missing, and of each rank the events that were received and are not there. Of a
  /// recording that was not finished these are also cut off in `store`. Returns whether the
  /// recording was finished.
  bool report(Database& database, const Read& read, Run run, Store& store, Problems& problems) const;

 private:
  [[nodiscard]] bool log_is_damaged() const;
  [[nodiscard]] bool log_was_folded_in(Database& database, Problems& problems) const;
  [[nodiscard]] std::string empty_recording_text(bool complete) const;

  std::string path_;
  std::optional<LogScan> log_;  ///< of a file that is read with one
  bool holds_nothing_ = false;
  bool being_written_ = false;  ///< its recorder is running
};

}  // namespace shardscope::store
