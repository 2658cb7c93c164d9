// The rows that a list shows of a search: the first thousand in sort order, selected incrementally from
// millions.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "app/gui/model/span_statistics.h"

namespace shardscope::gui {

enum class HitOrder : std::uint8_t { begin, time, self, rank, step };

/// Hit `hit` of lane `lane` of the search: stays valid while the search adds hits.
struct HitRef {
  std::uint32_t lane = 0;
  std::uint32_t hit = 0;
  friend bool operator==(const HitRef&, const HitRef&) = default;
};

class HitRows {
 public:
  static constexpr std::size_t kMost = 1000;
  void start(SpanFilter filter, HitOrder order, bool descending);
  /// False when there was nothing to do.
  bool advance(const SpanSearch& search, std::chrono::nanoseconds time);
  /// In sort order; at most kMost.
  [[nodiscard]] std::vector<HitRef> rows() const;
  /// Number of hits that pass the filter; may exceed kMost.
  [[nodiscard]] std::size_t accepted() const noexcept { return accepted_; }
  [[nodiscard]] const SpanFilter& filter() const noexcept { return filter_; }
  [[nodiscard]] HitOrder order() const noexcept { return order_; }
  [[nodiscard]] bool descending() const noexcept { return descending_; }

 private:
  struct Entry {
    std::int64_t key = 0;
    HitRef ref;
  };
  [[nodiscard]] static bool before(const Entry& a, const Entry& b) noexcept;
  SpanFilter filter_;
  HitOrder order_ = HitOrder::begin;
  bool descending_ = false;
  std::vector<Entry> best_;         ///< a heap with the last in sort order on top
  std::vector<std::size_t> taken_;  ///< by lane: number of hits processed
  std::size_t accepted_ = 0;
};

enum class Toward : std::uint8_t { later, earlier };
/// A hit with its sort key across all lanes: begin, lane, depth.
struct HitPlace {
  std::int64_t begin_ns = 0;
  HitRef ref;
};
/// nullopt if the search has no such hit.
[[nodiscard]] std::optional<HitPlace> place_of(const SpanSearch& search, HitRef ref);
/// The first hit after `from`, or the last before it, that passes the filter. nullopt if there is
/// none.
[[nodiscard]] std::optional<HitPlace> next_hit(const SpanSearch& search, const SpanFilter& filter,
                                               const HitPlace& from, Toward toward);

}  // namespace shardscope::gui
