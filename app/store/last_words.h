// What a recording says of itself when it ends before its run: why, when, and how many events it lacks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "app/store/database.h"
#include "app/store/disk_reserve.h"

namespace shardscope::store {

/// [Note: the last words of a recording]
/// Who opens a recording has not seen what the recorder wrote to its terminal. On a full disk the file can
/// still say it: a reserve that was kept until then makes room for a page, and where it is the log that
/// cannot grow, folding it into the file does. While more events come that are not recorded their number is
/// told anew when it has doubled, so that this takes a few pages however long the run goes on, and when the
/// recorder ends. A file that was removed says nothing.
class LastWords {
 public:
  LastWords() = default;
  /// Takes the reserve, in the folder of `path`.
  explicit LastWords(const std::string& path) : reserve_(path) {}

  /// So many events were handed to the recorder, whatever becomes of them.
  void took(std::size_t events) noexcept { taken_ += events; }
  /// What is being written ends then, by the collector's clock.
  void reached(std::int64_t end_ns) noexcept { last_ns_ = std::max(last_ns_, end_ns); }
  void committed() noexcept { committed_ = taken_; }
  /// None of these throws: where the words find no room either, a reader knows as much as after a crash.
  void say_why(Database& database, const std::string& why) noexcept;
  void say_more(Database& database) noexcept;
  void say_all(Database& database) noexcept;  ///< nothing more will come

 private:
  enum class Last : std::uint8_t { no, yes };
  void write(Database& database, Last last);

  DiskReserve reserve_;
  std::string why_;                            ///< empty: it has not stopped
  std::uint64_t taken_ = 0, committed_ = 0;    ///< events
  std::uint64_t said_ = 0;                     ///< lacking, by what the file says
  std::int64_t last_ns_ = 0, stopped_ns_ = 0;  ///< end of what was being written; collector clock
};

}  // namespace shardscope::store
