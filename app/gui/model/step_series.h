// A piecewise constant value over time, and its minimum and maximum per column of time.
#pragma once

#include <cstdint>
#include <vector>

#include "app/gui/model/time_axis.h"

namespace shardscope::gui {

/// Range of the value within a column; `any` false: unknown there.
struct ColumnRange {
  double low = 0, high = 0;
  bool any = false;
  void take(double value) noexcept;
};

class StepSeries {
 public:
  /// `value` holds from `at_ns` on; times must not decrease. Of equal times the last value counts.
  void add(std::int64_t at_ns, double value);
  /// The value is unknown from `at_ns` on.
  void add_unknown(std::int64_t at_ns);
  /// Ranges for `count` equal columns of `range`: includes peaks between columns. With very many changes
  /// blocks of them are read as one.
  [[nodiscard]] std::vector<ColumnRange> columns(TimeRange range, std::size_t count) const;
  [[nodiscard]] bool empty() const noexcept { return at_.empty(); }

 private:
  static constexpr std::size_t kBlock = 64;
  void within(std::size_t first, std::size_t last, ColumnRange& out) const;

  std::vector<std::int64_t> at_;
  std::vector<double> value_;
  std::vector<ColumnRange> blocks_;  ///< of kBlock values each; the last may be shorter
};

}  // namespace shardscope::gui
