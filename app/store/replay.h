// A finished recording handed to another store as its run went: what came up to one time, then up to the
// next. Only of one that keeps its whole run; of another events are missing in the middle.
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
  /// What is missing or damaged; damaged chunks are left out.
  [[nodiscard]] const RecordingInfo& info() const noexcept { return info_; }
  [[nodiscard]] bool keeps_a_part() const noexcept { return info_.limits.limited(); }
  [[nodiscard]] std::int64_t end_ns() const { return whole_.end_ns(); }  ///< latest event, run time
  /// Hands `to`, the same at each call, what came up to `until_ns` of run time, which grows from call to
  /// call. How ranks ended comes once their last event has.
  void advance(Store& to, std::int64_t until_ns);
  /// Whether the run was paused then: of a rank the end of a pause comes next, not its begin.
  [[nodiscard]] bool paused() const;

 private:
  struct Rank {
    explicit Rank(Statement chunks) : rows(std::move(chunks)) {}
    Statement rows;              ///< its chunks that have not been read
    std::optional<Chunk> chunk;  ///< what is left of the one that was read last
    std::uint64_t sequence = 0;  ///< of what is handed over next
    RankRow row;                 ///< as it was in the end
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
  std::size_t messages_ = 0;  ///< that have been handed over
  bool begun_ = false;
};

}  // namespace shardscope::store
