// A row as a view draws it, column by column, and whether two pictures of it are the same or much alike.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <vector>

#include "app/store/store.h"

namespace shardscope::store {

struct RowView {
  LaneId lane;
  std::uint8_t depth = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::size_t columns = 1600;
};

using RowPicture = std::vector<Density>;

inline RowPicture seen(const Store& store, const RowView& view) {
  RowPicture columns(view.columns);
  store.density(view.lane, view.depth, view.begin_ns, view.end_ns, columns);
  return columns;
}

/// Draws frames that read one thing each until nothing is coarser than it could be, into `picture`. How many.
inline int frames_until_whole(const Store& store, const RowView& view, RowPicture* picture = nullptr) {
  constexpr int kMost = 1000;
  int frames = 0;
  do {
    store.limit_reading(std::chrono::nanoseconds(0));
    RowPicture columns = seen(store, view);
    if (picture != nullptr) *picture = std::move(columns);
    ++frames;
  } while (store.wants_more() && frames < kMost);
  store.limit_reading(std::nullopt);
  EXPECT_LT(frames, kMost);
  return frames;
}

/// To the bit.
inline testing::AssertionResult same_picture(const RowPicture& a, const RowPicture& b) {
  if (a.size() != b.size())
    return testing::AssertionFailure() << a.size() << " and " << b.size() << " columns";
  for (std::size_t c = 0; c < a.size(); ++c) {
    if (a[c].busy != b[c].busy || a[c].count != b[c].count || a[c].dominant != b[c].dominant ||
        a[c].dominant_code != b[c].dominant_code) {
      return testing::AssertionFailure() << "column " << c << ": busy " << a[c].busy << " and " << b[c].busy
                                         << ", count " << a[c].count << " and " << b[c].count << ", code "
                                         << int{a[c].dominant_code} << " and " << int{b[c].dominant_code};
    }
  }
  return testing::AssertionSuccess();
}

/// `columns`, drawn from levels of detail, against `exact`, drawn from every span. Buckets are split by
/// overlap: what is busy adds up to 1 % of the width and lies within 6 % of it; `more_counted` is the share
/// of spans that may count twice, in a column that a shared bucket reaches into.
inline testing::AssertionResult alike(const RowPicture& exact, const RowPicture& columns,
                                      double more_counted) {
  double left = 0, right = 0, difference = 0, count = 0, counted = 0;
  for (std::size_t c = 0; c < exact.size(); ++c) {
    left += exact[c].busy;
    right += columns[c].busy;
    difference += std::abs(exact[c].busy - columns[c].busy);
    count += exact[c].count;
    counted += columns[c].count;
  }
  const auto width = static_cast<double>(exact.size());
  if (std::abs(left - right) <= 0.01 * width && difference < 0.06 * width &&
      std::abs(counted - count) <= more_counted * count) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "busy " << left << " and " << right << " of " << width << " columns, "
                                     << difference << " elsewhere; " << count << " and " << counted
                                     << " spans";
}

}  // namespace shardscope::store
