// What SQLite leaves unread of a write-ahead log, and does not report: it takes the first frame that is not
// right for the end of the log.
#pragma once

#include <cstdint>
#include <istream>
#include <string>

namespace shardscope::store {

/// [Note: where a log ends]
/// The log is written from its beginning again once all of it is in the file, and then gets another salt: a
/// frame of another salt is an old one. Frames of a transaction that was never committed may be there with
/// checksums that are not right yet. So committed data is behind the first wrong frame only where a frame of
/// the log's own salt ends a commit at or behind it.
/// Source: "Database File Format", section 4 (the write-ahead log), sqlite.org/fileformat2.html#walformat
struct LogScan {
  enum class State : std::uint8_t { missing, empty, whole, header_damaged, damaged };
  State state = State::missing;
  std::uint64_t frames = 0;      ///< that are right, from the beginning
  std::uint64_t damaged_at = 0;  ///< the first that is not, counted from 1
  std::uint64_t behind = 0;      ///< frames behind it, up to the last that ends a commit
  std::uint64_t commits = 0;     ///< that end at it or behind it
  friend bool operator==(const LogScan&, const LogScan&) = default;
};

/// Reads a log to its end in bounded memory; nothing in it is used before its checksum is right, but for
/// salts and ends of commits behind damage, which are only counted.
[[nodiscard]] LogScan scan_log(std::istream& log);
/// Scans the log beside the recording at `path`. A recorder may be writing it at this moment: damage is what
/// is seen twice.
[[nodiscard]] LogScan scan_log_of(const std::string& path);
/// Whether the database at `path` is to be read together with a log.
[[nodiscard]] bool wants_log(const std::string& path);

/// What follows from it for the reader of an unfinished recording; empty: nothing.
[[nodiscard]] std::string problem_of(const LogScan& scan, const std::string& path);

}  // namespace shardscope::store
