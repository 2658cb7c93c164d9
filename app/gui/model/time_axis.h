// The visible time range, shared by the timeline, the memory plot and the step ruler.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::gui {

/// Flags above the time axis that are closer than this, in pixels, are drawn as one.
inline constexpr float kTouching = 10;

struct TimeRange {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 1'000'000;
  [[nodiscard]] std::int64_t length() const noexcept { return end_ns - begin_ns; }
  [[nodiscard]] bool contains(std::int64_t at_ns) const noexcept {
    return at_ns >= begin_ns && at_ns < end_ns;
  }
  friend bool operator==(const TimeRange&, const TimeRange&) = default;
};

/// Maps a time range to the pixels [left, left + width).
struct TimeScale {
  TimeRange range;
  float left = 0;
  float width = 1;
  [[nodiscard]] float x_of(std::int64_t at_ns) const noexcept;  ///< clamped far outside the columns
  [[nodiscard]] std::int64_t time_of(float x) const noexcept;
  [[nodiscard]] double ns_per_pixel() const noexcept;
};

/// The visible range of a run. `limit_ns` is the run's last event; the range may extend a little beyond it.
class TimeAxis {
 public:
  static constexpr std::int64_t kShortest = 200;  ///< ns: shorter ranges show nothing more

  [[nodiscard]] const TimeRange& range() const noexcept { return range_; }
  /// At once, as for what the hand moves. Ends a glide.
  void set(TimeRange range, std::int64_t limit_ns);
  /// To another place: glides there where `glides`, so that the eye sees from where to where; else at once.
  void go(TimeRange range, std::int64_t limit_ns);
  /// Where a glide ends; else range().
  [[nodiscard]] const TimeRange& goal() const noexcept { return gliding_ ? gliding_->to : range_; }
  /// Call once per frame with its time in seconds. True: a glide goes on.
  bool advance(double seconds);
  bool glides = false;
  /// Scales by `factor` (< 1 zooms in), keeping `anchor_ns` at its screen position.
  void zoom(double factor, std::int64_t anchor_ns, std::int64_t limit_ns);
  void pan(std::int64_t delta_ns, std::int64_t limit_ns);
  /// As zoom() and pan() by a key: go(), from where a glide ends, so that each press counts.
  void go_zoom(double factor, double anchor, std::int64_t limit_ns);  ///< `anchor`: share of the range
  void go_pan(double share, std::int64_t limit_ns);                   ///< of the range's length
  void fit(std::int64_t limit_ns);                                    ///< go() to all of the run
  /// Moves the range, keeping its length, so that it ends a little after `edge_ns`.
  void follow(std::int64_t edge_ns);
  /// The same with `shown_ns` before the edge in the range.
  void follow(std::int64_t edge_ns, std::int64_t shown_ns);
  /// go() just far enough to show `what`; zooms out if `what` is longer than the range.
  void reveal(TimeRange what, std::int64_t limit_ns);

 private:
  struct Glide {
    TimeRange from, to;
    std::optional<double> began;
  };
  [[nodiscard]] static TimeRange within(TimeRange range, std::int64_t limit_ns);
  TimeRange range_;
  std::optional<Glide> gliding_;
};

struct Tick {
  std::int64_t at_ns = 0;
  std::string label;  ///< relative to the range's scale: "12.4 ms"
};
/// Round times (1, 2, 5 times a power of ten) at least `min_gap` pixels apart.
[[nodiscard]] std::vector<Tick> time_ticks(const TimeScale& scale, float min_gap);

/// Round values from 0 to `max` for a vertical axis, about `wanted` of them. Binary for bytes.
[[nodiscard]] std::vector<double> value_ticks(double max, int wanted, bool binary);
/// Round values in [low, high]: about `most` of them, never more than `most` + 1.
[[nodiscard]] std::vector<double> ticks_between(double low, double high, int most);

}  // namespace shardscope::gui
