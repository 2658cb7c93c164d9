// Data of curve rows and status bands of a rank over a time range: live elements, bytes in flight, states of
// chosen parameters. Read from its events and cached: each frame reads as many ranks as its time budget
// allows; the others keep the data of an earlier frame, drawn at its own times.
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

/// Status of a parameter on the rank, until the next piece.
struct StatusPiece {
  std::int64_t begin_ns = 0;
  store::ParamState state;
  bool known = true;  ///< false: earlier events are missing
};

struct RankTrack {
  /// `too_much`: the range has too many events to read at once; no data until it is shorter.
  enum class State : std::uint8_t { reading, read, too_much };
  State state = State::reading;
  TimeRange range{0, 0};  ///< the range read, at least the one requested
  StepSeries live;        ///< elements of parameters that are available or in flight
  StepSeries in_flight;   ///< bytes of running collectives (S of metrics 2.3)
  std::map<std::uint32_t, std::vector<StatusPiece>> status;  ///< by parameter, in order of time
};

/// The piece at a time; null before the first.
[[nodiscard]] const StatusPiece* piece_at(const std::vector<StatusPiece>& pieces, std::int64_t at_ns);

class RankTracks {
 public:
  /// What is shown for every rank.
  struct Wanted {
    bool live = false, in_flight = false;
    std::vector<std::uint32_t> params;
    friend bool operator==(const Wanted&, const Wanted&) = default;
  };
  /// Starts a frame. `most`: time budget for reading ranks; nullopt: unlimited.
  void begin_frame(std::optional<std::chrono::nanoseconds> most) noexcept;
  /// Valid until begin_frame().
  [[nodiscard]] const RankTrack& of(const store::Store& store, std::uint32_t rank, TimeRange range,
                                    const Wanted& wanted);
  /// Some rank is outdated, by what is wanted or by events: further frames have to read it.
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
  std::uint32_t next_ = ev::kNoId;  ///< rank at which the time budget ran out,
  bool stopped_ = false;            ///< in this frame;
  bool waiting_ = false;            ///< in the last frame: not reached yet in this one
  bool read_one_ = false, behind_ = false;
};

}  // namespace shardscope::gui
