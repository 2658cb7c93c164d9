// What a store answers: the run as a whole, lanes, instants, and the state at a time. All members are const.
// Times are nanoseconds on the run's common clock (collector clock), 0 = first event of the run.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/store/retention.h"
#include "app/store/store_rows.h"
#include "instrumentation/event.h"

namespace shardscope::store {

/// How much a store keeps.
enum class Keep : std::uint8_t {
  everything,
  /// Tables, ranks, steps, gaps, messages, totals of spans and memory peaks: what a summary needs, in
  /// memory that does not grow with the number of events. Ended spans, instants, gates and the state at a
  /// time are not kept.
  totals,
};

/// The asking half of a Store: views, analysis and exports need no more, and get it as `const Store&`. The
/// half that takes in events is class Store (store.h); a StoreQuery exists only as the base of one. Like a
/// Store it is used from one thread: const members read blocks through its cache.
class StoreQuery {
 public:
  StoreQuery(const StoreQuery&) = delete;
  StoreQuery& operator=(const StoreQuery&) = delete;

  // ---- memory and reading -------------------------------------------------------------------------
  [[nodiscard]] std::size_t cache_bytes()
      const noexcept;  ///< of data read from blocks: Store::set_cache_bytes()
  /// Memory of all data that grows with the run.
  [[nodiscard]] std::size_t resident_bytes() const;
  /// Time budget for reading blocks, shared by density(), memory_columns() and ready() until the next call.
  /// At least one block is read. When the budget is spent they return a coarser answer; queries that must be
  /// exact ignore it. nullopt, the default: no limit. A repeated query gets what was read for it
  /// before, and more, until answering all repeated queries together takes as long as `frame`.
  void limit_reading(std::optional<std::chrono::nanoseconds> time,
                     std::chrono::nanoseconds frame = std::chrono::nanoseconds(0)) const;
  /// Whether an answer since then was coarser than its query: repeat that for a finer one.
  [[nodiscard]] bool wants_more() const noexcept;
  /// Whether only the figures of a rank's blocks have been read, because it has sums of events not kept.
  [[nodiscard]] bool is_packed(std::uint32_t rank) const;
  /// Damage found by queries, as text for the user. What cannot be read is shown as a Gap from then on.
  [[nodiscard]] std::span<const std::string> problems() const noexcept;

  /// Bounds on the memory and disk space of a live run, however long it gets.
  struct Bounds {
    std::size_t packed_bytes = std::size_t{64} << 20;  ///< events and fine levels of detail; beyond: on disk
    /// In an unlinked temporary file; beyond, the oldest are evicted.
    std::uint64_t file_bytes = std::uint64_t{16} << 30;
    /// About what is kept in memory of each block besides, 5 KB; beyond, the oldest are evicted.
    std::size_t index_bytes = std::size_t{128} << 20;
    std::size_t steps = std::size_t{1} << 16;  ///< rows of the table of steps; beyond, the oldest quarter
  };
  /// Store::bound(); nullopt: none.
  [[nodiscard]] const std::optional<Bounds>& bounds() const noexcept;
  /// Events evicted by Store::bound() so far: shown as coarsely as the whole run or not at all, with a
  /// Gap for each rank.
  struct Evicted {
    std::int64_t until_ns = 0;  ///< end of the latest evicted events
    std::uint64_t events = 0, steps = 0;
  };
  [[nodiscard]] Evicted evicted() const;

  // ---- events kept by the recorder ----------------------------------------------------------------
  /// Events that the recorder did not keep (--max-age, --max-size): each rank has Gaps there.
  struct NotKept {
    std::uint64_t events = 0;
    std::int64_t until_ns = 0;  ///< end of the last such interval; no later event was deleted
  };
  [[nodiscard]] const NotKept& not_kept() const;
  /// By time, on the run's clock.
  [[nodiscard]] std::span<const Moment> moments() const;
  /// Each rank's own time over the whole run, by rank and step; empty where the recorder had no limits, and
  /// for a live run.
  [[nodiscard]] std::span<const OwnTimeRow> own_times() const;

  // ---- the run ----------------------------------------------------------------------------------
  [[nodiscard]] std::uint64_t revision() const noexcept;  ///< changes when anything that a view shows does
  [[nodiscard]] bool has_tables() const noexcept;
  [[nodiscard]] const ev::RunTables& tables() const;  ///< of the lowest rank known
  /// A rank's own tables (host, pid, hardware), without modules, parameters and slices, which tables()
  /// has; null if it has not sent any.
  [[nodiscard]] const ev::RunTables* rank_tables(std::uint32_t rank) const;
  [[nodiscard]] std::span<const RankRow> ranks() const;
  [[nodiscard]] std::span<const StepRow> steps() const;
  /// Where steps began again, after the ranks were started from a checkpoint: [Note: steps that begin again].
  /// The list only grows.
  [[nodiscard]] std::span<const Rewind> rewinds() const;
  [[nodiscard]] std::span<const Message> messages() const;
  [[nodiscard]] std::span<const Gap> gaps() const;
  [[nodiscard]] std::int64_t end_ns() const noexcept;  ///< latest event
  /// Time 0 on the collector's clock, nanoseconds. Moves back (and every time with it) when a rank
  /// arrives late with earlier events.
  [[nodiscard]] std::int64_t origin_ns() const noexcept;
  /// Bound on the error of a rank's times in [begin, end], nanoseconds: the largest of the overlapping chunks
  /// (ClockResiduals::largest()); for a rank without events its row's.
  [[nodiscard]] std::int64_t largest_clock_residual(std::uint32_t rank, std::int64_t begin_ns,
                                                    std::int64_t end_ns) const;
  [[nodiscard]] std::uint64_t event_count() const noexcept;
  [[nodiscard]] std::uint64_t dropped_count() const noexcept;
  [[nodiscard]] std::string name(std::uint32_t rank, std::uint32_t id) const;

  /// Span ends without a begin. Explained are those whose begin can be among
  /// missing events; the others indicate a faulty program.
  struct UnmatchedEnds {
    std::uint32_t rank = 0;
    ev::EventKind kind{};  ///< of the end
    std::uint64_t count = 0, explained = 0;
  };
  /// By rank and kind.
  [[nodiscard]] std::vector<UnmatchedEnds> unmatched_ends() const;
  /// The highest level of which any rank has an event; nullopt: no events.
  [[nodiscard]] std::optional<ev::Detail> recorded_detail() const;

  /// By lane, kind and code; ended spans only.
  [[nodiscard]] std::vector<SpanTotal> span_totals() const;

  // ---- lanes ------------------------------------------------------------------------------------
  [[nodiscard]] std::vector<LaneId> lanes() const;  ///< that hold any span, by rank then stream
  /// Before all and after all times.
  static constexpr std::int64_t kBegin = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  /// Calls `visit` for the spans of one depth that overlap [begin, end), in order of begin. A long run is
  /// read block by block: memory stays bounded.
  void for_each_span(LaneId lane, std::uint8_t depth, std::int64_t begin_ns, std::int64_t end_ns,
                     const std::function<void(const Span&)>& visit) const;
  [[nodiscard]] std::vector<Span> spans(LaneId lane, std::uint8_t depth, std::int64_t begin_ns = kBegin,
                                        std::int64_t end_ns = kEnd) const;
  /// Approximate number of spans that for_each_span() would visit, without reading them.
  [[nodiscard]] std::uint64_t span_count(LaneId lane, std::uint8_t depth, std::int64_t begin_ns,
                                         std::int64_t end_ns) const;
  /// Times that divide a lane into parts that are read as one, for a pass over all of it.
  [[nodiscard]] std::vector<std::int64_t> cuts(LaneId lane) const;
  /// Whether for_each_span() over [begin, end) reads nothing, after reading within the time budget.
  [[nodiscard]] bool ready(LaneId lane, std::int64_t begin_ns, std::int64_t end_ns) const;
  /// Whether it can become ready: not where [begin, end) has more events than a view reads at once.
  [[nodiscard]] bool becomes_ready(LaneId lane, std::int64_t begin_ns, std::int64_t end_ns) const;
  /// As ready(), for for_each_instant().
  [[nodiscard]] bool instants_ready(std::uint32_t rank, std::int64_t begin_ns, std::int64_t end_ns) const;
  [[nodiscard]] bool instants_become_ready(std::uint32_t rank, std::int64_t begin_ns,
                                           std::int64_t end_ns) const;
  [[nodiscard]] std::uint8_t depth_count(LaneId lane) const;
  /// Depth value of density() for the waits (fetch, reduce, deferred, data) of all depths of lane compute.
  static constexpr std::uint8_t kWaits = 255;
  /// Fills one Density per column of [begin, end) from levels of detail: O(columns).
  void density(LaneId lane, std::uint8_t depth, std::int64_t begin_ns, std::int64_t end_ns,
               std::span<Density> columns) const;
  /// Calls `visit` for the instant events of a rank in [begin, end), in order of time (status, decisions,
  /// buckets, trace, ...): raw records with `ticks` holding run nanoseconds. collective_entered is not among
  /// them: it is Span::mark_ns. Block by block, as for_each_span().
  void for_each_instant(std::uint32_t rank, std::int64_t begin_ns, std::int64_t end_ns,
                        const std::function<void(const ev::Event&)>& visit) const;
  /// An end without a known begin: the begin is missing, or the span with the same ids began before a gap
  /// and may be another one. A span of its kind was open since the last event missing there, at
  /// the latest.
  struct EndWithoutBegin {
    std::int64_t at_ns = 0;
    ev::StreamId stream{};
    ev::EventKind begin{};  ///< the begin kind
    /// Where the span with the same ids was cut, with no later contradiction; kBegin: no such span.
    std::int64_t since_ns = std::numeric_limits<std::int64_t>::min();
  };
  /// Visits the rank's ends without a known begin in [begin, end).
  void for_each_end_without_begin(std::uint32_t rank, std::int64_t begin_ns, std::int64_t end_ns,
                                  const std::function<void(const EndWithoutBegin&)>& visit) const;
  [[nodiscard]] std::vector<ev::Event> instants(std::uint32_t rank, std::int64_t begin_ns = kBegin,
                                                std::int64_t end_ns = kEnd) const;
  /// Instants of a kind, in order of time; reads blocks only where there are any.
  [[nodiscard]] std::vector<ev::Event> instants_of(std::uint32_t rank, ev::EventKind kind) const;
  /// The earliest instant of a kind.
  [[nodiscard]] std::optional<ev::Event> first_instant(std::uint32_t rank, ev::EventKind kind) const;
  /// Number of instants of a kind, or of one code of it, on a rank; nothing is read.
  [[nodiscard]] std::uint64_t instant_count(std::uint32_t rank, ev::EventKind kind) const;
  [[nodiscard]] std::uint64_t instant_count(std::uint32_t rank, ev::EventKind kind, std::uint8_t code) const;

  // ---- state at a time ----------------------------------------------------------------------------
  /// Whether a rank's state at a time is known: not where events were deleted by the recorder's limits,
  /// evicted, or damaged (found when they are read). There param_state() gives the initial state, there are
  /// no buckets, and memory is the largest sample near that time.
  [[nodiscard]] bool is_known(std::uint32_t rank, std::int64_t at_ns) const;
  [[nodiscard]] ParamState param_state(std::uint32_t rank, std::uint32_t param, std::int64_t at_ns) const;
  void param_states(std::uint32_t rank, std::int64_t at_ns,
                    std::span<ParamState> out) const;  ///< by param id
  /// Reads what param_states() needs and is not in memory, one block at least, for about `time`. True:
  /// param_states() will read nothing.
  [[nodiscard]] bool read_states(std::uint32_t rank, std::int64_t at_ns, std::chrono::nanoseconds time) const;
  /// Status changes of one parameter on one rank.
  struct StatusChange {
    std::int64_t at_ns = 0;
    ParamState state;
  };
  /// The latest `most` changes up to a time, oldest first.
  [[nodiscard]] std::vector<StatusChange> status_history(std::uint32_t rank, std::uint32_t param,
                                                         std::int64_t until_ns = kEnd,
                                                         std::size_t most = SIZE_MAX) const;
  /// Buckets being filled at a time, oldest first.
  [[nodiscard]] std::vector<BucketState> buckets_at(std::uint32_t rank, std::int64_t at_ns) const;
  [[nodiscard]] MemorySample memory_at(std::uint32_t rank, ev::MemoryPool pool, std::int64_t at_ns) const;
  [[nodiscard]] std::optional<MemorySample> memory_peak(std::uint32_t rank, ev::MemoryPool pool) const;
  /// Peak over time of the model states: param_shard + param_secondary + grad_full + grad_shard +
  /// master_weight + momentum + variance, and at stages 0 to 2 param_gathered, which there holds the resident
  /// 16-bit parameters outside the owned range (metrics.md section 1). At stage 3 gathered parameters are a
  /// temporary, not model state. Categories that do not count are zero in the sample.
  [[nodiscard]] std::optional<MemorySample> model_state_peak(std::uint32_t rank, ev::MemoryPool pool) const;
  /// Stacked samples for a plot: for each column the sample with the highest total within it.
  void memory_columns(std::uint32_t rank, ev::MemoryPool pool, std::int64_t begin_ns, std::int64_t end_ns,
                      std::span<MemorySample> columns) const;
  /// Gates in order of time per rank: the positions of stepping through a recording.
  struct GateRow {
    std::int64_t at_ns;
    std::uint64_t number;
    ev::GateKind kind;
    std::uint32_t id;
  };
  using GateMatch = std::function<bool(const GateRow&)>;
  [[nodiscard]] std::vector<GateRow> gates(std::uint32_t rank, std::int64_t begin_ns = kBegin,
                                           std::int64_t end_ns = kEnd) const;
  [[nodiscard]] bool has_gates(std::uint32_t rank) const;
  /// The last gate before a time, or the first after it, that `match` accepts (empty: any).
  [[nodiscard]] std::optional<GateRow> gate_before(std::uint32_t rank, std::int64_t at_ns,
                                                   const GateMatch& match = {}) const;
  [[nodiscard]] std::optional<GateRow> gate_after(std::uint32_t rank, std::int64_t at_ns,
                                                  const GateMatch& match = {}) const;

 protected:
  struct State;  // store_state.h
  explicit StoreQuery(Keep keep);
  ~StoreQuery();
  StoreQuery(StoreQuery&&) noexcept;
  StoreQuery& operator=(StoreQuery&&) noexcept;

  std::unique_ptr<State> state_;
};

}  // namespace shardscope::store
