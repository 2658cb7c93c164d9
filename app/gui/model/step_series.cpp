#include "app/gui/model/step_series.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardscope::gui {

void ColumnRange::take(double value) noexcept {
  if (std::isnan(value)) return;  // unknown
  low = any ? std::min(low, value) : value;
  high = any ? std::max(high, value) : value;
  any = true;
}

void StepSeries::add(std::int64_t at_ns, double value) {
  at_.push_back(at_ns);
  value_.push_back(value);
  if (value_.size() % kBlock == 1) blocks_.emplace_back();
  blocks_.back().take(value);
}

void StepSeries::add_unknown(std::int64_t at_ns) { add(at_ns, std::numeric_limits<double>::quiet_NaN()); }

void StepSeries::within(std::size_t first, std::size_t last, ColumnRange& out) const {
  while (first < last) {
    const std::size_t block = first / kBlock;
    if (first % kBlock == 0 && first + kBlock <= last) {
      if (blocks_[block].any) {
        out.take(blocks_[block].low);
        out.take(blocks_[block].high);
      }
      first += kBlock;
    } else {
      out.take(value_[first++]);
    }
  }
}

std::vector<ColumnRange> StepSeries::columns(TimeRange range, std::size_t count) const {
  std::vector<ColumnRange> out(count);
  const double width =
      static_cast<double>(range.length()) / static_cast<double>(std::max<std::size_t>(count, 1));
  std::size_t next = 0;  // the first change after the previous columns
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = range.begin_ns + static_cast<std::int64_t>(width * static_cast<double>(i));
    const auto end = range.begin_ns + static_cast<std::int64_t>(width * static_cast<double>(i + 1));
    const auto index_of = [&](std::int64_t at_ns) {
      const auto from = at_.begin() + static_cast<std::ptrdiff_t>(next);
      return static_cast<std::size_t>(std::lower_bound(from, at_.end(), at_ns) - at_.begin());
    };
    const std::size_t first = index_of(begin);
    next = first;
    const std::size_t last = index_of(std::max(end, begin + 1));
    // The value held at the column's begin, unless it changes exactly there.
    if (first > 0 && (first == at_.size() || at_[first] != begin)) out[i].take(value_[first - 1]);
    within(first, last, out[i]);
    next = last;
  }
  return out;
}

}  // namespace shardscope::gui
