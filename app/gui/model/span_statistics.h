// Statistics of the spans found by a search (count, total, percentiles, by group), updated in pieces. Exact
// for the hits that the search stores; if it was cut short those belong to the first ranks only
// (SpanSearch::cut_short), and every displayed figure must say so.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "app/gui/model/find_spans.h"
#include "app/gui/model/table.h"

namespace shardscope::gui {

/// Durations in sorted runs: adding is cheap, and an order statistic is found by bisecting the range of
/// values, without sorting everything.
class TimeSample {
 public:
  void add(std::int64_t ns);
  /// Sorts the values added last; call before the queries below.
  void settle();
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::int64_t total() const noexcept { return total_; }
  [[nodiscard]] std::int64_t least() const noexcept { return least_; }
  [[nodiscard]] std::int64_t most() const noexcept { return most_; }
  /// Standard deviation of exactly these values (population form, not a sample estimate).
  [[nodiscard]] double sigma() const noexcept;
  /// Number of values below `ns`.
  [[nodiscard]] std::size_t below(std::int64_t ns) const;
  /// Quantile q in [0, 1], interpolated as by analysis::quantile(). The sample must not be empty.
  [[nodiscard]] double quantile(double q) const;

 private:
  [[nodiscard]] std::int64_t at(std::size_t k) const;  ///< the k-th in ascending order, from 0
  std::vector<std::vector<std::int64_t>> runs_;
  std::size_t count_ = 0;
  std::int64_t total_ = 0, least_ = INT64_MAX, most_ = INT64_MIN;
  double mean_ = 0, squares_ = 0;  ///< running mean, and sum of squared deviations
};

/// parent: the name of the enclosing span.
enum class GroupBy : std::uint8_t { name, rank, module, step, stream, parent };
inline constexpr int kGroupings = 6;
[[nodiscard]] const char* word(GroupBy by) noexcept;

/// Filter for hits: all members that are set must match.
struct SpanFilter {
  std::optional<std::uint32_t> name, rank, module, step;  ///< name: of SpanSearch::name()
  std::optional<std::uint32_t> within;                    ///< SpanHit::within; kNoId: no enclosing span
  std::optional<ev::StreamId> stream;
  std::optional<std::pair<std::int64_t, std::int64_t>> time_ns;  ///< [first, second)
  [[nodiscard]] bool accepts(store::LaneId lane, const SpanHit& hit) const noexcept;
  [[nodiscard]] bool empty() const noexcept { return *this == SpanFilter{}; }
  /// Restricts the filter to a group.
  void narrow(GroupBy by, std::uint32_t key);
  friend bool operator==(const SpanFilter&, const SpanFilter&) = default;
};

struct SpanGroup {
  std::uint32_t key = ev::kNoId;  ///< name, rank, module, step, stream or name of the parent
  TimeSample times;
  std::int64_t self_ns = 0;
  bool parents = false;  ///< some have children: self time differs from the total
  bool settled = false;  ///< the percentiles include all hits
  double p50 = 0, p95 = 0, p99 = 0;
  double p75 = 0, p90 = 0, p999 = 0;  ///< for SpanStatistics::whole() only
  void take(const SpanHit& hit);
  void settle();
  [[nodiscard]] double mean() const noexcept;
};

/// Bars of equal width, on a logarithmic scale for a wide range of durations.
struct TimeHistogram {
  std::vector<double> edges;  ///< one more than bars
  std::vector<std::size_t> counts;
  bool logarithmic = false;
};
enum class HistogramScale : std::uint8_t { automatic, linear, logarithmic };
[[nodiscard]] TimeHistogram histogram(const TimeSample& times, std::size_t bars,
                                      HistogramScale scale = HistogramScale::automatic);
/// The times from one bar to another, both included, in whole nanoseconds: [first, second).
[[nodiscard]] std::pair<std::int64_t, std::int64_t> times_of(const TimeHistogram& histogram, std::size_t one,
                                                             std::size_t other);
/// The middle of the highest bar, the approximate mode. The histogram must not be empty.
[[nodiscard]] double mode_of(const TimeHistogram& histogram);

class SpanStatistics {
 public:
  void start(GroupBy by, SpanFilter filter);
  /// Adds new hits of `search`, for about `time`. False when there was nothing to do.
  bool advance(const SpanSearch& search, std::chrono::nanoseconds time);
  /// All hits of the search are included, percentiles too.
  [[nodiscard]] bool ready() const noexcept { return ready_; }
  [[nodiscard]] const SpanGroup& whole() const noexcept { return whole_; }
  [[nodiscard]] const std::vector<SpanGroup>& groups() const noexcept { return groups_; }
  /// Sum of the times in nanoseconds, by step; of the step in which a span begins.
  [[nodiscard]] const std::map<std::uint32_t, std::int64_t>& by_step() const noexcept { return by_step_; }
  [[nodiscard]] GroupBy by() const noexcept { return by_; }
  [[nodiscard]] const SpanFilter& filter() const noexcept { return filter_; }

 private:
  void take(store::LaneId lane, const SpanHit& hit);
  GroupBy by_ = GroupBy::name;
  SpanFilter filter_;
  SpanGroup whole_;
  std::vector<SpanGroup> groups_;
  std::map<std::uint32_t, std::int64_t> by_step_;
  std::unordered_map<std::uint32_t, std::size_t> group_of_;
  std::vector<std::size_t> taken_;  ///< by lane: number of hits processed
  std::size_t unsettled_ = 0;       ///< all groups before it are settled
  bool ready_ = false;
};

/// "h.3.attn forward", "rank 2", "step 7", "before the first step", "in no other span".
[[nodiscard]] std::string group_name(const store::Store& store, const SpanSearch& search, GroupBy by,
                                     std::uint32_t key);

struct GroupTable {
  Table table;
  std::vector<std::size_t> of_row;  ///< by row: index of its group
};
/// One row per group; at most `most`, those with the largest totals.
[[nodiscard]] GroupTable group_table(const store::Store& store, const SpanSearch& search,
                                     const SpanStatistics& statistics, std::size_t most);
/// All groups in CSV format with a header line, times in nanoseconds.
[[nodiscard]] std::string groups_csv(const store::Store& store, const SpanSearch& search,
                                     const SpanStatistics& statistics);

}  // namespace shardscope::gui
