// Finds the part of a write-ahead log that SQLite does not read, and does not report: it takes the first
// invalid frame for the end of the log.
#pragma once

#include <cstdint>
#include <istream>
#include <string>

namespace shardscope::store {

/// [Note: where a log ends]
/// The log is rewritten from its beginning once all of it is in the file, and then gets another salt: a
/// frame with another salt is an old one. Frames of a transaction that was not committed may have
/// checksums that are not valid yet. So committed data follows the first invalid frame only where a frame
/// with the log's own salt ends a commit at or after it.
/// Source: "Database File Format", section 4 (the write-ahead log), sqlite.org/fileformat2.html#walformat
struct LogScan {
  enum class State : std::uint8_t { missing, empty, whole, header_damaged, damaged };
  State state = State::missing;
  std::uint64_t frames = 0;      ///< valid frames, from the beginning
  std::uint64_t damaged_at = 0;  ///< the first invalid one, counted from 1
  std::uint64_t behind = 0;      ///< frames after it, up to the last that ends a commit
  std::uint64_t commits = 0;     ///< commits that end at or after it
  friend bool operator==(const LogScan&, const LogScan&) = default;
};

/// Reads a log to its end in bounded memory; only data with a valid checksum is used, except for
/// salts and ends of commits after damage, which are only counted.
[[nodiscard]] LogScan scan_log(std::istream& log);
/// Scans the log of the recording at `path`. A recorder may be writing it meanwhile: only damage
/// found twice counts.
[[nodiscard]] LogScan scan_log_of(const std::string& path);
/// Whether the database at `path` is in WAL mode, so that it must be read with its log.
[[nodiscard]] bool wants_log(const std::string& path);

/// The consequence for a reader of an unfinished recording; empty: none.
[[nodiscard]] std::string problem_of(const LogScan& scan, const std::string& path);

}  // namespace shardscope::store
