// The recording file *.zscope: an SQLite database with tables for SQL queries and with encoded chunks of
// events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/store/chunk.h"
#include "app/store/rotation.h"
#include "app/store/span_sketches.h"
#include "app/store/store.h"

namespace shardscope::store {

/// Writes a new recording. Commits a transaction every kCommitInterval (recording_writer.cpp), so that a
/// crash loses only what was not committed. append() does not throw: the first error (disk full, no
/// permission) ends the recording, and error() returns its text.
class RecordingWriter {
 public:
  /// Whether this machine's wall clock and the collector's clock (wall_clock.h) belong to one machine. If so,
  /// their difference is written to the file; the wall clock of another machine would date the run wrongly.
  enum class WallClock : std::uint8_t { of_the_collector, unknown };
  /// `retention`: limits of the recording. `rotation`: when the next file (part) begins; `path` is then a
  /// link to the newest part. Throws std::runtime_error: path, reason, what to do.
  explicit RecordingWriter(const std::string& path, const Retention& retention = {},
                           WallClock clock = WallClock::of_the_collector, const Rotation& rotation = {});
  ~RecordingWriter();
  RecordingWriter(const RecordingWriter&) = delete;
  RecordingWriter& operator=(const RecordingWriter&) = delete;
  void tables(std::uint32_t rank, const ev::RunTables& tables);
  void append(const Chunk& chunk);
  /// As above, with `encoded` == chunk.encode() computed by the caller. It is stored unchanged.
  void append(const Chunk& chunk, std::span<const std::byte> encoded);
  void rank(const RankRow& row);
  void message(const Message& message);
  void name(std::uint32_t rank, std::uint32_t id, const std::string& name);
  void commit();
  /// Applies the limits of `retention` and begins the next file if `rotation` requires it. Call before
  /// commit(), which makes the deletions durable. `store` must hold everything that was appended; its table
  /// of steps is used. `now_ns`: current time of the collector's clock. Event times after it count as
  /// `now_ns`.
  void retain(const Store& store, std::int64_t now_ns = INT64_MAX);
  /// A warning of retain() that is to be shown once; empty: none.
  [[nodiscard]] std::string take_warning();
  /// Keeps the events around `moment` for as long as the moment itself (Retention). No effect in a recording
  /// that has neither limits nor parts.
  void keep(Moment moment);
  /// Writes the summary tables for SQL queries (recording_summary.h) and marks the file as complete.
  void finish(const Store& store);
  [[nodiscard]] std::string error() const;  ///< empty: no error

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One file of a recording in several files (rotation.h). Times are relative to the start of the run.
struct RecordingPart {
  std::uint32_t part = 0;  ///< from 1
  std::string file;        ///< without a folder
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint64_t events = 0, bytes = 0;
  std::string ended;  ///< "size", "age", "end" (of the run); empty: being written, or cut off
  bool here = false;  ///< its file was found and read
};

struct RecordingInfo {
  std::string path;
  std::int32_t format_version = 0;
  bool complete = false;                                 ///< finish() was reached
  std::vector<std::string> problems;                     ///< what is missing or damaged, as text
  std::uint64_t chunks = 0, events = 0, file_bytes = 0;  ///< chunks, events: at full detail
  Retention limits;                                      ///< it was recorded with
  /// Distribution of span durations over the whole run, by SketchKey. Empty unless the recorder had limits or
  /// wrote parts.
  std::vector<std::pair<SketchKey, QuantileSketch>> distributions;
  std::vector<RecordingPart> parts;  ///< including deleted ones; empty: one file
};

/// Whether the header of the file at `path` is that of a recording, of any version, complete or not. False
/// for an SQLite database of another program.
[[nodiscard]] bool is_recording(const std::string& path);

enum class Verify : std::uint8_t {
  everything,  ///< every checksum, when the file is opened: reads the whole file
  as_read,     ///< the checksum of each row when the row is read; see Store::problems()
};

/// Opens a recording. For a recording in parts (rotation.h), `path` names the link or any part, and all parts
/// found beside it are opened. Blocks are read on demand, so the store keeps the files open. Damaged chunks
/// are skipped and listed in info.problems. If blocks are missing or damaged, they are rebuilt from the
/// events; this reads all events, in bounded memory. Throws std::runtime_error if nothing can be read (not a
/// recording, newer version, no such file).
[[nodiscard]] Store open_recording(const std::string& path, RecordingInfo* info,
                                   Verify verify = Verify::everything);

}  // namespace shardscope::store
