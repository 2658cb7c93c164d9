// How a recording ended, as stored in it: finished, stopped with a reason, cut off, or still empty.
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
  /// Reads the write-ahead log beside the file at `path`. Construct before SQLite opens the file: SQLite
  /// creates an empty log if there is none.
  explicit RecordingEnd(const std::string& path);

  /// Call before the tables are read. Sets holds_nothing().
  void look_for_rows(Database& database);
  /// The tables that a recorder fills first (tables, chunks, ranks, messages) are empty, and `meta` has
  /// neither chunks nor an early stop. False if the log is damaged or a table cannot be read.
  [[nodiscard]] bool holds_nothing() const noexcept { return holds_nothing_; }
  /// The recorder was running when this object was constructed.
  [[nodiscard]] bool being_written() const noexcept { return being_written_; }

  /// Chunks and events that were read.
  struct Read {
    std::uint64_t chunks = 0;
    std::map<std::uint32_t, std::uint64_t> events;  ///< by rank
  };
  /// Whether the run continues in a part that is not read; events missing here may be in that part.
  enum class Run : std::uint8_t { ends_here, continues_in_a_part };
  /// Adds to `problems` what is missing at the end: why and when recording stopped, damage of the log, the
  /// number of missing chunks, and for each rank the number of events received but not in the file. If the
  /// recording was not finished, each rank that had not ended gets a Gap at its end in `store`
  /// (RecordedRun::note_cut_off()). Returns whether the recording was finished.
  bool report(Database& database, const Read& read, Run run, Store& store, Problems& problems) const;

 private:
  [[nodiscard]] bool log_is_damaged() const;
  [[nodiscard]] bool log_was_folded_in(Database& database, Problems& problems) const;
  [[nodiscard]] std::string empty_recording_text(bool complete) const;

  std::string path_;
  std::optional<LogScan> log_;  ///< nullopt: the file is not in WAL mode
  bool holds_nothing_ = false;
  bool being_written_ = false;
};

}  // namespace shardscope::store
