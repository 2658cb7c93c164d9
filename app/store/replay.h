// Replays a finished recording into another store as its run went: events up to one time, then up to the
// next. Only for recordings that keep their whole run; others lack events in the middle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "app/store/chunk.h"
#include "app/store/database.h"
#include "app/store/recording.h"
#include "app/store/store.h"

namespace shardscope::store {

class Replay {
 public:
  /// Throws std::runtime_error: path, reason, what to do.
  explicit Replay(const std::string& path);
  /// What is missing or damaged; damaged chunks are skipped.
  [[nodiscard]] const RecordingInfo& info() const noexcept { return info_; }
  [[nodiscard]] bool keeps_a_part() const noexcept { return info_.limits.limited(); }
  [[nodiscard]] std::int64_t end_ns() const { return whole_.end_ns(); }  ///< latest event, run time
  /// Adds to `to`, the same at each call, all events up to `until_ns` of run time, which must grow from call
  /// to call. A rank's end is added after its last event.
  void advance(Store& to, std::int64_t until_ns);
  /// Whether the run was paused then: some rank's next pause event is an end.
  [[nodiscard]] bool paused() const;

 private:
  struct Rank {
    explicit Rank(Statement chunks) : rows(std::move(chunks)) {}
    Statement rows;              ///< its chunks that are not read yet
    std::optional<Chunk> chunk;  ///< events left of the last chunk read
    std::uint64_t sequence = 0;  ///< of the next chunk added
    RankRow row;                 ///< as at the end of the run
    struct {
      std::uint64_t events = 0, dropped = 0, lost = 0;
    } handed;
    bool over = false;
  };
  [[nodiscard]] static bool read_next(Rank& rank);
  void hand_over(Store& to, Rank& rank, std::int64_t until_ns) const;

  RecordingInfo info_;
  Store whole_;
  Database database_;
  std::map<std::uint32_t, Rank> ranks_;
  std::size_t messages_ = 0;  ///< number added
  bool begun_ = false;
};

}  // namespace shardscope::store
