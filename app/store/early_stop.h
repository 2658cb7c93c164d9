// Why a recording ended before its run, when, and how many events it lacks: written into the recording
// itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "app/store/database.h"
#include "app/store/disk_reserve.h"

namespace shardscope::store {

/// [Note: why a recording stopped]
/// Who opens a recording has not seen what the recorder printed. So the reason goes into the file, even when
/// the disk is full: a reserve that was kept until then makes room for a page, and where it is the log that
/// cannot grow, folding it into the file does. Events that arrive after that are counted. The count in the
/// file is updated when it has doubled, so that this takes a few pages however long the run goes on, and when
/// the recorder ends. A file that was removed gets no reason.
class EarlyStop {
 public:
  EarlyStop() = default;
  /// Takes the reserve, in the folder of `path`.
  explicit EarlyStop(const std::string& path) : reserve_(path) {}

  /// Counts events that were handed to the recorder, whether they were written or not.
  void received(std::size_t events) noexcept { received_ += events; }
  /// What is being written ends then, by the collector's clock.
  void reached(std::int64_t end_ns) noexcept { last_ns_ = std::max(last_ns_, end_ns); }
  void committed() noexcept { committed_ = received_; }
  // None of these throws: where there is no room for the reason either, a reader knows as much as after a
  // crash.
  void stopped(Database& database, const std::string& why) noexcept;
  void update(Database& database) noexcept;
  void recorder_ended(Database& database) noexcept;  ///< no event follows

 private:
  enum class Final : std::uint8_t { no, yes };
  void write(Database& database, Final final);

  DiskReserve reserve_;
  std::string why_;                             ///< empty: it has not stopped
  std::uint64_t received_ = 0, committed_ = 0;  ///< events
  std::uint64_t written_missing_ = 0;           ///< missing events, as the file says
  std::int64_t last_ns_ = 0, stopped_ns_ = 0;   ///< end of what was being written; collector clock
};

}  // namespace shardscope::store
