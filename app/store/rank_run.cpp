#include "app/store/rank_run.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "app/store/event_time.h"

namespace shardscope::store {
namespace {}  // namespace

RankRun::RankRun(std::uint32_t rank, BlockAccess& access, Keep keep)
    : rank_(rank),
      access_(access),
      keep_(keep),
      head_{.state = RankState(keep == Keep::totals ? RankState::For::totals : RankState::For::views),
            .begin = {},
            .origin = {},
            .raw = {},
            .missing = {}} {
  set_stage();
}

void RankRun::set_stage() { head_.state.set_stage(access_.model_state, access_.initial); }

void RankRun::begin_gap() {
  if (head_.events > 0 && keep_ == Keep::everything) seal_head();
  head_.state.end_missing(head_.missing);
  head_.gap = true;
}

void RankRun::gap() {
  begin_gap();
  head_.state.gap();
}

void RankRun::add(const Chunk& chunk, bool missing, Origin origin, std::size_t seal_events) {
  if (missing) {
    begin_gap();
    head_.missing = missing_of(chunk);
  }
  if (chunk.events.empty()) {
    head_.state.end_missing(head_.missing);
    return;
  }
  Block& meta = head_.origin;
  if (head_.events == 0) {
    meta.sequence = chunk.sequence;
    meta.parts = 0;
    meta.dropped_before = chunk.dropped_before;
    meta.lost_before = chunk.lost_before;
    meta.shed_before = chunk.shed_before;
    meta.lost_between = chunk.lost_between;
    meta.missing_begin_ns = chunk.missing_begin_ns;
    meta.missing_end_ns = chunk.missing_end_ns;
    head_.missing_offset_ns = chunk.clock_offset_ns;
    meta.begin_ns = kLast;
    meta.end_ns = kFirst;
  }
  meta.parts += chunk.parts;
  meta.clock_offset_ns = chunk.clock_offset_ns;
  meta.clock_residual_ns = chunk.clock_residual_ns;
  for (const ev::Event& event : chunk.events) {
    const std::int64_t at_ns = event_time(event) + chunk.clock_offset_ns;
    meta.begin_ns = std::min(meta.begin_ns, at_ns);
    meta.end_ns = std::max(meta.end_ns, at_ns);
    head_.state.note_missing_until(at_ns, head_.missing);
    head_.state.add(event, at_ns, access_.parents);
  }
  head_.state.settle();
  head_.events += chunk.events.size();
  const std::vector<ev::Event>& notable = head_.state.notable();
  notable_.insert(notable_.end(), notable.begin() + static_cast<std::ptrdiff_t>(head_.notable_taken),
                  notable.end());
  pauses_.add_of(std::span(notable).subspan(head_.notable_taken));
  head_.notable_taken = notable.size();
  if (keep_ == Keep::totals) {
    for (std::size_t p = 0; p < peaks_.size(); ++p) {
      peaks_[p] = {.all = memory_peak(p), .model_state = model_state_peak(p)};
    }
    for (const InstantCount& ends : head_.state.unmatched_ends())
      add_unmatched_ends(unmatched_ends_, ends.kind, ends.code, ends.count);
    head_.state.begin_next_stretch([&](ev::StreamId stream, const Span& span) {
      totals_.add({rank_, stream}, span, pauses_);
    });
    pauses_.forget_before(head_.state.open_since());
    head_.notable_taken = 0;
    if (access_.ranks() > kRanksWithRoom) head_.state.shrink();
    return;
  }
  if (origin.in_memory) {
    for (const ev::Event& event : chunk.events) {
      head_.raw.push_back(event);
      head_.raw.back().ticks += static_cast<std::uint64_t>(chunk.clock_offset_ns);
    }
  } else {
    meta.rows.push_back(origin.row);
  }
  if (head_.events >= seal_events) seal_head();
}

void RankRun::seal_head() {
  if (head_.events == 0) return;
  (void)unpack();
  head_.state.end_missing(head_.missing);
  Block block = seal(rank_, head_.state, std::move(head_.begin), pauses_,
                     [&](const RankState& ended) { take_levels(ended); });
  const Block& meta = head_.origin;
  block.sequence = meta.sequence;
  block.parts = meta.parts;
  block.events = static_cast<std::uint32_t>(head_.events);
  block.dropped_before = meta.dropped_before;
  block.lost_before = meta.lost_before;
  block.shed_before = meta.shed_before;
  block.lost_between = meta.lost_between;
  if (meta.missing_begin_ns < meta.missing_end_ns) {  // converted to the block's clock offset
    const std::int64_t moved = head_.missing_offset_ns - meta.clock_offset_ns;
    block.missing_begin_ns = meta.missing_begin_ns + moved;
    block.missing_end_ns = meta.missing_end_ns + moved;
  }
  block.clock_offset_ns = meta.clock_offset_ns;
  block.clock_residual_ns = meta.clock_residual_ns;
  block.begin_ns = meta.begin_ns;
  block.end_ns = meta.end_ns;
  block.gap = head_.gap;
  block.rows = meta.rows;
  if (block.rows.empty()) {
    Chunk chunk;
    chunk.rank = rank_;
    chunk.sequence = meta.sequence;
    chunk.events.swap(head_.raw);
    block.chunk = chunk.encode();
    block.chunk.shrink_to_fit();
    chunk.events.clear();
    head_.raw.swap(chunk.events);  // keeps its memory
  }
  block.notable.clear();  // already taken by add()
  if (open_tile_blocks_ == kTileBlocks) {
    block.tile = open_tile_.rows();
    open_tile_ = {};
    open_tile_blocks_ = 0;
  }
  head_.begin = head_.state.keyframe();
  head_.origin = {};
  head_.events = 0;
  head_.gap = false;
  head_.notable_taken = 0;
  append(std::move(block));
  if (blocks_.size() % kTileBlocks == 0 && blocks_.back().tile.empty()) {
    Block& last = blocks_.back();
    last.tile = tile_of_pages();
    if (access_.bounds) {
      for (const TileRow& row : last.tile) access_.packed_bytes += row.bytes.capacity();
    }
  }
}

void RankRun::take_levels(const RankState& ended) {
  static const DensityPyramid none;
  const bool room = access_.ranks() <= kRanksWithRoom;
  for (std::size_t s = 0; s < ev::kStreamCount; ++s) {
    const Lane& lane = ended.lanes()[s];
    const bool compute = static_cast<ev::StreamId>(s) == ev::StreamId::compute;
    sums_[s].append_fine(lane, compute ? lane.waits() : none,
                         room ? RowSums::kMinFineLeaves : RowSums::kMinLeaves);
  }
  // A tile begins with the first of its blocks.
  if (room && open_tile_blocks_ == blocks_.size() % kTileBlocks) {
    open_tile_.append(ended);
    ++open_tile_blocks_;
  } else if (open_tile_blocks_ != 0) {
    open_tile_ = {};
    open_tile_blocks_ = 0;
  }
}

void RankRun::resume_from(const RankKeyframe& keyframe, std::vector<ParamState> statuses) {
  head_.state = RankState(keyframe, std::move(statuses));
  head_.begin = keyframe;
  set_stage();
}

void RankRun::resume_from_last_block() {
  if (is_packed()) return go_on_from_packed();
  if (blocks_.empty()) return;
  const std::size_t last = blocks_.size() - 1;
  std::array<std::int64_t, ev::kStreamCount> last_ns{};
  for (std::size_t s = 0; s < ev::kStreamCount; ++s) last_ns[s] = sums_[s].latest_ns(last);
  go_on_from_state(state(last, RankState::For::views), last_ns);
}

void RankRun::go_on_from_state(const std::shared_ptr<const RankState>& known,
                               const std::array<std::int64_t, ev::kStreamCount>& last_ns) {
  if (known != nullptr) {
    resume_from(known->keyframe(), known->status().keyframe());
    return;
  }
  // Its end is unknown: no open span is known to continue.
  RankKeyframe keyframe;
  for (std::size_t s = 0; s < ev::kStreamCount; ++s) keyframe.lanes[s].last_ns = last_ns[s];
  resume_from(keyframe, {});
}

void RankRun::take_count(ev::EventKind kind, std::uint8_t code, std::uint64_t count) {
  if (ev::is_end(kind)) {
    add_unmatched_ends(unmatched_ends_, kind, code, count);
  } else {
    counts_[{kind, code}] += count;
  }
}

void RankRun::take_notable_of(std::span<const ev::Event> notable) {
  pauses_.add_of(notable);
  notable_.insert(notable_.end(), notable.begin(), notable.end());
}

void RankRun::append(Block block) {
  (void)unpack();
  for (std::size_t s = 0; s < ev::kStreamCount; ++s)
    depths_[s] = std::max(depths_[s], static_cast<std::uint8_t>(block.lanes[s].rows.size()));
  for (std::size_t p = 0; p < peaks_.size(); ++p)
    if (block.memory[p].changes != 0) peaks_[p].take(block.peaks[p]);
  totals_.merge(block.totals);
  for (const InstantCount& count : block.counts) take_count(count.kind, count.code, count.count);
  take_notable_of(block.notable);
  place(std::move(block));
  if (access_.bounds) {
    access_.packed_bytes += blocks_.back().packed_bytes();
    block_bytes_ += blocks_.back().bytes() - blocks_.back().packed_bytes();
    keep_bounds();
  }
}

void RankRun::note_times(const BlockOrigin& block) const {
  reach_.push_back(std::max(reach_.empty() ? kFirst : reach_.back(), block.end_ns));
  floor_.push_back(block.begin_ns);
  for (std::size_t j = floor_.size() - 1; j-- > 0 && floor_[j] > block.begin_ns;) floor_[j] = block.begin_ns;
}

void RankRun::place(Block block) const {
  const std::size_t i = blocks_.size();
  if (i == reach_.size()) note_times(block);
  add_to_sums(block);
  for (const InstantCount& count : block.counts) {
    if (!ev::is_end(count.kind)) block.kinds.add(count.kind);
  }
  const std::vector<Block::Carried> carried = std::move(block.carried);
  // With their memory, which assigning an empty list would keep.
  const auto release = [](auto& list) { std::remove_reference_t<decltype(list)>().swap(list); };
  release(block.totals);
  release(block.notable);
  release(block.carried);
  release(block.lanes);
  block.waits.clear();
  release(block.peaks);
  release(block.counts);
  blocks_.push_back(std::move(block));
  for (const Block::Carried& span : carried) carry_back(i, span);
}

void RankRun::keep_rare(std::span<const ev::Event> rare) {
  for (const ev::Event& event : rare) {
    if (keeps_rare(event.kind)) rare_.push_back(event);
  }
}

void RankRun::append_sum(Block block, std::span<const ev::Event> rare, bool blocks_follow) {
  seal_head();
  block.sum = true;
  keep_rare(rare);
  append(std::move(block));
  if (!blocks_follow) gap();
}

void RankRun::carry_back(std::size_t i, const Block::Carried& carried) const {
  const auto open_at = [&](std::size_t block) -> Span* {
    auto& open = blocks_[block].begin.lanes[carried.stream].open;
    return carried.depth < open.size() ? &open[carried.depth].span : nullptr;
  };
  const Span* own = open_at(i);
  if (own == nullptr) return;
  const std::int64_t begin_ns = own->begin_ns;
  for (std::size_t j = i + 1; j-- > 0;) {
    Span* span = open_at(j);
    if (span == nullptr || span->begin_ns != begin_ns) return;
    if (span->end_ns == carried.end_ns && span->mark_ns == carried.mark_ns) return;
    span->end_ns = carried.end_ns;
    span->mark_ns = carried.mark_ns;
  }
}

std::vector<ev::Event> RankRun::take_notable() { return std::exchange(notable_, {}); }

SpanTotals RankRun::span_totals() const {
  SpanTotals out = totals_;
  for (std::size_t s = 0; s < ev::kStreamCount; ++s) {
    const Lane& lane = head_.state.lanes()[s];
    for (std::uint8_t d = 0; d < lane.depth_count(); ++d) {
      const std::span<const Span> spans = lane.spans(d);
      const std::size_t ended = spans.size() - (d < lane.open_count() ? 1 : 0);
      for (const Span& span : spans.first(ended))
        out.add({rank_, static_cast<ev::StreamId>(s)}, span, pauses_);
    }
  }
  return out;
}

std::map<ev::EventKind, Store::UnmatchedEnds> RankRun::unmatched_ends() const {
  std::map<ev::EventKind, Store::UnmatchedEnds> out = unmatched_ends_;
  for (const InstantCount& count : head_.state.unmatched_ends())
    add_unmatched_ends(out, count.kind, count.code, count.count);
  return out;
}

void RankRun::add_unmatched_ends(std::map<ev::EventKind, Store::UnmatchedEnds>& ends, ev::EventKind kind,
                                 std::uint8_t code, std::uint64_t count) const {
  Store::UnmatchedEnds& row = ends[kind];
  row.rank = rank_;
  row.kind = kind;
  row.count += count;
  if (code != 0) row.explained += count;
}

std::optional<ev::Detail> RankRun::recorded_detail() const {
  std::optional<ev::Detail> most;
  const auto take = [&most](ev::EventKind kind) {
    most = std::max(most, std::optional(ev::detail_of(kind)));
  };
  for (const auto& [key, count] : counts_) take(key.first);
  for (const SpanTotal& total : totals_.rows()) take(total.kind);
  if (!blocks_.empty() || is_packed()) return most;
  for (const ev::Event& event : head_.state.instants()) take(event.kind);
  for (const Lane& lane : head_.state.lanes()) {
    for (std::uint8_t d = 0; d < lane.depth_count(); ++d) {
      for (const Span& span : lane.spans(d)) take(span.kind);
    }
  }
  return most;
}

std::size_t RankRun::bytes() const {
  std::size_t bytes = head_.state.bytes() + head_.raw.capacity() * sizeof(ev::Event);
  for (const Block& block : blocks_) bytes += block.bytes();
  for (const RowSums& sums : sums_) bytes += sums.bytes();
  for (const PackedBlock& packed : packed_) bytes += sizeof packed + packed.bytes.capacity();
  bytes += open_tile_.bytes() + pauses_.bytes() + rare_.capacity() * sizeof(ev::Event);
  bytes += (reach_.capacity() + floor_.capacity()) * sizeof(std::int64_t);
  for (const auto& pages : pages_) bytes += pages.capacity() * sizeof(KnownPage);
  for (const auto& [row, tiles] : tiles_) bytes += tiles.capacity() * sizeof(KnownTile);
  for (const MemoryHistory& pool : history_) bytes += pool.bytes();
  return bytes;
}

}  // namespace shardscope::store
