// The part of a recording that is exported: ranks, a time range, a level of detail.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "app/export/span_walk.h"
#include "app/store/store.h"

namespace shardscope::analysis {
struct RankStep;
}

namespace shardscope::exporter {

/// [Note: part of a recording]
/// Spans that overlap the range are exported whole: one that crosses a boundary is not cut and keeps its
/// duration. The same holds for rows of steps and for gaps; counters of steps are those of steps that end in
/// the range. Instants and messages are those in [from, to). The state of a counter or parameter at the begin
/// of the range is written before its changes, where it is known. In a part chosen by steps each rank has its
/// own range: from the begin of the first of these steps on that rank to the end of the last, since ranks
/// never begin a step at the same time; rows of steps, their times and their counters are chosen by step
/// number.
struct TimeRange {
  /// Nanoseconds on the run's clock.
  std::int64_t from_ns = store::Store::kBegin, to_ns = store::Store::kEnd;
  /// Whether [begin, end) overlaps the range; an empty interval: whether the range contains it.
  [[nodiscard]] bool overlaps(std::int64_t begin_ns, std::int64_t end_ns) const noexcept;
  [[nodiscard]] bool has(std::int64_t at_ns) const noexcept { return overlaps(at_ns, at_ns); }
  bool operator==(const TimeRange&) const = default;
};

struct ExportPart {
  std::vector<std::uint32_t> ranks = {};  ///< empty: all
  TimeRange range = {};
  /// Events emitted up to this level (`--detail` of a run).
  instrumentation::Detail detail = instrumentation::Detail::kernels;
  /// First and last; empty: chosen by time. choose_steps() sets `range` and `range_of_rank` as well.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> steps = {};
  std::map<std::uint32_t, TimeRange> range_of_rank = {};

  [[nodiscard]] bool whole() const noexcept;
  [[nodiscard]] bool has_rank(std::uint32_t rank) const noexcept;
  [[nodiscard]] bool has_kind(instrumentation::EventKind kind) const noexcept;
  /// The rank's range. A rank without any of the chosen steps has the range of all ranks together.
  [[nodiscard]] TimeRange of(std::uint32_t rank) const noexcept;
  [[nodiscard]] bool has(const store::StepRow& step) const noexcept;
  /// Whether the part has the step's counters, which are set at its end: the end is in (from, to], since a
  /// part that ends with a step includes its end.
  [[nodiscard]] bool has_end(const store::StepRow& step) const noexcept;
  /// A row of one rank in one step.
  [[nodiscard]] bool has(std::uint32_t step, const analysis::RankStep& of_rank) const noexcept;
  /// A message or a stretch with missing events.
  [[nodiscard]] bool has(const store::Message& message) const noexcept;
  [[nodiscard]] bool has(const store::Gap& gap) const noexcept;
};

/// Restricts the part to steps first to last. False if the recording has none of them: `part` is unchanged.
[[nodiscard]] bool choose_steps(const store::Store& store, std::uint32_t first, std::uint32_t last,
                                ExportPart& part);

/// Calls `visit` as walk_spans() does, for the spans of a lane that are in the part.
void walk_part(const store::Store& store, store::LaneId lane, const ExportPart& part,
               const std::function<void(const WalkedSpan&)>& visit);

/// Calls `visit` for the instants of a rank that are in the part, in order of time.
void for_each_instant(const store::Store& store, std::uint32_t rank, const ExportPart& part,
                      const std::function<void(const instrumentation::Event&)>& visit);

/// The begin of the part, where a rank's counters and states are written first. Empty if that is the begin of
/// the run or after its end, or if the state at that time is not known.
[[nodiscard]] std::optional<std::int64_t> state_begins(const store::Store& store, std::uint32_t rank,
                                                       const ExportPart& part);
/// Calls `visit` with the bytes of each pool and category just before state_begins(), without zeros.
void for_each_memory_before(
    const store::Store& store, std::uint32_t rank, const ExportPart& part,
    const std::function<void(instrumentation::MemoryPool, instrumentation::MemoryCategory,
                             std::int64_t bytes)>& visit);
/// Calls `visit` with the status of each parameter just before state_begins(), if it ever changed.
void for_each_status_before(const store::Store& store, std::uint32_t rank, const ExportPart& part,
                            const std::function<void(std::uint32_t param, const store::ParamState&)>& visit);

/// Parameters of a rank's collectives, by sequence number; empty if the level of detail excludes them.
[[nodiscard]] std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> params_of(
    const store::Store& store, std::uint32_t rank, const ExportPart& part);
/// flows_to_waits() of the part; empty if the level of detail excludes either end.
[[nodiscard]] std::vector<Flow> flows_of(const store::Store& store, std::uint32_t rank,
                                         const ExportPart& part);

}  // namespace shardscope::exporter
