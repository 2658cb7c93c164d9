// Sums over ended spans without their pauses, by lane, kind and code: what is left of them when a store keeps
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
  /// `span` has ended and lies in `lane`; `pauses` are those of its rank, on the same clock.
  void add(LaneId lane, const Span& span, const Pauses& pauses);
  void merge(std::span<const SpanTotal> rows);
  /// By lane, kind and code.
  [[nodiscard]] std::vector<SpanTotal> rows() const;

 private:
  KindTable<SpanTotal> totals_;
};

}  // namespace shardscope::store
