// Where a range of time that is drawn as a band is taken hold of: by an end, which is dragged alone, or
// between them.
#pragma once

#include <cstdint>
#include <optional>

#include "app/gui/model/time_axis.h"

namespace shardscope::gui {

enum class Grip : std::uint8_t { none, begin, end, middle };

/// What of the band from `x0` to `x1` lies at `x`. An end is within `reach` of its line; of a band too narrow
/// for that a third stays for the middle.
[[nodiscard]] Grip grip_at(float x, float x0, float x1, float reach = 4) noexcept;
/// The end that stays where it is while `grip`, the other one, is dragged.
[[nodiscard]] std::int64_t fixed_end(const TimeRange& range, Grip grip) noexcept;
/// From the one to the other, whichever is first.
[[nodiscard]] TimeRange range_between(std::int64_t a_ns, std::int64_t b_ns) noexcept;

/// The measured range with one end, Grip::begin or Grip::end, at `at_ns`, as the keyboard sets it. The other
/// end stays, or is that of `shown` where nothing was measured; where it would be on the wrong side it comes
/// along, to the end of what is shown, and nothing is measured where that is no range.
[[nodiscard]] std::optional<TimeRange> measured_from(const std::optional<TimeRange>& measured,
                                                     const TimeRange& shown, Grip end,
                                                     std::int64_t at_ns) noexcept;

/// What is shown so that all of `shown` lies where `onto`, a part of it, was.
[[nodiscard]] TimeRange zoomed_out(const TimeRange& shown, const TimeRange& onto) noexcept;

}  // namespace shardscope::gui
