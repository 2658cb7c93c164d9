// Which part of a recording an export has: ranks, a range of time, a level of detail.
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
/// Spans that overlap the range are whole: one that reaches over an end of it is not cut, so that its length
/// is that of the recording. So are rows of steps, and stretches with missing events; counters of steps are
/// those of steps that end in it. Instants and messages are those in [from, to). What a counter or a
/// parameter's status was when the range begins stands in front of its changes, where it is known.
/// Of a part that is chosen by steps the range is each rank's own: from the begin of the first of these steps
/// on that rank to the end of the last, since ranks never begin a step at once; rows of steps and of their
/// times, and counters of steps, are chosen by number.
struct TimeRange {
  /// Nanoseconds on the run's clock.
  std::int64_t from_ns = store::Store::kBegin, to_ns = store::Store::kEnd;
  /// Whether [begin, end) overlaps it; of no length: whether it is in it.
  [[nodiscard]] bool overlaps(std::int64_t begin_ns, std::int64_t end_ns) const noexcept;
  [[nodiscard]] bool has(std::int64_t at_ns) const noexcept { return overlaps(at_ns, at_ns); }
  bool operator==(const TimeRange&) const = default;
};

struct ExportPart {
  std::vector<std::uint32_t> ranks = {};  ///< empty: all
  TimeRange range = {};
  /// What is emitted up to this level (`--detail` of a run).
  instrumentation::Detail detail = instrumentation::Detail::kernels;
  /// First and last; nothing: chosen by time. choose_steps() fills `range` and `range_of_rank` too.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> steps = {};
  std::map<std::uint32_t, TimeRange> range_of_rank = {};

  [[nodiscard]] bool whole() const noexcept;
  [[nodiscard]] bool has_rank(std::uint32_t rank) const noexcept;
  [[nodiscard]] bool has_kind(instrumentation::EventKind kind) const noexcept;
  /// A rank that has none of the chosen steps has what the others did meanwhile.
  [[nodiscard]] TimeRange of(std::uint32_t rank) const noexcept;
  [[nodiscard]] bool has(const store::StepRow& step) const noexcept;
  /// Whether the part has its values, which counters have at its end: it ends in (from, to], since the end of
  /// the last step is in a part that ends with it.
  [[nodiscard]] bool has_end(const store::StepRow& step) const noexcept;
  /// A step of one rank.
  [[nodiscard]] bool has(std::uint32_t step, const analysis::RankStep& of_rank) const noexcept;
  /// A message or a stretch with missing events.
  [[nodiscard]] bool has(const store::Message& message) const noexcept;
  [[nodiscard]] bool has(const store::Gap& gap) const noexcept;
};

/// Restricts the part to steps first to last. False: the recording has none of them, and nothing changes.
[[nodiscard]] bool choose_steps(const store::Store& store, std::uint32_t first, std::uint32_t last,
                                ExportPart& part);

/// walk_spans() over those spans of a lane that the part has.
void walk_part(const store::Store& store, store::LaneId lane, const ExportPart& part,
               const std::function<void(const WalkedSpan&)>& visit);

/// The instants of a rank that the part has, in order of time.
void for_each_instant(const store::Store& store, std::uint32_t rank, const ExportPart& part,
                      const std::function<void(const instrumentation::Event&)>& visit);

/// Where a rank's counters and states begin within the run: the part's begin. Nothing where that is the run's
/// begin, after its end, or where the state then is not known.
[[nodiscard]] std::optional<std::int64_t> state_begins(const store::Store& store, std::uint32_t rank,
                                                       const ExportPart& part);
/// Memory of each pool just before it, by category, without those that hold none.
void for_each_memory_before(
    const store::Store& store, std::uint32_t rank, const ExportPart& part,
    const std::function<void(instrumentation::MemoryPool, instrumentation::MemoryCategory,
                             std::int64_t bytes)>& visit);
/// The last change of status of each parameter before it, by parameter; none of one that had not changed.
void for_each_status_before(const store::Store& store, std::uint32_t rank, const ExportPart& part,
                            const std::function<void(std::uint32_t param, const store::ParamState&)>& visit);

/// Parameters of the rank's collectives, by sequence; none where the level leaves them out.
[[nodiscard]] std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> params_of(
    const store::Store& store, std::uint32_t rank, const ExportPart& part);
/// flows_to_waits() of the part: none where the level leaves an end of them out.
[[nodiscard]] std::vector<Flow> flows_of(const store::Store& store, std::uint32_t rank,
                                         const ExportPart& part);

}  // namespace shardscope::exporter
