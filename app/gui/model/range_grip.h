// Hit test for a time range drawn as a band: one of its ends, which is dragged alone, or the part between
// them.
#pragma once

#include <cstdint>
#include <optional>

#include "app/gui/model/time_axis.h"

namespace shardscope::gui {

enum class Grip : std::uint8_t { none, begin, end, middle };

/// The part of the band [`x0`, `x1`] at `x`. An end reaches `reach` on either side of its line; in a narrow
/// band the middle keeps a third.
[[nodiscard]] Grip grip_at(float x, float x0, float x1, float reach = 4) noexcept;
/// The end that stays fixed while `grip` is dragged.
[[nodiscard]] std::int64_t fixed_end(const TimeRange& range, Grip grip) noexcept;
/// The range between the two times, in either order.
[[nodiscard]] TimeRange range_between(std::int64_t a_ns, std::int64_t b_ns) noexcept;

/// The measured range with one end (Grip::begin or Grip::end) set to `at_ns`, as by the keyboard. The other
/// end stays, or is that of `shown` without a measured range; if it would be on the wrong side it moves to
/// the end of `shown`. nullopt if the result is empty.
[[nodiscard]] std::optional<TimeRange> measured_from(const std::optional<TimeRange>& measured,
                                                     const TimeRange& shown, Grip end,
                                                     std::int64_t at_ns) noexcept;

/// The range to show so that all of `shown` is drawn where its part `onto` was.
[[nodiscard]] TimeRange zoomed_out(const TimeRange& shown, const TimeRange& onto) noexcept;

}  // namespace shardscope::gui
