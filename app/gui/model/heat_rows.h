// Activity of very many ranks, one low row each: busy and waiting share per column of time. A frame
// reads rows within its time budget; the other rows keep the data of an earlier frame, drawn at its own
// times.
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
  float busy = 0, waited = 0;  ///< fractions of the column, mean over the ranks; busy includes waits
  ev::EventKind most{};        ///< kind of span with the longest time
  std::uint8_t code = 0;
};

struct HeatRow {
  TimeRange range{};  ///< divided evenly by the columns
  std::vector<HeatColumn> columns;
};

class HeatRows {
 public:
  /// Starts a frame. `most`: time budget for reading rows; nullopt:
  /// unlimited.
  void begin_frame(std::optional<std::chrono::nanoseconds> most) noexcept;
  /// Mean over these ranks; several ranks share a row of their own, keyed by the first. Valid until
  /// begin_frame().
  [[nodiscard]] const HeatRow& of(const store::Store& store, std::span<const std::uint32_t> ranks,
                                  TimeRange range, std::size_t columns);
  /// Some row is outdated, by range or by events: further frames have to read it.
  [[nodiscard]] bool behind() const noexcept { return behind_; }
  /// Between two frames: reads rows that the last frame had to show of another range, or not at all, for
  /// about `most`. Rows that only lack new events wait for the next frames. Returns whether more are left.
  bool catch_up(const store::Store& store, std::chrono::nanoseconds most);

 private:
  using Key = std::pair<bool, std::uint32_t>;  ///< whether several ranks, and the first one
  /// A row that a frame requested and had no time to read.
  struct Asked {
    std::vector<std::uint32_t> ranks;
    TimeRange range{};
    std::size_t columns = 0;
  };
  struct Kept {
    HeatRow row;
    std::uint64_t revision = UINT64_MAX, frame = 0;
    std::optional<Asked> asked;
  };
  void read_again(const store::Store& store, std::span<const std::uint32_t> ranks, TimeRange range,
                  std::size_t columns, Kept& kept);
  [[nodiscard]] bool has_time() const;
  void read(const store::Store& store, std::span<const std::uint32_t> ranks, HeatRow& row);

  std::map<Key, Kept> rows_;
  std::vector<store::Density> density_;
  std::uint64_t frame_ = 0;
  std::optional<std::chrono::steady_clock::time_point> until_;
  Key next_;              ///< row at which the time budget ran out,
  bool stopped_ = false;  ///< in this frame;
  bool waiting_ = false;  ///< in the last frame: not reached yet in this one
  bool read_one_ = false, behind_ = false;
};

}  // namespace shardscope::gui
