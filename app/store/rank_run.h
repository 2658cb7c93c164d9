// One rank's run: sealed blocks, of which only levels of detail and keyframes are in memory, and the head,
// the newest events, which are not sealed yet. Times are on the collector's clock.
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
  /// `access` must outlive it.
  RankRun(std::uint32_t rank, BlockAccess& access, Keep keep);

  // ---- input ------------------------------------------------------------------------------------
  /// Where a chunk's events are stored once their block is sealed.
  struct Origin {
    bool in_memory = true;
    std::int64_t row = 0;  ///< of the recording, when not in memory
  };
  /// Adds the next chunk, whose times must be plausible. `gap`: events before it are missing. The head is
  /// sealed when it has `seal_events` or more.
  void add(const Chunk& chunk, bool gap, Origin origin, std::size_t seal_events);
  /// Events are missing at an unknown time.
  void gap();
  /// Appends a block that was sealed elsewhere.
  void append(Block block);
  /// The same for a sum, whose events were not kept; `rare`: its instants that later steps depend on
  /// (is_rare()). `blocks_follow`: the next block begins with a keyframe of its own; else the state after the
  /// sum is unknown.
  void append_sum(Block block, std::span<const ev::Event> rare, bool blocks_follow);
  /// Adds instants of sums that later steps depend on.
  void keep_rare(std::span<const ev::Event> rare);
  /// Appends a block of a recording of which only the head has been read; once a rank has one, all its later
  /// blocks must be appended so. `figures`: its own, summed with those of the blocks directly after it; null
  /// where an earlier block's included them. [Note: packed blocks]
  void append(PackedBlock packed, const RankFigures* figures);
  [[nodiscard]] bool is_packed() const noexcept { return !packed_.empty(); }
  /// Sets the state with which the head begins, after the last append().
  void resume_from(const RankKeyframe& keyframe, std::vector<ParamState> statuses);
  /// The same, with the state at the end of the last block, which is read for it.
  void resume_from_last_block();
  /// Call when all blocks of a recording are there: views find their levels of detail complete.
  void settle_levels() const {
    for (const RowSums& sums : sums_) sums.settle();
  }
  void seal_head();
  void set_stage();  ///< access().model_state or initial changed
  /// RankState::notable() since the last call, in order of arrival.
  [[nodiscard]] std::vector<ev::Event> take_notable();

  // ---- queries ----------------------------------------------------------------------------------
  using SpanVisitor = std::function<void(const Span&)>;
  using EventVisitor = std::function<void(const ev::Event&)>;
  static constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] bool has_lane(ev::StreamId stream) const { return depth_count(stream) > 0; }
  [[nodiscard]] std::uint8_t depth_count(ev::StreamId stream) const;
  /// Spans of a depth that overlap [begin, end), by begin.
  void visit_spans(ev::StreamId stream, std::uint8_t depth, std::int64_t begin_ns, std::int64_t end_ns,
                   const SpanVisitor& visit) const;
  /// The pauses that overlap [begin, end); one that lasts comes last, with an open end. Nothing is read.
  void visit_pauses(std::int64_t begin_ns, std::int64_t end_ns, const SpanVisitor& visit) const;
  /// RankState::ends_without_begin() in [begin, end), by arrival.
  void visit_ends_without_begin(std::int64_t begin_ns, std::int64_t end_ns,
                                const std::function<void(const EndWithoutBegin&)>& visit) const;
  /// Times at which a lane's blocks meet, ascending.
  [[nodiscard]] std::vector<std::int64_t> cuts(ev::StreamId stream) const;
  /// Whether visit_spans() would read nothing. Reads within the time budget, unless the range is too large.
  [[nodiscard]] bool ready(ev::StreamId stream, std::int64_t begin_ns, std::int64_t end_ns) const;
  // Store::becomes_ready(), instants_ready(), instants_become_ready().
  [[nodiscard]] bool becomes_ready(ev::StreamId stream, std::int64_t begin_ns, std::int64_t end_ns) const;
  [[nodiscard]] bool instants_ready(std::int64_t begin_ns, std::int64_t end_ns) const;
  [[nodiscard]] bool instants_become_ready(std::int64_t begin_ns, std::int64_t end_ns) const;
  /// Adds a row to `columns`; depth kWaits: the waits of every depth.
  void density(ev::StreamId stream, std::uint8_t depth, std::int64_t now_ns,
               const DensityColumns& columns) const;
  /// Instants in [begin, end) in order of time.
  void visit_instants(std::int64_t begin_ns, std::int64_t end_ns, const EventVisitor& visit) const;
  /// Number of instants of a kind, or of one code of it.
  [[nodiscard]] std::uint64_t instant_count(ev::EventKind kind, std::optional<std::uint8_t> code) const;
  [[nodiscard]] std::vector<ev::Event> instants_of(ev::EventKind kind) const;  ///< in order of time
  [[nodiscard]] std::optional<ev::Event> first_instant(ev::EventKind kind) const;
  void visit_gates(std::int64_t begin_ns, std::int64_t end_ns,
                   const std::function<void(const Store::GateRow&)>& visit) const;
  using GateMatch = std::function<bool(const Store::GateRow&)>;
  [[nodiscard]] std::optional<Store::GateRow> gate_before(std::int64_t at_ns, const GateMatch& match) const;
  [[nodiscard]] std::optional<Store::GateRow> gate_after(std::int64_t at_ns, const GateMatch& match) const;
  [[nodiscard]] bool has_gates() const;
  [[nodiscard]] SpanTotals span_totals() const;
  /// The highest level that has an event; once there are blocks, the head is not included.
  [[nodiscard]] std::optional<ev::Detail> recorded_detail() const;
  /// RankState::unmatched_ends() of all events, by kind.
  [[nodiscard]] std::map<ev::EventKind, Store::UnmatchedEnds> unmatched_ends() const;

  /// Store::is_known().
  [[nodiscard]] bool is_known(std::int64_t at_ns) const;
  void param_states(std::int64_t at_ns, std::span<ParamState> out) const;
  /// StoreQuery::read_states().
  [[nodiscard]] bool read_states(std::int64_t at_ns, std::chrono::nanoseconds time) const;
  /// The latest `most` changes of a parameter up to a time, oldest first.
  [[nodiscard]] std::vector<Store::StatusChange> status_history(std::uint32_t param, std::int64_t until_ns,
                                                                std::size_t most) const;
  [[nodiscard]] std::vector<BucketState> buckets_at(std::int64_t at_ns) const;
  [[nodiscard]] MemorySample memory_at(std::size_t pool, std::int64_t at_ns) const;
  [[nodiscard]] std::optional<MemorySample> memory_peak(std::size_t pool) const;
  [[nodiscard]] std::optional<MemorySample> model_state_peak(std::size_t pool) const;
  void memory_columns(std::size_t pool, std::int64_t begin_ns, std::int64_t end_ns,
                      std::span<MemorySample> columns) const;

  /// Events evicted since the last call; usually none. [Note: eviction]
  struct Evicted {
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint64_t events = 0;
  };
  [[nodiscard]] Evicted take_evicted() { return std::exchange(evicted_, {}); }

  [[nodiscard]] std::size_t bytes() const;  ///< of the sealed blocks and the head
  [[nodiscard]] std::deque<Block>& blocks() noexcept { return blocks_; }

 private:
  struct Head {
    RankState state;
    RankKeyframe begin;
    Block origin;                ///< fields that identify its events
    std::vector<ev::Event> raw;  ///< collector clock; empty when a recording has them
    std::size_t events = 0;
    bool gap = false;
    std::size_t notable_taken = 0;
    std::optional<Missing> missing;  ///< missing events before or among the head's, while they apply
    std::int64_t missing_offset_ns = 0;
  };
  struct Range {
    std::size_t first = 0, last = 0;
  };

  /// Continues from the last block's end; null: that is unknown, except for the times of its lanes.
  void go_on_from_state(const std::shared_ptr<const RankState>& known,
                        const std::array<std::int64_t, ev::kStreamCount>& last_ns);
  /// resume_from_last_block() without the blocks before.
  void go_on_from_packed();
  /// The next event begins a new block.
  void begin_gap();

  /// Whether all of `range` is in memory after reading within the time budget; false where it has too many
  /// events to be worth reading.
  [[nodiscard]] bool read_in_time(const Range& range, RankState::For part) const;
  [[nodiscard]] bool worth_reading(const Range& range) const noexcept;
  [[nodiscard]] std::shared_ptr<const RankState> state(
      std::size_t i, RankState::For part, BlockAccess::Read read = BlockAccess::Read::always) const;
  /// Null when it is not in the cache and there is no time. Valid until the next read.
  [[nodiscard]] const BlockPage* page(std::size_t i, BlockAccess::Detail detail,
                                      BlockAccess::Read read = BlockAccess::Read::if_time) const;
  /// Blocks that may hold events in [begin, end].
  [[nodiscard]] Range holding(std::int64_t begin_ns, std::int64_t end_ns) const;
  /// Blocks whose part of a lane overlaps [begin, end].
  [[nodiscard]] Range of_lane(std::size_t stream, std::int64_t begin_ns, std::int64_t end_ns) const;
  /// The block to replay from for the state at a time; blocks_.size(): the head.
  [[nodiscard]] std::size_t base_of(std::int64_t at_ns) const;
  /// A span that is open at the end of block `i`, with its end as far as later blocks have it.
  [[nodiscard]] Span continued(std::size_t stream, std::size_t depth, std::size_t i, Span span) const;
  void carry_back(std::size_t i, const Block::Carried& carried) const;
  /// Spills and evicts blocks until access_.bounds hold.
  void keep_bounds();
  void evict(std::size_t blocks);
  void keep_rare_instants(std::size_t block);
  [[nodiscard]] bool keeps_rare(ev::EventKind kind) const;
  /// Approximate bytes kept of blocks besides what can be spilled.
  [[nodiscard]] std::size_t index_bytes() const;
  void add_to_sums(const Block& block) const;
  /// Adds figures of the next blocks.
  void take_figures(const RankFigures& figures);
  void take_count(ev::EventKind kind, std::uint8_t code, std::uint64_t count);
  void take_notable_of(std::span<const ev::Event> notable);
  /// Records begin and end of the next block.
  void note_times(const BlockOrigin& block) const;
  /// Adds all other data of it: levels of detail, its keyframe.
  void place(Block block) const;
  /// Decodes packed blocks; true once all are in blocks_. [Note: packed blocks]
  bool unpack(BlockAccess::Read read = BlockAccess::Read::always) const;
  void add_unmatched_ends(std::map<ev::EventKind, Store::UnmatchedEnds>& ends, ev::EventKind kind,
                          std::uint8_t code, std::uint64_t count) const;
  /// Adds the levels of detail of the block being sealed, at full resolution.
  void take_levels(const RankState& ended);
  /// Removes blocks found damaged since the last call from the sums.
  void renew_sums() const;
  /// One row of a tile. Not `stored`: there is none; else null levels: there was no time to read it.
  struct Tile {
    const DensityPyramid* levels = nullptr;  ///< valid as long as this object
    bool stored = false;
    std::shared_ptr<const void> kept{};  ///< keeps the cache's entry alive while other blocks are read
  };
  /// Tile of the last 16 blocks, for ranks without open_tile_: with very many ranks, an open tile in each
  /// would take a megabyte. Computed from their pages; empty where these are not in
  /// memory.
  [[nodiscard]] std::vector<TileRow> tile_of_pages() const;
  [[nodiscard]] Tile tile(std::size_t group, ev::StreamId stream, std::uint8_t depth) const;
  /// Whether `range`, blocks of one tile, is drawn from the tile when buckets may have this width.
  [[nodiscard]] bool wants_tile(const Range& range, ev::StreamId stream, std::uint8_t depth,
                                double bucket_ns) const;
  /// Draws blocks of `range`: from tiles where these are fine enough, else one by one.
  void density_of_blocks(const Range& range, ev::StreamId stream, std::uint8_t depth,
                         const DensityColumns& columns) const;
  /// Draws blocks of `range`, each from a page as fine as its columns need; where none is known, from the
  /// levels of the whole row.
  void density_of_pages(const Range& range, ev::StreamId stream, std::uint8_t depth,
                        const DensityColumns& columns) const;
  /// From single spans where levels of detail are coarser than the columns.
  void density_of(std::size_t i, ev::StreamId stream, std::uint8_t depth,
                  const DensityColumns& columns) const;

  std::uint32_t rank_;
  BlockAccess& access_;
  Keep keep_;
  mutable std::deque<Block> blocks_;         ///< mutable: reading sets `damaged`
  mutable std::vector<std::int64_t> reach_;  ///< by block, also packed: latest event up to its end
  mutable std::vector<std::int64_t> floor_;  ///< the same: earliest event from its begin on
  mutable std::vector<PackedBlock> packed_;  ///< to be decoded into blocks_
  mutable std::size_t unpacked_ = 0;         ///< number of these that are in blocks_
  bool packed_gates_ = false;                ///< one of them has gates
  std::size_t gone_ = 0;                     ///< evicted blocks, a multiple of kTileBlocks
  std::size_t spilled_ = 0;                  ///< blocks spilled, the first ones of blocks_
  std::size_t block_bytes_ = 0,
              index_bytes_ = 0;  ///< of blocks, without what can be spilled; reported to access_
  Evicted evicted_;
  std::int64_t evicted_until_ = kFirst;                      ///< end of all evicted blocks
  std::array<MemoryHistory, ev::kMemoryPoolCount> history_;  ///< of evicted blocks
  std::vector<ev::Event> rare_;  ///< instants of these blocks and of sums that later steps depend on
  mutable std::array<RowSums, ev::kStreamCount> sums_;
  mutable std::size_t damage_in_sums_ = 0;  ///< entries of access_.damage() removed from sums_
  mutable std::set<std::size_t> left_out_;  ///< blocks removed from sums_
  /// By block: its page, or that it is not in the cache, while the cache's version is unchanged. Saves a
  /// lookup per row and frame.
  struct KnownPage {
    const BlockCache::Held* held = nullptr;
    std::uint64_t as_of = 0;
  };
  mutable std::array<std::vector<KnownPage>, BlockAccess::kDetails> pages_;
  struct KnownTile {
    const BlockCache::Held* held = nullptr;
    std::uint64_t as_of = 0;
    std::size_t none_of = 0;  ///< the recording has no tile that ends before this block
  };
  mutable std::map<std::uint32_t, std::vector<KnownTile>> tiles_;           ///< by tile_row() and tile
  SpanTotals totals_;                                                       ///< of sealed blocks
  std::map<std::pair<ev::EventKind, std::uint8_t>, std::uint64_t> counts_;  ///< instants of sealed blocks
  std::map<ev::EventKind, Store::UnmatchedEnds> unmatched_ends_;            ///< of sealed blocks
  std::array<std::uint8_t, ev::kStreamCount> depths_{};
  std::array<RankFigures::Peaks, ev::kMemoryPoolCount> peaks_;
  std::vector<ev::Event> notable_;  ///< of blocks, until take_notable()
  Pauses pauses_;                   ///< ended ones; with Keep::totals, only those that open spans may overlap
  /// The tile of the blocks sealed since the last complete tile; only with up to kRanksWithRoom ranks.
  TileMaker open_tile_;
  std::size_t open_tile_blocks_ = 0;
  Head head_;
};

/// [Note: packed blocks]
/// A recording of weeks has dozens of sums for each of a thousand ranks, and its readers look at a few of
/// the ranks. So only the heads of a rank's blocks are read at first where it has sums: all figures are
/// exact from the beginning. The blocks stay packed, in memory, because the recorder of a live run joins
/// sums; when the rank is queried they are decoded and inserted in order, as if
/// they had been read at once. Within a time limit (BlockAccess::limit) this continues in later frames. Until
/// then the rank shows no levels of detail.

/// Depth value for the waits of all depths of the compute lane.
inline constexpr std::uint8_t kWaits = Store::kWaits;

}  // namespace shardscope::store
