// What very many ranks did, a low row each: how much of every column of time they were busy and waited. A
// frame reads rows until its time is up; the others are those of an earlier frame, which lie at their
// own times.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "app/gui/model/time_axis.h"
#include "app/store/store.h"

namespace shardscope::gui {
namespace ev = shardscope::instrumentation;

struct HeatColumn {
  float busy = 0, waited = 0;  ///< shares of the column's time, the mean of the ranks; busy: waits included
  ev::EventKind most{};        ///< what a rank did longest in it
  std::uint8_t code = 0;
};

struct HeatRow {
  TimeRange range{};  ///< that its columns divide evenly
  std::vector<HeatColumn> columns;
};

class HeatRows {
 public:
  /// Rows of `range` in `columns` are wanted. `most`: for how long rows are read in this frame; nothing: each
  /// at once.
  void begin_frame(std::optional<std::chrono::nanoseconds> most) noexcept;
  /// The mean of these ranks; more than one are a row of their own, which begins with the first of them.
  /// Valid until begin_frame().
  [[nodiscard]] const HeatRow& of(const store::Store& store, std::span<const std::uint32_t> ranks,
                                  TimeRange range, std::size_t columns);
  /// Some row was not read again although it is of another range, or events came: the next frames go on.
  [[nodiscard]] bool behind() const noexcept { return behind_; }

 private:
  using Key = std::pair<bool, std::uint32_t>;  ///< of several ranks, the first
  struct Kept {
    HeatRow row;
    std::uint64_t revision = UINT64_MAX, frame = 0;
  };
  [[nodiscard]] bool has_time() const;
  void read(const store::Store& store, std::span<const std::uint32_t> ranks, HeatRow& row);

  std::map<Key, Kept> rows_;
  std::vector<store::Density> density_;
  std::uint64_t frame_ = 0;
  std::optional<std::chrono::steady_clock::time_point> until_;
  Key next_;              ///< where the time of a frame was used up,
  bool stopped_ = false;  ///< of this one;
  bool waiting_ = false;  ///< of the one before: it is not reached yet in this one
  bool read_one_ = false, behind_ = false;
};

}  // namespace shardscope::gui
