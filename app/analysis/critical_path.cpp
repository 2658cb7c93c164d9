#include "app/analysis/critical_path.h"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

#include "app/analysis/path_intervals.h"

namespace shardscope::analysis {
namespace {

/// The interval that contains the nanosecond before `t`.
const PathInterval& before(const std::vector<PathInterval>& intervals, std::int64_t t) {
  const auto next =
      std::ranges::lower_bound(intervals, t, {}, [](const PathInterval& one) { return one.at.begin; });
  return *std::prev(next);
}

/// [Note: gathers that could begin earlier]
/// If the gather lane is idle before a gather with exposed transfer, an earlier gather would hide it. If the
/// lane is never idle the link is the bottleneck, and no order of gathers helps.
std::int64_t hideable_gathers(const RankActivity& rank, const Arrivals& arrivals,
                              const IntervalSet& exposed) {
  std::vector<Interval> gathers;
  for (const Participation& one : rank.collectives) {
    if (one.stream == instrumentation::StreamId::gather)
      gathers.push_back({moves_from(one, arrivals), one.at.end});
  }
  const std::vector<Interval> updates = rank.optimizer.intervals();
  std::int64_t sum = 0, free_since = rank.window.begin;
  const IntervalSet merged(std::move(gathers));
  const std::vector<Interval>& spans = exposed.intervals();
  for (const Interval& gather : merged.intervals()) {
    std::int64_t since = free_since;
    for (const Interval& update : updates) {
      if (update.end <= gather.begin) since = std::max(since, update.end);
    }
    std::int64_t ns = 0;
    for (auto span = std::ranges::upper_bound(spans, gather.begin, {}, &Interval::end);
         span != spans.end() && span->begin < gather.end; ++span)
      ns += std::min(span->end, gather.end) - std::max(span->begin, gather.begin);
    sum += std::min(ns, std::max<std::int64_t>(gather.begin - since, 0));
    free_since = gather.end;
  }
  return sum;
}

class Walk {
 public:
  Walk(std::span<const RankActivity> ranks, Interval window)
      : ranks_(ranks), window_(window), arrivals_(arrivals_of(ranks)) {
    for (const RankActivity& rank : ranks) intervals_.push_back(path_intervals_of(rank, window));
  }
  std::vector<PathPiece> from(std::uint32_t rank);

 private:
  [[nodiscard]] const Participation* in_flight(std::uint32_t rank, std::int64_t t) const;
  void add(PathPart part, std::uint32_t rank, Interval at, const Participation* collective = nullptr) {
    const std::uint32_t id = collective == nullptr ? instrumentation::kNoId : collective->id;
    const auto lane = collective == nullptr ? instrumentation::StreamId{} : collective->stream;
    PathPiece* last = pieces_.empty() ? nullptr : &pieces_.back();
    if (last != nullptr && last->part == part && last->rank == ranks_[rank].rank && last->id == id &&
        last->lane == lane && last->at.begin == at.end) {
      last->at.begin = at.begin;
    } else {
      pieces_.push_back({part, ranks_[rank].rank, at, id, lane});
    }
  }

  std::span<const RankActivity> ranks_;
  Interval window_;
  Arrivals arrivals_;
  std::vector<std::vector<PathInterval>> intervals_;
  std::vector<PathPiece> pieces_;  ///< in reverse order of time
};

/// Of the collectives in flight on a rank just before `t` the one that ends first: it unblocks the rank.
const Participation* Walk::in_flight(std::uint32_t rank, std::int64_t t) const {
  const Participation* found = nullptr;
  for (const Participation& one : ranks_[rank].collectives) {
    if (one.at.begin < t && one.at.end >= t && (found == nullptr || one.at.end < found->at.end)) found = &one;
  }
  return found;
}

std::vector<PathPiece> Walk::from(std::uint32_t rank) {
  std::int64_t t = window_.end;
  std::size_t jumps = 0;  // at the same time: inconsistent clocks could make the walk cycle
  while (t > window_.begin) {
    const PathInterval& here = before(intervals_[rank], t);
    const Participation* collective = here.comm ? in_flight(rank, t) : nullptr;
    if (collective == nullptr) {
      add(here.part, rank, {here.at.begin, t});
      t = here.at.begin;
      jumps = 0;
      continue;
    }
    const std::int64_t moves = moves_from(*collective, arrivals_);
    const std::uint32_t last = arrivals_.at(collective->instance).last;
    if (t <= moves && last != rank && jumps < ranks_.size()) {
      rank = last;
      ++jumps;
      continue;
    }
    std::int64_t begin = std::max(here.at.begin, t <= moves ? collective->at.begin : moves);
    begin = std::min(begin, t - 1);
    add(PathPart::transfer, rank, {begin, t}, collective);
    t = begin;
    jumps = 0;
  }
  std::ranges::reverse(pieces_);
  return std::move(pieces_);
}

}  // namespace

const char* name_of(PathPart part) noexcept {
  switch (part) {
    case PathPart::forward:
      return "forward";
    case PathPart::backward:
      return "backward";
    case PathPart::optimizer:
      return "optimizer";
    case PathPart::compute:
      return "compute";
    case PathPart::cpu_optimizer:
      return "cpu_optimizer";
    case PathPart::transfer:
      return "transfer";
    case PathPart::copy:
      return "copy";
    case PathPart::data:
      return "data";
    case PathPart::checkpoint:
      return "checkpoint";
    case PathPart::idle:
      return "idle";
    case PathPart::unrecorded:
      return "unrecorded";
    case PathPart::paused:
      return "paused";
  }
  return "";
}

const char* label_of(PathPart part) noexcept {
  switch (part) {
    case PathPart::compute:
      return "other computation";
    case PathPart::cpu_optimizer:
      return "CPU optimizer";
    case PathPart::transfer:
      return "moving bytes";
    case PathPart::copy:
      return "copies";
    case PathPart::data:
      return "waiting for data";
    default:
      return name_of(part);
  }
}

std::optional<CriticalPath> critical_path(std::span<const RankActivity> ranks) {
  if (std::ranges::none_of(ranks, &RankActivity::known)) return std::nullopt;
  CriticalPath out;
  out.window = ranks.front().window;
  std::uint32_t last = 0;
  for (std::uint32_t index = 0; index < ranks.size(); ++index) {
    out.window.begin = std::min(out.window.begin, ranks[index].window.begin);
    if (ranks[index].window.end > out.window.end) {
      out.window.end = ranks[index].window.end;
      last = index;
    }
  }
  if (out.window.begin >= out.window.end) return std::nullopt;
  out.pieces = Walk(ranks, out.window).from(last);
  for (const PathPiece& piece : out.pieces)
    out.times[static_cast<std::size_t>(piece.part)] += piece.at.end - piece.at.begin;
  return out;
}

DelayAttribution attribute_delays(std::span<const RankActivity> ranks) {
  DelayAttribution out;
  const Arrivals arrivals = arrivals_of(ranks);
  std::map<std::uint32_t, Lateness> late;                                 // by index in `ranks`
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> pairs;  // by waiter and late rank
  std::unordered_set<std::uint64_t> waited_in;  // instances of collectives; each has one last rank
  for (std::uint32_t index = 0; index < ranks.size(); ++index) {
    const RankActivity& rank = ranks[index];
    const IntervalSet exposed = rank.comm.subtract(rank.compute);
    std::vector<Interval> gathers, others;
    for (const Participation& one : rank.collectives) {
      (one.stream == instrumentation::StreamId::gather ? gathers : others)
          .push_back({moves_from(one, arrivals), one.at.end});
    }
    const IntervalSet gathering(std::move(gathers)), reducing(std::move(others));
    const IntervalSet moving = gathering.unite(reducing);
    const IntervalSet waiting = exposed.subtract(moving);
    Exposure own{.rank = rank.rank, .waiting_ns = waiting.length()};
    own.moving_ns = exposed.length() - own.waiting_ns;
    own.gather_moving_ns = exposed.intersect(gathering).length();
    own.reduce_moving_ns = own.moving_ns - own.gather_moving_ns;
    own.link_ns = moving.intersect(rank.comm).length();
    own.reduce_link_ns = reducing.intersect(rank.comm).length();
    own.hideable_gather_ns = hideable_gathers(rank, arrivals, exposed);
    out.exposed.push_back(own);
    std::map<std::uint64_t, GroupExposure> groups;
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::int64_t> late_of;  // by group and late rank
    std::map<std::uint64_t, std::vector<Interval>> moves;
    for (const Participation& one : rank.collectives) {
      if (one.group != 0) moves[one.group].push_back({moves_from(one, arrivals), one.at.end});
    }
    for (auto& [group, spans_of] : moves)
      groups[group] = {.rank = rank.rank,
                       .group = group,
                       .moving_ns = exposed.intersect(IntervalSet(std::move(spans_of))).length()};
    std::vector<const Participation*> in_order;
    for (const Participation& one : rank.collectives) in_order.push_back(&one);
    std::ranges::sort(in_order, {}, [](const Participation* one) { return one->at.begin; });
    // Waiting shared by two collectives counts for the first one: one sweep over both lists.
    const std::vector<Interval>& spans = waiting.intervals();
    std::int64_t taken_until = rank.window.begin;
    for (const Participation* one : in_order) {
      const Arrival& arrival = arrivals.at(one->instance);
      const std::int64_t until = moves_from(*one, arrivals);
      if (arrival.last == index || arrival.ranks < 2 || until - one->at.begin <= kLate) continue;
      const Interval here{std::max(one->at.begin, taken_until), until};
      std::int64_t ns = 0;
      for (auto span = std::ranges::upper_bound(spans, here.begin, {}, &Interval::end);
           span != spans.end() && span->begin < here.end; ++span)
        ns += std::min(span->end, here.end) - std::max(span->begin, here.begin);
      taken_until = std::max(taken_until, until);
      if (ns <= 0) continue;
      Lateness& of = late[arrival.last];
      of.others_waited_ns += ns;
      if (waited_in.insert(one->instance).second) ++of.collectives;
      pairs[{rank.rank, ranks[arrival.last].rank}] += ns;
      if (one->group == 0) continue;
      groups[one->group].waiting_ns += ns;
      late_of[{one->group, ranks[arrival.last].rank}] += ns;
    }
    for (const auto& [who, ns] : late_of) {
      GroupExposure& group = groups[who.first];
      if (ns > group.late_ns) group.late = who.second, group.late_ns = ns;
    }
    for (const auto& [key, group] : groups) out.groups.push_back(group);
  }
  for (auto& [index, of] : late) {
    of.rank = ranks[index].rank;
    out.late.push_back(of);
  }
  for (const auto& [who, ns] : pairs) out.pairs.push_back({who.first, who.second, ns});
  return out;
}

}  // namespace shardscope::analysis
