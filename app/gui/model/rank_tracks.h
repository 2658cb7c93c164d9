// What rows of curves and bands of statuses show of a rank over a range of time: its live elements, bytes on
// their way, and where chosen parameters were. Read from its events, and kept: a frame reads as many ranks as
// its time allows, the others show what was read for an earlier frame, which lies at its own times.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "app/gui/model/step_series.h"
#include "app/store/store.h"

namespace shardscope::gui {
namespace ev = shardscope::instrumentation;

/// Until the next one, a parameter's status on the rank.
struct StatusPiece {
  std::int64_t begin_ns = 0;
  store::ParamState state;
  bool known = true;  ///< false: events before are missing
};

struct RankTrack {
  /// `too_much`: the range has more events than are read at once; there is nothing until it is shorter.
  enum class State : std::uint8_t { reading, read, too_much };
  State state = State::reading;
  TimeRange range{0, 0};  ///< that was read, at least what was asked for
  StepSeries live;        ///< elements of parameters that are available or in flight
  StepSeries in_flight;   ///< bytes of collectives (S of metrics 2.3) that have begun and not ended
  std::map<std::uint32_t, std::vector<StatusPiece>> status;  ///< by parameter, in order of time
};

/// The piece that holds at a time; null before the first.
[[nodiscard]] const StatusPiece* piece_at(const std::vector<StatusPiece>& pieces, std::int64_t at_ns);

class RankTracks {
 public:
  /// What is shown of every rank.
  struct Wanted {
    bool live = false, in_flight = false;
    std::vector<std::uint32_t> params;
    friend bool operator==(const Wanted&, const Wanted&) = default;
  };
  /// `most`: for how long ranks are read in this frame; nothing: each at once.
  void begin_frame(std::optional<std::chrono::nanoseconds> most) noexcept;
  /// Valid until begin_frame().
  [[nodiscard]] const RankTrack& of(const store::Store& store, std::uint32_t rank, TimeRange range,
                                    const Wanted& wanted);
  /// Some rank was not read although something else is asked for, or events came: the next frames go on.
  [[nodiscard]] bool behind() const noexcept { return behind_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Kept {
    RankTrack track;
    Wanted wanted;
    std::uint64_t revision = 0, frame = 0;
    Clock::time_point read_at;
  };
  [[nodiscard]] bool fresh(const store::Store& store, const Kept& kept, TimeRange range,
                           const Wanted& wanted) const;
  [[nodiscard]] bool has_time() const { return !until_ || !read_one_ || Clock::now() < *until_; }

  std::map<std::uint32_t, Kept> kept_;
  std::uint64_t frame_ = 0;
  std::optional<Clock::time_point> until_;
  std::uint32_t next_ = ev::kNoId;  ///< where the time of a frame was used up,
  bool stopped_ = false;            ///< of this one;
  bool waiting_ = false;            ///< of the one before: it is not reached yet in this one
  bool read_one_ = false, behind_ = false;
};

}  // namespace shardscope::gui
