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
/// A reader of a recording has not seen the recorder's output. So the reason goes into the file, even when
/// the disk is full: releasing a disk reserve makes room for a page, and where the log cannot grow,
/// moving it into the file does. Events received after that are counted. The count in the
/// file is updated when it has doubled, so that this takes a few pages however long the run is, and when
/// the recorder ends. No reason is written to a file that was removed.
class EarlyStop {
 public:
  EarlyStop() = default;
  /// Allocates the reserve, in the folder of `path`.
  explicit EarlyStop(const std::string& path) : reserve_(path) {}

  /// Counts events that the recorder received, whether they were written or not.
  void received(std::size_t events) noexcept { received_ += events; }
  /// End of the events that are being written, collector clock.
  void reached(std::int64_t end_ns) noexcept { last_ns_ = std::max(last_ns_, end_ns); }
  [[nodiscard]] std::int64_t reached_ns() const noexcept { return last_ns_; }
  void committed() noexcept { committed_ = received_; }
  /// From here on events are written to a file in the folder of `path`.
  void goes_on_in(const std::string& path) { reserve_ = DiskReserve(path); }
  // None of these throws: where there is no space for the reason either, a reader has the same information
  // as after a crash.
  void stopped(Database& database, const std::string& why) noexcept;
  void update(Database& database) noexcept;
  void recorder_ended(Database& database) noexcept;  ///< no event follows

 private:
  enum class Final : std::uint8_t { no, yes };
  void write(Database& database, Final final);

  DiskReserve reserve_;
  std::string why_;                             ///< empty: it has not stopped
  std::uint64_t received_ = 0, committed_ = 0;  ///< events
  std::uint64_t written_missing_ = 0;           ///< missing events, as stored in the file
  std::int64_t last_ns_ = 0, stopped_ns_ = 0;   ///< end of the events being written; collector clock
};

}  // namespace shardscope::store
