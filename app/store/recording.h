// The recording file *.zscope: an SQLite database of tables anyone can query and of encoded chunks.
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

/// Appends to a new file in transactions (every `commit_interval`), so a crash leaves what was committed.
/// Errors (disk full, no permission) are returned as text once by error(), never thrown from append.
class RecordingWriter {
 public:
  /// Whether this machine's wall clock goes with the collector's clock (wall_clock.h). It is noted in the
  /// file if so; on another machine than the collector's it would date the run wrongly.
  enum class WallClock : std::uint8_t { of_the_collector, unknown };
  /// `retention`: how much stays of it. `rotation`: when it goes on in a next file, one or the other; `path`
  /// is a link to the newest of these then. Throws std::runtime_error: path, reason, what to do.
  explicit RecordingWriter(const std::string& path, const Retention& retention = {},
                           WallClock clock = WallClock::of_the_collector, const Rotation& rotation = {});
  ~RecordingWriter();
  RecordingWriter(const RecordingWriter&) = delete;
  RecordingWriter& operator=(const RecordingWriter&) = delete;
  void tables(std::uint32_t rank, const ev::RunTables& tables);
  void append(const Chunk& chunk);
  /// The same with `encoded` == chunk.encode() made by the caller: it is stored as it is.
  void append(const Chunk& chunk, std::span<const std::byte> encoded);
  void rank(const RankRow& row);
  void message(const Message& message);
  void name(std::uint32_t rank, std::uint32_t id, const std::string& name);
  void commit();
  /// Deletes what is beyond the limits of `retention`, if there are any, and goes on in the next file where
  /// `rotation` says so; before a commit(), which makes it durable. `store`: of all that was appended, for
  /// its table of steps. `now_ns`: what the collector's clock shows, which no accepted event is later than.
  void retain(const Store& store, std::int64_t now_ns = INT64_MAX);
  /// Events around it stay as long as it does: Retention. Nothing where everything is kept.
  void keep(Moment moment);
  /// Summary tables (steps, metrics) for SQL users and the mark that the file is whole.
  void finish(const Store& store);
  [[nodiscard]] std::string error() const;  ///< empty if all went well

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A part of a recording that goes on in several files (rotation.h). Times of the run.
struct RecordingPart {
  std::uint32_t part = 0;  ///< from 1
  std::string file;        ///< without a folder
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint64_t events = 0, bytes = 0;
  std::string ended;  ///< "size", "age", "end": of the run; empty: it is being written or was cut off
  bool here = false;  ///< its events are: the file was read
};

struct RecordingInfo {
  std::string path;
  std::int32_t format_version = 0;
  bool complete = false;                                 ///< finish() was reached
  std::vector<std::string> problems;                     ///< what is missing or damaged, in words
  std::uint64_t chunks = 0, events = 0, file_bytes = 0;  ///< the first two: that it holds
  Retention limits;                                      ///< that it was recorded with
  /// How long spans took in the whole run, by SketchKey; where the recorder had limits or changed files.
  std::vector<std::pair<SketchKey, QuantileSketch>> distributions;
  std::vector<RecordingPart> parts;  ///< all that there were; of a recording that is one file none
};

/// Whether the file's header says that it is one; of any version, whole or not. Another
/// program's database is none.
[[nodiscard]] bool is_recording(const std::string& path);

enum class Verify : std::uint8_t {
  everything,  ///< every checksum, before anything is shown: reads the whole file
  as_read,     ///< of what is looked at, when it is; see Store::problems()
};

/// Opens a recording; of one in parts (rotation.h) all that are here, by the link or by any of them. Its
/// blocks are read when they are looked at, so the store holds the file open. Damaged chunks are left out and
/// named in info.problems. Of a file that has no blocks (a damaged one) they are made from the events: that
/// reads all of them, in bounded memory. Throws std::runtime_error when nothing can be read (not a recording,
/// newer version, no such file).
[[nodiscard]] Store open_recording(const std::string& path, RecordingInfo* info,
                                   Verify verify = Verify::everything);

}  // namespace shardscope::store
