#include "app/gui/model/range_grip.h"

#include <algorithm>

namespace shardscope::gui {

Grip grip_at(float x, float x0, float x1, float reach) noexcept {
  if (x < x0 - reach || x > x1 + reach) return Grip::none;
  const float inside = std::min(reach, (x1 - x0) / 3);
  if (x <= x0 + inside) return Grip::begin;
  return x >= x1 - inside ? Grip::end : Grip::middle;
}

std::int64_t fixed_end(const TimeRange& range, Grip grip) noexcept {
  return grip == Grip::begin ? range.end_ns : range.begin_ns;
}

TimeRange range_between(std::int64_t a_ns, std::int64_t b_ns) noexcept {
  return {std::min(a_ns, b_ns), std::max(a_ns, b_ns)};
}

std::optional<TimeRange> measured_from(const std::optional<TimeRange>& measured, const TimeRange& shown,
                                       Grip end, std::int64_t at_ns) noexcept {
  const auto moved = [&](TimeRange range) {
    (end == Grip::begin ? range.begin_ns : range.end_ns) = at_ns;
    return range;
  };
  const TimeRange range = moved(measured.value_or(shown));
  if (range.length() > 0) return range;
  const TimeRange anew = moved(shown);
  return anew.length() > 0 ? std::optional(anew) : std::nullopt;
}

TimeRange zoomed_out(const TimeRange& shown, const TimeRange& onto) noexcept {
  constexpr double kMost = 1000;  // limits the effect of a slip of the hand
  if (onto.length() <= 0) return shown;
  const double factor =
      std::min(kMost, static_cast<double>(shown.length()) / static_cast<double>(onto.length()));
  const auto times = [&](std::int64_t ns) {
    return static_cast<std::int64_t>(static_cast<double>(ns) * factor);
  };
  const std::int64_t begin = shown.begin_ns - times(onto.begin_ns - shown.begin_ns);
  return {begin, begin + times(shown.length())};
}

}  // namespace shardscope::gui
