// One rank's run: sealed blocks, of which only levels of detail and keyframes are in memory, and the newest
// stretch, which grows. Times are of the collector's clock.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "app/store/block.h"
#include "app/store/block_access.h"
#include "app/store/memory_history.h"
#include "app/store/pauses.h"
#include "app/store/rank_figures.h"
#include "app/store/rank_state.h"
#include "app/store/row_sums.h"
#include "app/store/span_totals.h"
#include "app/store/store.h"
#include "app/store/tile.h"

namespace shardscope::store {

class RankRun {
 public:
  /// `access` outlives it.
  RankRun(std::uint32_t rank, BlockAccess& access, Keep keep);

  // ---- input ------------------------------------------------------------------------------------
  /// Where the events of a chunk stay when its stretch is sealed.
  struct Origin {
    bool in_memory = true;
    std::int64_t row = 0;  ///< of a recording, when not in memory
  };
  /// The next chunk, of plausible times. `gap`: events before it are missing. The stretch is sealed when it
  /// has `seal_events` or more.
  void add(const Chunk& chunk, bool gap, Origin origin, std::size_t seal_events);
  /// Events are missing, and nothing says when.
  void gap();
  /// A block that was sealed elsewhere, after those before.
  void append(Block block);
  /// The same for one whose events were not kept; `rare`: instants of its time that later steps depend on
  /// (is_rare()). `blocks_follow`: what comes next begins with a keyframe of its own; else its state is not
  /// known.
  void append_sum(Block block, std::span<const ev::Event> rare, bool blocks_follow);
  /// Instants of what was not kept that later steps depend on.
  void keep_rare(std::span<const ev::Event> rare);
  /// A block of a recording of which only the head is read now; from a rank's first one on all of them come
  /// so. `figures`: its own, with those of blocks that come right after it; null where they were there
  /// before. [Note: packed blocks]
  void append(PackedBlock packed, const RankFigures* figures);
  [[nodiscard]] bool is_packed() const noexcept { return !packed_.empty(); }
  /// What the newest stretch begins with, after the last append().
  void resume_from(const RankKeyframe& keyframe, std::vector<ParamState> statuses);
  /// The same, found by reading the last block.
  void resume_from_last_block();
  void seal_head();
  void set_stage();  ///< access().model_state or initial changed
  /// RankState::notable() of what came since the last call, in order of arrival.
  [[nodiscard]] std::vector<ev::Event> take_notable();

  // ---- looking ----------------------------------------------------------------------------------
  using SpanVisitor = std::function<void(const Span&)>;
  using EventVisitor = std::function<void(const ev::Event&)>;
  static constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] bool has_lane(ev::StreamId stream) const { return depth_count(stream) > 0; }
  [[nodiscard]] std::uint8_t depth_count(ev::StreamId stream) const;
  /// Spans of a depth that overlap [begin, end), by begin.
  void visit_spans(ev::StreamId stream, std::uint8_t depth, std::int64_t begin_ns, std::int64_t end_ns,
                   const SpanVisitor& visit) const;
  /// The pauses that overlap [begin, end), the one that goes on last, with an open end. Nothing is read.
  void visit_pauses(std::int64_t begin_ns, std::int64_t end_ns, const SpanVisitor& visit) const;
  /// RankState::ends_without_begin() in [begin, end), by arrival.
  void visit_ends_without_begin(std::int64_t begin_ns, std::int64_t end_ns,
                                const std::function<void(const EndWithoutBegin&)>& visit) const;
  /// Where a lane's stretches meet, ascending.
  [[nodiscard]] std::vector<std::int64_t> cuts(ev::StreamId stream) const;
  /// Whether visit_spans() would read nothing: reads what there is time for, unless it is very much.
  [[nodiscard]] bool ready(ev::StreamId stream, std::int64_t begin_ns, std::int64_t end_ns) const;
  // Store::becomes_ready(), instants_ready(), instants_become_ready().
  [[nodiscard]] bool becomes_ready(ev::StreamId stream, std::int64_t begin_ns, std::int64_t end_ns) const;
  [[nodiscard]] bool instants_ready(std::int64_t begin_ns, std::int64_t end_ns) const;
  [[nodiscard]] bool instants_become_ready(std::int64_t begin_ns, std::int64_t end_ns) const;
  /// Adds a row to `columns`; depth kWaits: the waits of every depth.
  void density(ev::StreamId stream, std::uint8_t depth, std::int64_t now_ns,
               const DensityColumns& columns) const;
  /// Instants in [begin, end) by time.
  void visit_instants(std::int64_t begin_ns, std::int64_t end_ns, const EventVisitor& visit) const;
  /// Instants of a kind, and of a code of it.
  [[nodiscard]] std::uint64_t instant_count(ev::EventKind kind, std::optional<std::uint8_t> code) const;
  [[nodiscard]] std::vector<ev::Event> instants_of(ev::EventKind kind) const;  ///< by time
  [[nodiscard]] std::optional<ev::Event> first_instant(ev::EventKind kind) const;
  void visit_gates(std::int64_t begin_ns, std::int64_t end_ns,
                   const std::function<void(const Store::GateRow&)>& visit) const;
  using GateMatch = std::function<bool(const Store::GateRow&)>;
  [[nodiscard]] std::optional<Store::GateRow> gate_before(std::int64_t at_ns, const GateMatch& match) const;
  [[nodiscard]] std::optional<Store::GateRow> gate_after(std::int64_t at_ns, const GateMatch& match) const;
  [[nodiscard]] bool has_gates() const;
  [[nodiscard]] SpanTotals span_totals() const;
  /// The highest level of which there is an event; of a run in blocks without its newest stretch.
  [[nodiscard]] std::optional<ev::Detail> recorded_detail() const;
  /// RankState::unmatched_ends() of everything, by kind.
  [[nodiscard]] std::map<ev::EventKind, Store::UnmatchedEnds> unmatched_ends() const;

  /// Store::is_known().
  [[nodiscard]] bool is_known(std::int64_t at_ns) const;
  void param_states(std::int64_t at_ns, std::span<ParamState> out) const;
  /// The latest `most` changes of a parameter up to a time, oldest first.
  [[nodiscard]] std::vector<Store::StatusChange> status_history(std::uint32_t param, std::int64_t until_ns,
                                                                std::size_t most) const;
  [[nodiscard]] std::vector<BucketState> buckets_at(std::int64_t at_ns) const;
  [[nodiscard]] MemorySample memory_at(std::size_t pool, std::int64_t at_ns) const;
  [[nodiscard]] std::optional<MemorySample> memory_peak(std::size_t pool) const;
  [[nodiscard]] std::optional<MemorySample> model_state_peak(std::size_t pool) const;
  void memory_columns(std::size_t pool, std::int64_t begin_ns, std::int64_t end_ns,
                      std::span<MemorySample> columns) const;

  /// What was evicted since the last call: nothing, mostly. [Note: eviction]
  struct Evicted {
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint64_t events = 0;
  };
  [[nodiscard]] Evicted take_evicted() { return std::exchange(evicted_, {}); }

  [[nodiscard]] std::size_t bytes() const;  ///< of the blocks that are sealed, and the newest stretch
  [[nodiscard]] std::deque<Block>& blocks() noexcept { return blocks_; }

 private:
  struct Head {
    RankState state;
    RankKeyframe begin;
    Block origin;                ///< what identifies its events
    std::vector<ev::Event> raw;  ///< collector clock; empty when a recording has them
    std::size_t events = 0;
    bool gap = false;
    std::size_t notable_taken = 0;
    std::optional<Missing> missing;  ///< that events have not passed yet
    std::int64_t missing_offset_ns = 0;
  };
  struct Range {
    std::size_t first = 0, last = 0;
  };

  /// The last block ends so; null: it is not known how, only when its lanes do.
  void go_on_from_state(const std::shared_ptr<const RankState>& known,
                        const std::array<std::int64_t, ev::kStreamCount>& last_ns);
  /// resume_from_last_block() without the blocks before.
  void go_on_from_packed();
  /// What comes now begins a stretch of its own.
  void begin_gap();

  /// Spans that are few over very many blocks are not worth reading those.
  /// Whether all of it is here, once what there is time for has been read.
  [[nodiscard]] bool read_in_time(const Range& range, RankState::For part) const;
  [[nodiscard]] bool worth_reading(const Range& range) const noexcept;
  [[nodiscard]] std::shared_ptr<const RankState> state(
      std::size_t i, RankState::For part, BlockAccess::Read read = BlockAccess::Read::always) const;
  /// Null when it is not known and there is no time. Valid until something else is read.
  [[nodiscard]] const BlockPage* page(std::size_t i, BlockAccess::Detail detail,
                                      BlockAccess::Read read = BlockAccess::Read::if_time) const;
  /// Blocks that may hold events in [begin, end].
  [[nodiscard]] Range holding(std::int64_t begin_ns, std::int64_t end_ns) const;
  /// Blocks whose stretch of a lane meets [begin, end].
  [[nodiscard]] Range of_lane(std::size_t stream, std::int64_t begin_ns, std::int64_t end_ns) const;
  /// The block to replay from for the state at a time; blocks_.size(): the newest stretch.
  [[nodiscard]] std::size_t base_of(std::int64_t at_ns) const;
  /// A span that is open at the end of block `i`, as it is known now.
  [[nodiscard]] Span continued(std::size_t stream, std::size_t depth, std::size_t i, Span span) const;
  void carry_back(std::size_t i, const Block::Carried& carried) const;
  /// Spills and lets go where access_.bounds want it.
  void keep_bounds();
  void evict(std::size_t blocks);
  void keep_rare_instants(std::size_t block);
  [[nodiscard]] bool keeps_rare(ev::EventKind kind) const;
  /// Approximate bytes of everything that is kept of the blocks beside what can be spilled.
  [[nodiscard]] std::size_t index_bytes() const;
  void add_to_sums(const Block& block) const;
  /// Take figures of blocks that come next.
  void take_figures(const RankFigures& figures);
  void take_count(ev::EventKind kind, std::uint8_t code, std::uint64_t count);
  void take_notable_of(std::span<const ev::Event> notable);
  /// When the next block begins and ends.
  void note_times(const BlockOrigin& block) const;
  /// Everything else of it: levels of detail, its keyframe.
  void place(Block block) const;
  /// True once every packed block is where it belongs. [Note: packed blocks]
  bool unpack(BlockAccess::Read read = BlockAccess::Read::always) const;
  void add_unmatched_ends(std::map<ev::EventKind, Store::UnmatchedEnds>& ends, ev::EventKind kind,
                          std::uint8_t code, std::uint64_t count) const;
  /// Takes the levels of detail of the stretch that is sealed, while they are fine.
  void take_levels(const RankState& ended);
  /// Leaves out of the sums what was found damaged since.
  void renew_sums() const;
  /// A tile's row. Not `stored`: there is none; else no levels: there was no time to read it.
  struct Tile {
    const DensityPyramid* levels = nullptr;  ///< valid as long as this
    bool stored = false;
    std::shared_ptr<const void> kept{};  ///< of the cache: other blocks are read before it is drawn
  };
  /// Tile of the last 16 blocks, where they were not put together as they came: with very many ranks a tile
  /// that grows in each would take a megabyte. Read back from their pages; empty where these are not in
  /// memory.
  [[nodiscard]] std::vector<TileRow> tile_of_pages() const;
  [[nodiscard]] Tile tile(std::size_t group, ev::StreamId stream, std::uint8_t depth) const;
  /// Whether `range`, blocks of one tile, is drawn from it where buckets may be as wide as this.
  [[nodiscard]] bool wants_tile(const Range& range, ev::StreamId stream, std::uint8_t depth,
                                double bucket_ns) const;
  /// Blocks of `range`: from tiles where these are fine enough, else one by one.
  void density_of_blocks(const Range& range, ev::StreamId stream, std::uint8_t depth,
                         const DensityColumns& columns) const;
  /// Blocks of `range`: each from as fine a page as its columns want; where none is known, from all of
  /// the row.
  void density_of_pages(const Range& range, ev::StreamId stream, std::uint8_t depth,
                        const DensityColumns& columns) const;
  /// From the spans themselves where levels of detail are coarser than the columns.
  void density_of(std::size_t i, ev::StreamId stream, std::uint8_t depth,
                  const DensityColumns& columns) const;

  std::uint32_t rank_;
  BlockAccess& access_;
  Keep keep_;
  mutable std::deque<Block> blocks_;         ///< `damaged` is found by looking
  mutable std::vector<std::int64_t> reach_;  ///< by block, also packed: latest event up to here
  mutable std::vector<std::int64_t> floor_;  ///< the same: earliest event from here on
  mutable std::vector<PackedBlock> packed_;  ///< of which blocks_ will be
  mutable std::size_t unpacked_ = 0;         ///< of these, the first ones are in blocks_ already
  bool packed_gates_ = false;                ///< one of them has gates
  std::size_t gone_ = 0;                     ///< blocks before these, a multiple of kTileBlocks
  std::size_t spilled_ = 0;                  ///< of blocks_, the first ones
  std::size_t block_bytes_ = 0,
              index_bytes_ = 0;  ///< of the blocks without what can be spilled; reported to access_
  Evicted evicted_;
  std::int64_t evicted_until_ = kFirst;                      ///< of all that was
  std::array<MemoryHistory, ev::kMemoryPoolCount> history_;  ///< of blocks that are gone
  std::vector<ev::Event> rare_;  ///< of these, instants that later steps depend on
  mutable std::array<RowSums, ev::kStreamCount> sums_;
  mutable std::size_t damage_in_sums_ = 0;  ///< access_.damage() that they are without
  mutable std::set<std::size_t> left_out_;  ///< blocks that they are without
  /// By block: its page, or that it is not in the cache, as long as that forgets nothing. A frame asks once
  /// per row.
  struct KnownPage {
    const BlockCache::Held* held = nullptr;
    std::uint64_t as_of = 0;
  };
  mutable std::array<std::vector<KnownPage>, BlockAccess::kDetails> pages_;
  struct KnownTile {
    const BlockCache::Held* held = nullptr;
    std::uint64_t as_of = 0;
    std::size_t none_of = 0;  ///< the recording has none that ends before this block
  };
  mutable std::map<std::uint32_t, std::vector<KnownTile>> tiles_;           ///< by tile_row() and tile
  SpanTotals totals_;                                                       ///< of sealed blocks
  std::map<std::pair<ev::EventKind, std::uint8_t>, std::uint64_t> counts_;  ///< instants of sealed blocks
  std::map<ev::EventKind, Store::UnmatchedEnds> unmatched_ends_;            ///< of sealed blocks
  std::array<std::uint8_t, ev::kStreamCount> depths_{};
  std::array<RankFigures::Peaks, ev::kMemoryPoolCount> peaks_;
  std::vector<ev::Event> notable_;  ///< of blocks, not taken yet
  Pauses pauses_;                   ///< that have ended; of totals, those that open spans may reach back over
  /// The tile of the blocks that were sealed here since the last whole one; of up to kRanksWithRoom ranks.
  TileMaker open_tile_;
  std::size_t open_tile_blocks_ = 0;
  Head head_;
};

/// [Note: packed blocks]
/// A recording of weeks has dozens of sums of each of a thousand ranks, and who opens it looks at a few of
/// the ranks. So of the blocks of a rank that has sums only the heads are read at first: all figures are
/// exact from the beginning. The blocks stay packed, in memory, because the recorder joins sums of a run that
/// goes on; when the rank is looked at they are decoded and put where they belong in their order, as if
/// they had been read at once. What has a limit of time (BlockAccess::limit) goes on in later frames. Until
/// then the rank shows no levels of detail.

/// Depth that stands for the waits of every depth of the compute lane.
inline constexpr std::uint8_t kWaits = Store::kWaits;

}  // namespace shardscope::store
