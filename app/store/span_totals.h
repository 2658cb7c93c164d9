// Sums over ended spans without their pauses, by lane, kind and code: kept when a store keeps
// totals only.
#pragma once

#include <span>
#include <vector>

#include "app/store/kind_table.h"
#include "app/store/pauses.h"
#include "app/store/store_rows.h"

namespace shardscope::store {

class SpanTotals {
 public:
  /// Adds an ended span of `lane`; `pauses` are its rank's, on the same clock.
  void add(LaneId lane, const Span& span, const Pauses& pauses);
  void merge(std::span<const SpanTotal> rows);
  /// By lane, kind and code.
  [[nodiscard]] std::vector<SpanTotal> rows() const;

 private:
  KindTable<SpanTotal> totals_;
};

}  // namespace shardscope::store
