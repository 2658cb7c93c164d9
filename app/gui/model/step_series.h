// A value that changes at times and holds in between, and its highest and lowest within columns of time.
#pragma once

#include <cstdint>
#include <vector>

#include "app/gui/model/time_axis.h"

namespace shardscope::gui {

/// What a value was within a column; `any` false: it is not known there.
struct ColumnRange {
  double low = 0, high = 0;
  bool any = false;
  void take(double value) noexcept;
};

class StepSeries {
 public:
  /// `value` holds from `at_ns` on; times do not go back. At one time the last counts.
  void add(std::int64_t at_ns, double value);
  /// Of `count` equal columns of `range`: no peak between two of them is lost. Where the series has very many
  /// changes, blocks of them are looked at as one.
  [[nodiscard]] std::vector<ColumnRange> columns(TimeRange range, std::size_t count) const;
  [[nodiscard]] bool empty() const noexcept { return at_.empty(); }

 private:
  static constexpr std::size_t kBlock = 64;
  void within(std::size_t first, std::size_t last, ColumnRange& out) const;

  std::vector<std::int64_t> at_;
  std::vector<double> value_;
  std::vector<ColumnRange> blocks_;  ///< of kBlock values each; the last may have fewer
};

}  // namespace shardscope::gui
