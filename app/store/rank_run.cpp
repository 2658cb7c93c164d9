#include "app/store/rank_run.h"

#include <algorithm>
#include <utility>

namespace shardscope::store {
namespace {

std::int64_t time_of(const ev::Event& event) noexcept { return static_cast<std::int64_t>(event.ticks); }

/// Blocks of one rank overlap in time by what its threads' rings are apart; one event of a time far ahead
/// must not make every later question replay the whole run.
constexpr std::size_t kMostReplayed = 8;
/// A gate that is not there must not be looked for in the whole of a long run.
constexpr std::size_t kMostSearched = 512;

}  // namespace

RankRun::RankRun(std::uint32_t rank, BlockAccess& access, Keep keep)
    : rank_(rank),
      access_(access),
      keep_(keep),
      head_{.state = RankState(keep == Keep::totals ? RankState::For::totals : RankState::For::views),
            .begin = {},
            .origin = {},
            .raw = {}} {
  set_stage();
}

void RankRun::set_stage() { head_.state.set_stage(access_.model_state, access_.initial); }

void RankRun::gap() {
  if (head_.events > 0 && keep_ == Keep::everything) seal_head();
  head_.state.gap();
  head_.gap = true;
}

void RankRun::add(const Chunk& chunk, bool missing, Origin origin, std::size_t seal_events) {
  if (missing) gap();
  if (chunk.events.empty()) return;
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
    meta.begin_ns = kLast;
    meta.end_ns = kFirst;
  }
  meta.parts += chunk.parts;
  meta.clock_offset_ns = chunk.clock_offset_ns;
  meta.clock_residual_ns = chunk.clock_residual_ns;
  for (const ev::Event& event : chunk.events) {
    const std::int64_t at_ns = time_of(event) + chunk.clock_offset_ns;
    meta.begin_ns = std::min(meta.begin_ns, at_ns);
    meta.end_ns = std::max(meta.end_ns, at_ns);
    head_.state.add(event, at_ns, access_.parents);
  }
  head_.state.settle();
  head_.events += chunk.events.size();
  const std::vector<ev::Event>& notable = head_.state.notable();
  notable_.insert(notable_.end(), notable.begin() + static_cast<std::ptrdiff_t>(head_.notable_taken),
                  notable.end());
  head_.notable_taken = notable.size();
  if (keep_ == Keep::totals) {
    for (std::size_t p = 0; p < peaks_.size(); ++p) {
      peaks_[p] = {.peak = memory_peak(p), .model_state = model_state_peak(p)};
    }
    head_.state.let_go([&](ev::StreamId stream, const Span& span) { totals_.add({rank_, stream}, span); });
    head_.notable_taken = 0;
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
  Block block = seal(rank_, head_.state, std::move(head_.begin));
  const Block& meta = head_.origin;
  block.sequence = meta.sequence;
  block.parts = meta.parts;
  block.events = static_cast<std::uint32_t>(head_.events);
  block.dropped_before = meta.dropped_before;
  block.lost_before = meta.lost_before;
  block.shed_before = meta.shed_before;
  block.lost_between = meta.lost_between;
  block.missing_begin_ns = meta.missing_begin_ns;
  block.missing_end_ns = meta.missing_end_ns;
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
    head_.raw.swap(chunk.events);  // keeps its room
  }
  block.notable.clear();  // were taken as they came
  head_.begin = head_.state.keyframe();
  head_.origin = {};
  head_.events = 0;
  head_.gap = false;
  head_.notable_taken = 0;
  append(std::move(block));
}

void RankRun::go_on_from(const RankKeyframe& keyframe, std::vector<ParamState> statuses) {
  head_.state = RankState(keyframe, std::move(statuses));
  head_.begin = keyframe;
  set_stage();
}

void RankRun::go_on_from_last() {
  if (blocks_.empty()) return;
  const std::size_t last = blocks_.size() - 1;
  const std::shared_ptr<const RankState> known = state(last);
  if (known != nullptr) {
    go_on_from(known->keyframe(), known->status().keyframe());
    return;
  }
  // Its end is not known: nothing that was open is known to go on.
  RankKeyframe keyframe;
  for (std::size_t s = 0; s < ev::kStreamCount; ++s)
    keyframe.lanes[s].last_ns = blocks_[last].lanes[s].end_ns;
  go_on_from(keyframe, {});
}

void RankRun::append(Block block) {
  const std::size_t i = blocks_.size();
  for (std::size_t s = 0; s < ev::kStreamCount; ++s) {
    const auto depths = static_cast<std::uint8_t>(block.lanes[s].rows.size());
    depths_[s] = std::max(depths_[s], depths);
    sums_[s].append(block.lanes[s]);
  }
  for (std::size_t p = 0; p < peaks_.size(); ++p) {
    if (block.memory[p].changes == 0) continue;
    const auto take = [](std::optional<MemorySample>& known, const MemorySample& sample) {
      if (!known || sample.total() > known->total()) known = sample;
    };
    take(peaks_[p].peak, block.memory[p].peak);
    take(peaks_[p].model_state, block.memory[p].model_state_peak);
  }
  totals_.merge(block.totals);
  for (const InstantCount& count : block.counts) counts_[{count.kind, count.code}] += count.count;
  notable_.insert(notable_.end(), block.notable.begin(), block.notable.end());
  const std::vector<Block::Carried> carried = std::move(block.carried);
  block.totals = {};
  block.notable = {};
  block.carried = {};
  reach_.push_back(std::max(reach_.empty() ? kFirst : reach_.back(), block.end_ns));
  floor_.push_back(block.begin_ns);
  for (std::size_t j = i; j-- > 0 && floor_[j] > block.begin_ns;) floor_[j] = block.begin_ns;
  blocks_.push_back(std::move(block));
  for (const Block::Carried& span : carried) carry_back(i, span);
}

void RankRun::carry_back(std::size_t i, const Block::Carried& carried) {
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

Span RankRun::continued(std::size_t stream, std::size_t depth, std::size_t i, Span span) const {
  if (i + 1 < blocks_.size()) {
    const auto& open = blocks_[i + 1].begin.lanes[stream].open;
    if (depth < open.size() && open[depth].span.begin_ns == span.begin_ns) {
      span.end_ns = open[depth].span.end_ns;
      span.mark_ns = open[depth].span.mark_ns;
    }
  }
  const Lane& head = head_.state.lanes()[stream];
  if (head.carried(depth)) {
    const Span& newest = head.spans(static_cast<std::uint8_t>(depth)).front();
    if (newest.begin_ns == span.begin_ns) {
      span.end_ns = newest.end_ns;
      span.mark_ns = newest.mark_ns;
    }
  }
  return span;
}

std::vector<ev::Event> RankRun::take_notable() { return std::exchange(notable_, {}); }

std::shared_ptr<const RankState> RankRun::state(std::size_t i, BlockAccess::Read read) const {
  return access_.state(blocks_[i], static_cast<std::uint32_t>(i), read);
}

std::shared_ptr<const BlockPage> RankRun::page(std::size_t i) const {
  return access_.page(blocks_[i], static_cast<std::uint32_t>(i), BlockAccess::Read::if_time);
}

RankRun::Range RankRun::holding(std::int64_t begin_ns, std::int64_t end_ns) const {
  const auto first = std::lower_bound(reach_.begin(), reach_.end(), begin_ns) - reach_.begin();
  const auto last = std::upper_bound(floor_.begin(), floor_.end(), end_ns) - floor_.begin();
  return {static_cast<std::size_t>(first), static_cast<std::size_t>(std::max(first, last))};
}

std::int64_t RankRun::lane_begin(std::size_t stream, std::size_t block) const {
  return blocks_[block].begin.lanes[stream].last_ns;
}

RankRun::Range RankRun::of_lane(std::size_t stream, std::int64_t begin_ns, std::int64_t end_ns) const {
  const auto first = std::partition_point(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return block.lanes[stream].end_ns < begin_ns;
  });
  const auto last = std::partition_point(
      first, blocks_.end(), [&](const Block& block) { return block.begin.lanes[stream].last_ns < end_ns; });
  return {static_cast<std::size_t>(first - blocks_.begin()),
          static_cast<std::size_t>(last - blocks_.begin())};
}

std::uint8_t RankRun::depth_count(ev::StreamId stream) const {
  const auto s = static_cast<std::size_t>(stream);
  if (s >= depths_.size()) return 0;
  return std::max(depths_[s], head_.state.lanes()[s].depth_count());
}

void RankRun::visit_spans(ev::StreamId stream, std::uint8_t depth, std::int64_t begin_ns, std::int64_t end_ns,
                          const SpanVisitor& visit) const {
  const auto s = static_cast<std::size_t>(stream);
  if (s >= depths_.size() || depth >= depth_count(stream)) return;
  const auto overlaps = [&](const Span& span) {
    return span.end_ns > begin_ns || (span.end_ns == begin_ns && span.begin_ns >= begin_ns);
  };
  bool first = true;  // of the stretches looked at: what is carried into it began before
  const auto look = [&](const Lane& lane, std::size_t block) {
    const std::span<const Span> spans = lane.spans(depth);
    const auto [from, to] = lane.visible(depth, begin_ns, end_ns);
    // An open span may be longer than this stretch knows, and so overlap although visible() says no.
    const bool open = depth < lane.open_count();
    const std::size_t end = open && from == spans.size() ? spans.size() : to;
    for (std::size_t i = open ? std::min(from, spans.size() - 1) : from; i < end; ++i) {
      if (i == 0 && lane.carried(depth) && !first) continue;
      Span span = spans[i];
      if (open && i + 1 == spans.size()) span = continued(s, depth, block, span);
      if (span.begin_ns < end_ns && overlaps(span)) visit(span);
    }
    first = false;
  };
  const Range range = of_lane(s, begin_ns, end_ns);
  for (std::size_t i = range.first; i < range.last; ++i) {
    const std::shared_ptr<const RankState> known = state(i);
    if (known == nullptr) {
      // What began in it and is still open after it is known from there.
      first = true;
      continue;
    }
    look(known->lanes()[s], i);
  }
  if (range.last == blocks_.size()) look(head_.state.lanes()[s], blocks_.size());
}

std::vector<std::int64_t> RankRun::cuts(ev::StreamId stream) const {
  std::vector<std::int64_t> out;
  const auto s = static_cast<std::size_t>(stream);
  if (s >= depths_.size()) return out;
  for (const Block& block : blocks_) {
    const std::int64_t end = block.lanes[s].end_ns;
    if (end != Lane::kNever && (out.empty() || end > out.back())) out.push_back(end);
  }
  return out;
}

bool RankRun::worth_reading(const Range& range) const noexcept {
  std::size_t events = 0;
  for (std::size_t i = range.first; i < range.last && events <= access_.most_in_view; ++i) {
    events += blocks_[i].events;
  }
  return events <= access_.most_in_view;
}

bool RankRun::ready(ev::StreamId stream, std::int64_t begin_ns, std::int64_t end_ns) const {
  const Range range = of_lane(static_cast<std::size_t>(stream), begin_ns, end_ns);
  if (!worth_reading(range)) return false;
  bool all = true;
  for (std::size_t i = range.first; i < range.last; ++i) {
    all = (state(i, BlockAccess::Read::if_time) != nullptr || blocks_[i].damaged) && all;
  }
  return all;
}

void RankRun::visit_instants(std::int64_t begin_ns, std::int64_t end_ns, const EventVisitor& visit) const {
  std::vector<ev::Event> waiting, merged;
  const auto take = [&](const std::vector<ev::Event>& more, std::int64_t safe_ns) {
    const auto earlier = [](const ev::Event& event, std::int64_t ns) { return time_of(event) < ns; };
    const auto from = std::lower_bound(more.begin(), more.end(), begin_ns, earlier);
    const auto to = std::lower_bound(from, more.end(), end_ns, earlier);
    merged.clear();
    merged.reserve(waiting.size() + static_cast<std::size_t>(to - from));
    std::merge(waiting.begin(), waiting.end(), from, to, std::back_inserter(merged),
               [](const ev::Event& a, const ev::Event& b) { return time_of(a) < time_of(b); });
    // What a later block may still come before waits for it.
    const auto safe = std::lower_bound(merged.begin(), merged.end(), safe_ns, earlier);
    std::for_each(merged.begin(), safe, visit);
    waiting.assign(safe, merged.end());
  };
  const std::int64_t head_from =
      head_.state.instants().empty() ? kLast : time_of(head_.state.instants().front());
  const Range range = holding(begin_ns, end_ns);
  for (std::size_t i = range.first; i < range.last; ++i) {
    const std::shared_ptr<const RankState> known = state(i);
    const std::int64_t next = i + 1 < blocks_.size() ? floor_[i + 1] : kLast;
    if (known != nullptr) take(known->instants(), std::min(next, head_from));
  }
  take(head_.state.instants(), kLast);
  std::for_each(waiting.begin(), waiting.end(), visit);
}

std::uint64_t RankRun::instant_count(ev::EventKind kind, std::optional<std::uint8_t> code) const {
  std::uint64_t sum = 0;
  for (auto at = counts_.lower_bound({kind, 0}); at != counts_.end() && at->first.first == kind; ++at) {
    if (!code || at->first.second == *code) sum += at->second;
  }
  for (const ev::Event& event : head_.state.instants()) {
    sum += event.kind == kind && (!code || event.code == *code) ? 1 : 0;
  }
  return sum;
}

std::optional<ev::Event> RankRun::first_instant(ev::EventKind kind) const {
  const auto search = [&](const std::vector<ev::Event>& instants) -> std::optional<ev::Event> {
    const auto found = std::find_if(instants.begin(), instants.end(),
                                    [&](const ev::Event& event) { return event.kind == kind; });
    return found == instants.end() ? std::nullopt : std::optional(*found);
  };
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const auto has = std::any_of(blocks_[i].counts.begin(), blocks_[i].counts.end(),
                                 [&](const InstantCount& count) { return count.kind == kind; });
    if (!has) continue;
    if (const auto known = state(i)) {
      if (auto found = search(known->instants())) return found;
    }
  }
  return search(head_.state.instants());
}

bool RankRun::has_gates() const {
  return !head_.state.gates().empty() ||
         std::any_of(blocks_.begin(), blocks_.end(), [](const Block& block) { return block.gates > 0; });
}

void RankRun::visit_gates(std::int64_t begin_ns, std::int64_t end_ns,
                          const std::function<void(const Store::GateRow&)>& visit) const {
  const auto some = [&](const std::vector<Store::GateRow>& gates) {
    for (const Store::GateRow& gate : gates) {
      if (gate.at_ns >= begin_ns && gate.at_ns < end_ns) visit(gate);
    }
  };
  const Range range = holding(begin_ns, end_ns);
  for (std::size_t i = range.first; i < range.last; ++i) {
    if (blocks_[i].gates == 0) continue;
    if (const auto known = state(i)) some(known->gates());
  }
  some(head_.state.gates());
}

std::optional<Store::GateRow> RankRun::gate_before(std::int64_t at_ns, const GateMatch& match) const {
  const auto search = [&](const std::vector<Store::GateRow>& gates) -> std::optional<Store::GateRow> {
    auto gate = std::partition_point(gates.begin(), gates.end(),
                                     [&](const Store::GateRow& g) { return g.at_ns < at_ns; });
    while (gate != gates.begin()) {
      if (match(*--gate)) return *gate;
    }
    return std::nullopt;
  };
  if (auto found = search(head_.state.gates())) return found;
  std::size_t searched = 0;
  for (std::size_t i = holding(kFirst, at_ns).last; i-- > 0 && searched < kMostSearched;) {
    if (blocks_[i].gates == 0) continue;
    ++searched;
    const auto known = state(i);
    if (known == nullptr) continue;
    if (auto found = search(known->gates())) return found;
  }
  return std::nullopt;
}

std::optional<Store::GateRow> RankRun::gate_after(std::int64_t at_ns, const GateMatch& match) const {
  const auto search = [&](const std::vector<Store::GateRow>& gates) -> std::optional<Store::GateRow> {
    const auto from = std::partition_point(gates.begin(), gates.end(),
                                           [&](const Store::GateRow& g) { return g.at_ns <= at_ns; });
    const auto gate = std::find_if(from, gates.end(), match);
    return gate == gates.end() ? std::nullopt : std::optional(*gate);
  };
  std::size_t searched = 0;
  for (std::size_t i = holding(at_ns, kLast).first; i < blocks_.size(); ++i) {
    if (blocks_[i].gates == 0) continue;
    if (++searched > kMostSearched) return std::nullopt;
    const auto known = state(i);
    if (known == nullptr) continue;
    if (auto found = search(known->gates())) return found;
  }
  return search(head_.state.gates());
}

SpanTotals RankRun::span_totals() const {
  SpanTotals out = totals_;
  for (std::size_t s = 0; s < ev::kStreamCount; ++s) {
    const Lane& lane = head_.state.lanes()[s];
    for (std::uint8_t d = 0; d < lane.depth_count(); ++d) {
      const std::span<const Span> spans = lane.spans(d);
      const std::size_t ended = spans.size() - (d < lane.open_count() ? 1 : 0);
      for (const Span& span : spans.first(ended)) out.add({rank_, static_cast<ev::StreamId>(s)}, span);
    }
  }
  return out;
}

std::size_t RankRun::base_of(std::int64_t at_ns) const {
  const auto base =
      static_cast<std::size_t>(std::upper_bound(reach_.begin(), reach_.end(), at_ns) - reach_.begin());
  const std::size_t last = holding(kFirst, at_ns).last;
  return last > base + kMostReplayed ? last - kMostReplayed : base;
}

void RankRun::param_states(std::int64_t at_ns, std::span<ParamState> out) const {
  const std::size_t base = base_of(at_ns);
  if (base == blocks_.size()) {
    head_.state.status().all_at(at_ns, out);
    return;
  }
  bool any = false;
  const std::size_t last = std::max(holding(kFirst, at_ns).last, base + 1);
  for (std::size_t i = base; i < last; ++i) {
    const auto known = state(i);
    if (known == nullptr) continue;
    if (!any) {
      known->status().all_at(at_ns, out);
    } else {
      known->status().replay(at_ns, out);
    }
    any = true;
  }
  if (!any) std::fill(out.begin(), out.end(), access_.initial);
  head_.state.status().replay(at_ns, out);
}

std::vector<Store::StatusChange> RankRun::status_history(std::uint32_t param, std::int64_t until_ns,
                                                         std::size_t most) const {
  std::vector<Store::StatusChange> out;
  const auto take = [&](const StatusIndex& status) {
    for (const Store::StatusChange& change : status.history(param)) {
      if (change.at_ns <= until_ns) out.push_back(change);
    }
  };
  take(head_.state.status());
  for (std::size_t i = holding(kFirst, until_ns).last; i-- > 0 && out.size() < most;) {
    if (const auto known = state(i)) take(known->status());
  }
  std::stable_sort(out.begin(), out.end(), [](const Store::StatusChange& a, const Store::StatusChange& b) {
    return a.at_ns < b.at_ns;
  });
  if (out.size() > most) out.erase(out.begin(), out.end() - static_cast<std::ptrdiff_t>(most));
  return out;
}

std::vector<BucketState> RankRun::buckets_at(std::int64_t at_ns) const {
  const std::size_t next = holding(kFirst, at_ns).last;
  // The newest stretch, unless the time lies before it.
  if (next == blocks_.size() && (blocks_.empty() || reach_.back() <= at_ns)) {
    return head_.state.buckets_at(at_ns);
  }
  for (std::size_t i = next; i-- > 0;) {
    if (const auto known = state(i)) return known->buckets_at(at_ns);
    break;
  }
  return {};
}

MemorySample RankRun::memory_at(std::size_t pool, std::int64_t at_ns) const {
  const std::size_t base = base_of(at_ns);
  MemorySample out{.at_ns = at_ns, .bytes = {}};
  if (base == blocks_.size()) {
    out = head_.state.memory(pool).at(at_ns);
  } else {
    bool any = false;
    const std::size_t last = std::max(holding(kFirst, at_ns).last, base + 1);
    for (std::size_t i = base; i < last; ++i) {
      const auto known = state(i);
      if (known == nullptr) continue;
      if (!any) {
        out = known->memory(pool).at(at_ns);
      } else {
        known->memory(pool).replay(at_ns, out);
      }
      any = true;
    }
    head_.state.memory(pool).replay(at_ns, out);
  }
  for (std::int64_t& bytes : out.bytes) bytes = std::max<std::int64_t>(bytes, 0);
  return out;
}

std::optional<MemorySample> RankRun::memory_peak(std::size_t pool) const {
  const std::optional<MemorySample> newest = head_.state.memory(pool).peak();
  const std::optional<MemorySample>& sealed = peaks_[pool].peak;
  if (!sealed) return newest;
  return newest && newest->total() > sealed->total() ? newest : sealed;
}

std::optional<MemorySample> RankRun::model_state_peak(std::size_t pool) const {
  const std::optional<MemorySample> newest = head_.state.memory(pool).model_state_peak();
  const std::optional<MemorySample>& sealed = peaks_[pool].model_state;
  if (!sealed) return newest;
  return newest && newest->total() > sealed->total() ? newest : sealed;
}

std::size_t RankRun::bytes() const {
  std::size_t bytes = head_.state.bytes() + head_.raw.capacity() * sizeof(ev::Event);
  for (const Block& block : blocks_) bytes += block.bytes();
  return bytes;
}

}  // namespace shardscope::store
