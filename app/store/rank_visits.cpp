// One rank's spans, instants and gates, one by one: read block by block, so that memory stays bounded.
#include <algorithm>

#include "app/store/event_time.h"
#include "app/store/rank_run.h"

namespace shardscope::store {
namespace {

using For = RankState::For;

/// A search for a gate that does not exist must not read all of a long run.
constexpr std::size_t kMostSearched = 512;

}  // namespace

std::shared_ptr<const RankState> RankRun::state(std::size_t i, RankState::For part,
                                                BlockAccess::Read read) const {
  return access_.state(blocks_[i], static_cast<std::uint32_t>(gone_ + i), part, read);
}

const BlockPage* RankRun::page(std::size_t i, BlockAccess::Detail detail, BlockAccess::Read read) const {
  std::vector<KnownPage>& pages = pages_[static_cast<std::size_t>(detail)];
  if (pages.size() < blocks_.size()) pages.resize(blocks_.size());
  KnownPage& known = pages[i];
  const auto index = static_cast<std::uint32_t>(gone_ + i);
  if (known.as_of != access_.page_version()) {
    known.held = access_.known_page(blocks_[i], index, detail);
    known.as_of = access_.page_version();
  }
  if (known.held == nullptr) {
    known.held = access_.read_page(blocks_[i], index, detail, read);
    known.as_of = access_.page_version();
  }
  if (known.held == nullptr) return nullptr;
  known.held->used = true;
  return static_cast<const BlockPage*>(known.held->value.get());
}

RankRun::Range RankRun::holding(std::int64_t begin_ns, std::int64_t end_ns) const {
  (void)unpack();
  const auto first = std::lower_bound(reach_.begin(), reach_.end(), begin_ns) - reach_.begin();
  const auto last = std::upper_bound(floor_.begin(), floor_.end(), end_ns) - floor_.begin();
  return {static_cast<std::size_t>(first), static_cast<std::size_t>(std::max(first, last))};
}

RankRun::Range RankRun::of_lane(std::size_t stream, std::int64_t begin_ns, std::int64_t end_ns) const {
  (void)unpack();
  const std::size_t first = sums_[stream].first_ending(begin_ns);
  return {first, sums_[stream].first_beginning(end_ns, first)};
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
  bool first = true;  // first block visited: its carried spans began before
  const auto look = [&](const Lane& lane, std::size_t block) {
    const std::span<const Span> spans = lane.spans(depth);
    const auto [from, to] = lane.visible(depth, begin_ns, end_ns);
    // An open span may have ended later than this block knows, and so overlap although visible() excludes it.
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
    const std::shared_ptr<const RankState> known = state(i, For::spans);
    if (known == nullptr) {
      // Spans that began in it and are still open after it are known from the next block.
      first = true;
      continue;
    }
    look(known->lanes()[s], i);
  }
  if (range.last == blocks_.size()) look(head_.state.lanes()[s], blocks_.size());
}

void RankRun::visit_pauses(std::int64_t begin_ns, std::int64_t end_ns, const SpanVisitor& visit) const {
  Span span;
  span.kind = ev::EventKind::paused_begin;
  for (const Pauses::Pause& pause : pauses_.overlapping(begin_ns, end_ns)) {
    span.begin_ns = pause.begin_ns;
    span.end_ns = pause.end_ns;
    visit(span);
  }
  const Lane& host = head_.state.lane(ev::StreamId::host);
  for (std::size_t d = 0; d < host.open_count(); ++d) {
    const Span& open = host.spans(static_cast<std::uint8_t>(d)).back();
    if (open.kind != ev::EventKind::paused_begin || open.end_ns <= begin_ns || open.begin_ns >= end_ns)
      continue;
    visit(open);
  }
}

void RankRun::visit_ends_without_begin(std::int64_t begin_ns, std::int64_t end_ns,
                                       const std::function<void(const EndWithoutBegin&)>& visit) const {
  const auto some = [&](const std::vector<EndWithoutBegin>& ends) {
    for (const EndWithoutBegin& end : ends) {
      if (end.at_ns >= begin_ns && end.at_ns < end_ns) visit(end);
    }
  };
  const Range range = holding(begin_ns, end_ns);
  for (std::size_t i = range.first; i < range.last; ++i) {
    if (const auto known = state(i, For::spans)) some(known->ends_without_begin());
  }
  some(head_.state.ends_without_begin());
}

std::vector<std::int64_t> RankRun::cuts(ev::StreamId stream) const {
  std::vector<std::int64_t> out;
  const auto s = static_cast<std::size_t>(stream);
  if (s >= depths_.size()) return out;
  (void)unpack();
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const std::int64_t end = sums_[s].latest_ns(i);
    if (end != Lane::kNever && (out.empty() || end > out.back())) out.push_back(end);
  }
  return out;
}

bool RankRun::worth_reading(const Range& range) const noexcept {
  std::size_t events = 0;
  for (std::size_t i = range.first; i < range.last && events <= access_.most_in_view; ++i) {
    events += blocks_[i].sum ? 0 : blocks_[i].events;
  }
  return events <= access_.most_in_view;
}

bool RankRun::read_in_time(const Range& range, For part) const {
  if (!worth_reading(range)) return false;
  bool all = true;
  for (std::size_t i = range.first; i < range.last; ++i) {
    const Block& block = blocks_[i];
    all = (state(i, part, BlockAccess::Read::if_time) != nullptr || block.damaged || block.sum) && all;
  }
  return all;
}

bool RankRun::ready(ev::StreamId stream, std::int64_t begin_ns, std::int64_t end_ns) const {
  if (!unpack(BlockAccess::Read::if_time)) return false;
  return read_in_time(of_lane(static_cast<std::size_t>(stream), begin_ns, end_ns), For::spans);
}

bool RankRun::becomes_ready(ev::StreamId stream, std::int64_t begin_ns, std::int64_t end_ns) const {
  if (!unpack(BlockAccess::Read::if_time)) return true;  // as far as is known
  return worth_reading(of_lane(static_cast<std::size_t>(stream), begin_ns, end_ns));
}

bool RankRun::instants_ready(std::int64_t begin_ns, std::int64_t end_ns) const {
  if (!unpack(BlockAccess::Read::if_time)) return false;
  return read_in_time(holding(begin_ns, end_ns), For::instants);
}

bool RankRun::instants_become_ready(std::int64_t begin_ns, std::int64_t end_ns) const {
  if (!unpack(BlockAccess::Read::if_time)) return true;
  return worth_reading(holding(begin_ns, end_ns));
}

void RankRun::visit_instants(std::int64_t begin_ns, std::int64_t end_ns, const EventVisitor& visit) const {
  std::vector<ev::Event> waiting, merged;
  const auto take = [&](const std::vector<ev::Event>& more, std::int64_t safe_ns) {
    const auto earlier = [](const ev::Event& event, std::int64_t ns) { return event_time(event) < ns; };
    const auto from = std::lower_bound(more.begin(), more.end(), begin_ns, earlier);
    const auto to = std::lower_bound(from, more.end(), end_ns, earlier);
    merged.clear();
    merged.reserve(waiting.size() + static_cast<std::size_t>(to - from));
    std::merge(waiting.begin(), waiting.end(), from, to, std::back_inserter(merged),
               [](const ev::Event& a, const ev::Event& b) { return event_time(a) < event_time(b); });
    // Instants that a later block may still precede have to wait.
    const auto safe = std::lower_bound(merged.begin(), merged.end(), safe_ns, earlier);
    std::for_each(merged.begin(), safe, visit);
    waiting.assign(safe, merged.end());
  };
  const std::int64_t head_from =
      head_.state.instants().empty() ? kLast : event_time(head_.state.instants().front());
  const Range range = holding(begin_ns, end_ns);
  for (std::size_t i = range.first; i < range.last; ++i) {
    const std::shared_ptr<const RankState> known = state(i, For::instants);
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

std::vector<ev::Event> RankRun::instants_of(ev::EventKind kind) const {
  std::vector<ev::Event> out;
  std::copy_if(rare_.begin(), rare_.end(), std::back_inserter(out),
               [&](const ev::Event& event) { return event.kind == kind; });
  const auto take = [&](const std::vector<ev::Event>& instants) {
    std::copy_if(instants.begin(), instants.end(), std::back_inserter(out),
                 [&](const ev::Event& event) { return event.kind == kind; });
  };
  (void)unpack();
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (!blocks_[i].kinds.has(kind)) continue;
    if (const auto known = state(i, For::instants)) take(known->instants());
  }
  take(head_.state.instants());
  std::stable_sort(out.begin(), out.end(),
                   [](const ev::Event& a, const ev::Event& b) { return event_time(a) < event_time(b); });
  return out;
}

std::optional<ev::Event> RankRun::first_instant(ev::EventKind kind) const {
  const auto search = [&](const std::vector<ev::Event>& instants) -> std::optional<ev::Event> {
    const auto found = std::find_if(instants.begin(), instants.end(),
                                    [&](const ev::Event& event) { return event.kind == kind; });
    return found == instants.end() ? std::nullopt : std::optional(*found);
  };
  if (const auto found = search(rare_)) return found;
  if (instant_count(kind, std::nullopt) == 0) return std::nullopt;
  (void)unpack();
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (!blocks_[i].kinds.has(kind)) continue;
    if (const auto known = state(i, For::instants)) {
      if (auto found = search(known->instants())) return found;
    }
  }
  return search(head_.state.instants());
}

bool RankRun::has_gates() const {
  return packed_gates_ || !head_.state.gates().empty() ||
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
    if (const auto known = state(i, For::instants)) some(known->gates());
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
    const auto known = state(i, For::instants);
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
    const auto known = state(i, For::instants);
    if (known == nullptr) continue;
    if (auto found = search(known->gates())) return found;
  }
  return search(head_.state.gates());
}

}  // namespace shardscope::store
