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

}  // namespace shardscope::gui
