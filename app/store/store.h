// The store: everything a view or an export reads. A live run and a recording are the same thing to it.
// One thread owns a Store; chunks are handed to it by ingest(). Times are nanoseconds on the run's
// common clock (collector clock), 0 = first event of the run.
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

/// How much a store remembers.
enum class Keep : std::uint8_t {
  everything,
  /// Tables, ranks, steps, gaps, messages, totals of spans and peaks of memory: what a summary needs, in
  /// memory that does not grow with the number of events. Ended spans, instants, gates and the state at a
  /// time are gone.
  totals,
};

class Chunk;  // chunk.h

/// [Note: what is in memory]
/// A rank's newest events, some ten thousands, are here whole. Older ones are sealed into blocks: a block's
/// events stay compressed, in the recording or in memory, and are read when a query needs them, through a
/// cache with a bound. What is always here of a block is a few kilobytes: coarse levels of detail, sums,
/// and a keyframe from which its events can be read without those before it. So a view costs what its
/// columns cost, and a state at a time costs a block or two of each rank.
///
/// [Note: eviction]
/// A live run goes on for days. Where a store has bounds, packed parts of older blocks go to a temporary file
/// first. When that is full, or the few kilobytes that stay of each block have become too many, the oldest
/// blocks are evicted, as a collector drops the oldest part of its log. What is left of them: levels of
/// detail of the whole row, peaks of memory by stretch, sums, totals and counts. Their spans, instants and
/// states are gone. A Gap stands in their place, so that their absence is not taken for a rank that was idle.
/// A recording has them.
/// Three kinds of members: what takes in is not const and only its owner calls it; what answers is const, and
/// views get a `const Store&`; recording is elsewhere (RecordingWriter writes a file, open_recording() fills
/// a store from one).
class Store {
 public:
  explicit Store(Keep keep = Keep::everything);
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  // ---- input ------------------------------------------------------------------------------------
  /// Wrong input is never fatal: a chunk that was ingested before (same rank and sequence) is ignored, a
  /// missing one is a Gap, events that make no sense are left out.
  void set_tables(std::uint32_t rank, const ev::RunTables& tables);
  void ingest(const Chunk& chunk);
  void set_rank(const RankRow& row);
  void add_message(Message message);
  void add_name(std::uint32_t rank, std::uint32_t id, std::string name);

  // ---- how much is in memory ----------------------------------------------------------------------
  static constexpr std::size_t kSealEvents = std::size_t{1} << 13;
  /// A rank's newest events are sealed when there are this many, or fewer with many ranks. SIZE_MAX: never.
  void seal_after(std::size_t events);
  void set_cache_bytes(std::size_t bytes);  ///< of what is read from blocks; default 256 MiB
  [[nodiscard]] std::size_t cache_bytes() const noexcept;
  /// Memory of everything that grows with the run.
  [[nodiscard]] std::size_t resident_bytes() const;
  /// Time budget for reading blocks, shared by density(), memory_columns() and ready() until the next call.
  /// At least one block is read. When the budget is spent they return a coarser answer; queries that must be
  /// exact ignore it. nullopt, the default: no limit. A query that is repeated gets what was read for it
  /// before, and more, until answering all repeated queries together takes as long as `frame`.
  void limit_reading(std::optional<std::chrono::nanoseconds> time,
                     std::chrono::nanoseconds frame = std::chrono::nanoseconds(0)) const;
  /// Since then some answer was coarser than the query: repeat it for a finer one.
  [[nodiscard]] bool wants_more() const noexcept;
  /// Whether of a rank's blocks the figures alone were read, since what was not kept of it comes before them.
  [[nodiscard]] bool is_packed(std::uint32_t rank) const;
  /// Damage found by queries, as text for the user. What cannot be read is a Gap from then on.
  [[nodiscard]] std::span<const std::string> problems() const noexcept;

  /// What a live run may take in memory and on disk, however long it gets.
  struct Bounds {
    std::size_t packed_bytes = std::size_t{64} << 20;  ///< events and fine levels of detail; beyond: on disk
    /// In an unlinked temporary file; beyond, the oldest are evicted.
    std::uint64_t file_bytes = std::uint64_t{16} << 30;
    /// About what is kept of blocks beside that, 5 KB each; beyond, the oldest are evicted.
    std::size_t index_bytes = std::size_t{128} << 20;
    std::size_t steps = std::size_t{1} << 16;  ///< rows of the table of steps; beyond, the oldest quarter
  };
  /// Before anything is received. [Note: eviction]
  void bound(const Bounds& bounds);
  [[nodiscard]] const std::optional<Bounds>& bounds() const noexcept;
  /// What bound() has evicted so far: it is shown as coarsely as all of the run is, or not at all, and each
  /// rank has a Gap there.
  struct Evicted {
    std::int64_t until_ns = 0;  ///< before this something is
    std::uint64_t events = 0, steps = 0;
  };
  [[nodiscard]] Evicted evicted() const;

  // ---- what its recording kept --------------------------------------------------------------------
  /// What the recorder did not keep (--max-age, --max-size): each rank has Gaps there.
  struct NotKept {
    std::uint64_t events = 0;
    std::int64_t until_ns = 0;  ///< the end of the last such stretch; what is newer is here whole
  };
  [[nodiscard]] const NotKept& not_kept() const;
  /// By time, on the run's clock.
  [[nodiscard]] std::span<const Moment> moments() const;
  /// Each rank's own time over the whole run, by rank and step; empty where the recorder had no limits, and
  /// of a live run.
  [[nodiscard]] std::span<const OwnTimeRow> own_times() const;

  // ---- the run ----------------------------------------------------------------------------------
  [[nodiscard]] std::uint64_t revision() const noexcept;  ///< changes when anything a view shows changed
  [[nodiscard]] bool has_tables() const noexcept;
  [[nodiscard]] const ev::RunTables& tables() const;  ///< of the lowest rank known
  /// What is a rank's own (host, pid, hardware), without modules, parameters and slices, which tables()
  /// has; null if it has not sent any.
  [[nodiscard]] const ev::RunTables* rank_tables(std::uint32_t rank) const;
  [[nodiscard]] std::span<const RankRow> ranks() const;
  [[nodiscard]] std::span<const StepRow> steps() const;
  [[nodiscard]] std::span<const Message> messages() const;
  [[nodiscard]] std::span<const Gap> gaps() const;
  [[nodiscard]] std::int64_t end_ns() const noexcept;  ///< latest event
  /// Time 0 on the collector's clock, nanoseconds. Moves back (and every time moves with it) when a rank
  /// arrives late with earlier events.
  [[nodiscard]] std::int64_t origin_ns() const noexcept;
  /// Bound on the error of a rank's times in [begin, end], nanoseconds: the largest of the chunks that lie
  /// there (ClockResiduals::largest()); of a rank without events its row's.
  [[nodiscard]] std::int64_t largest_clock_residual(std::uint32_t rank, std::int64_t begin_ns,
                                                    std::int64_t end_ns) const;
  [[nodiscard]] std::uint64_t event_count() const noexcept;
  [[nodiscard]] std::uint64_t dropped_count() const noexcept;
  [[nodiscard]] std::string name(std::uint32_t rank, std::uint32_t id) const;

  /// Ends that close no span, because their begin is missing. Explained are those whose begin can be among
  /// events that are known to be missing; the others mean that the program emits something wrong.
  struct UnmatchedEnds {
    std::uint32_t rank = 0;
    ev::EventKind kind{};  ///< of the end
    std::uint64_t count = 0, explained = 0;
  };
  /// By rank and kind.
  [[nodiscard]] std::vector<UnmatchedEnds> unmatched_ends() const;
  /// The highest level of which any rank has an event; nothing where there is none.
  [[nodiscard]] std::optional<ev::Detail> recorded_detail() const;

  /// By lane, kind and code; of ended spans only.
  [[nodiscard]] std::vector<SpanTotal> span_totals() const;

  // ---- lanes ------------------------------------------------------------------------------------
  [[nodiscard]] std::vector<LaneId> lanes() const;  ///< that hold any span, by rank then stream
  /// Before and after everything.
  static constexpr std::int64_t kBegin = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  /// Calls `visit` for the spans of one depth that overlap [begin, end), in order of begin. Of a long run
  /// this reads block by block: memory stays bounded.
  void for_each_span(LaneId lane, std::uint8_t depth, std::int64_t begin_ns, std::int64_t end_ns,
                     const std::function<void(const Span&)>& visit) const;
  [[nodiscard]] std::vector<Span> spans(LaneId lane, std::uint8_t depth, std::int64_t begin_ns = kBegin,
                                        std::int64_t end_ns = kEnd) const;
  /// How many for_each_span() would visit, about, without reading them.
  [[nodiscard]] std::uint64_t span_count(LaneId lane, std::uint8_t depth, std::int64_t begin_ns,
                                         std::int64_t end_ns) const;
  /// Times that divide a lane into parts each of which is read at once, for a pass over all of it.
  [[nodiscard]] std::vector<std::int64_t> cuts(LaneId lane) const;
  /// Whether for_each_span() over [begin, end) reads nothing, once what there is time for has been read.
  [[nodiscard]] bool ready(LaneId lane, std::int64_t begin_ns, std::int64_t end_ns) const;
  /// Whether it ever becomes ready: not where [begin, end) holds more events than a view reads at once.
  [[nodiscard]] bool becomes_ready(LaneId lane, std::int64_t begin_ns, std::int64_t end_ns) const;
  /// As ready(), of for_each_instant().
  [[nodiscard]] bool instants_ready(std::uint32_t rank, std::int64_t begin_ns, std::int64_t end_ns) const;
  [[nodiscard]] bool instants_become_ready(std::uint32_t rank, std::int64_t begin_ns,
                                           std::int64_t end_ns) const;
  [[nodiscard]] std::uint8_t depth_count(LaneId lane) const;
  /// Depth of the waits (fetch, reduce, deferred, data) of every depth of the compute lane, for density().
  static constexpr std::uint8_t kWaits = 255;
  /// Fills one Density per column of [begin, end) from levels of detail: O(columns).
  void density(LaneId lane, std::uint8_t depth, std::int64_t begin_ns, std::int64_t end_ns,
               std::span<Density> columns) const;
  /// Calls `visit` for the instant events of a rank in [begin, end), in order of time (status, decisions,
  /// buckets, trace, ...): raw records with `ticks` holding run nanoseconds. collective_entered is not among
  /// them: it is Span::mark_ns. Block by block, as for_each_span().
  void for_each_instant(std::uint32_t rank, std::int64_t begin_ns, std::int64_t end_ns,
                        const std::function<void(const ev::Event&)>& visit) const;
  /// An end on a lane whose begin is not known: it is missing, or the span with its ids began before a gap
  /// and may be another one. Something of its kind was open since the last event that is missing there, at
  /// the latest.
  struct EndWithoutBegin {
    std::int64_t at_ns = 0;
    ev::StreamId stream{};
    ev::EventKind begin{};  ///< the begin kind
    /// Where the span with its ids was cut, which nothing recorded since contradicts; kBegin: there is none.
    std::int64_t since_ns = std::numeric_limits<std::int64_t>::min();
  };
  /// Visits loose ends of a rank in [begin, end).
  void for_each_end_without_begin(std::uint32_t rank, std::int64_t begin_ns, std::int64_t end_ns,
                                  const std::function<void(const EndWithoutBegin&)>& visit) const;
  [[nodiscard]] std::vector<ev::Event> instants(std::uint32_t rank, std::int64_t begin_ns = kBegin,
                                                std::int64_t end_ns = kEnd) const;
  /// Instants of a kind, in order of time; reads only where there are any.
  [[nodiscard]] std::vector<ev::Event> instants_of(std::uint32_t rank, ev::EventKind kind) const;
  /// The earliest instant of a kind.
  [[nodiscard]] std::optional<ev::Event> first_instant(std::uint32_t rank, ev::EventKind kind) const;
  /// How many instants of a kind, and of a code of it, a rank has; nothing is read.
  [[nodiscard]] std::uint64_t instant_count(std::uint32_t rank, ev::EventKind kind) const;
  [[nodiscard]] std::uint64_t instant_count(std::uint32_t rank, ev::EventKind kind, std::uint8_t code) const;

  // ---- state at a time ----------------------------------------------------------------------------
  /// Whether a rank's state at a time is known: it is not where events were deleted by the recorder's limits,
  /// evicted, or damaged (found when they are read). There param_state() gives the initial state, there are
  /// no buckets, and memory is the largest sample near that time.
  [[nodiscard]] bool is_known(std::uint32_t rank, std::int64_t at_ns) const;
  [[nodiscard]] ParamState param_state(std::uint32_t rank, std::uint32_t param, std::int64_t at_ns) const;
  void param_states(std::uint32_t rank, std::int64_t at_ns,
                    std::span<ParamState> out) const;  ///< by param id
  /// Status changes of one parameter on one rank.
  struct StatusChange {
    std::int64_t at_ns;
    ParamState state;
  };
  /// The latest `most` up to a time, oldest first.
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
  /// passing extra, not model state. Categories that do not count are zero in the sample.
  [[nodiscard]] std::optional<MemorySample> model_state_peak(std::uint32_t rank, ev::MemoryPool pool) const;
  /// Stacked samples for a plot: at each column the sample with the highest total within it.
  void memory_columns(std::uint32_t rank, ev::MemoryPool pool, std::int64_t begin_ns, std::int64_t end_ns,
                      std::span<MemorySample> columns) const;
  /// Gates in order of time per rank: what stepping through a recording moves along.
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

 private:
  friend class RecordedRun;  // recorded_run.h: what a recording fills a store with
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardscope::store
