#include "runtime/simulate/playback.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "instrumentation/event_fields.h"
#include "runtime/simulate/cost_model.h"

namespace shardscope::simulate {
namespace {

constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kEver = std::numeric_limits<std::int64_t>::max();
/// Number of events of a rank that are collected before final ones are passed on.
constexpr std::size_t kHeldEvents = 1024;
/// Sums of times over the ranks of a run are below 2^63 as well.
constexpr std::int64_t kLongestRunNs = 365 * kLongestWorkNs;

std::uint64_t mixed(std::uint64_t value) noexcept {  // splitmix64's finaliser
  value += 0x9E3779B97F4A7C15ULL;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

/// Key of a call of a group; calls between hosts are numbered separately.
std::uint64_t key_of(std::uint32_t group, const Op& op) noexcept {
  return (static_cast<std::uint64_t>(group * 2 + op.comm % 2) << 32U) | op.index;
}
std::uint32_t group_of(std::uint64_t key) noexcept { return static_cast<std::uint32_t>(key >> 33U); }

}  // namespace

Playback::Playback(const RunGroups& groups, Variation variation, double overlap_slowdown,
                   std::int64_t origin_ns, Take take)
    : groups_(groups),
      variation_(std::move(variation)),
      take_(std::move(take)),
      shared_(2 * std::size_t{groups.topology().world}) {
  ranks_.resize(groups.topology().world);
  for (const RunGroups::Entry& entry : groups.groups()) {
    const std::uint32_t first = entry.shape.nodes > 1 ? groups.topology().world : 0;
    std::vector<std::uint32_t>& links = links_.emplace_back();
    double& slowness = group_slowness_.emplace_back(0.0);
    for (const std::uint32_t member : entry.group.members) {
      if (overlap_slowdown > 0 && entry.group.members.size() > 1 && !ranks_[member].loses) {
        ranks_[member].loses = true;
        ranks_[member].loss = OverlapLoss(overlap_slowdown);
      }
      links.push_back(first + member);
      const bool given = member < variation_.link_slowness.size();
      slowness = std::max(slowness, given ? variation_.link_slowness[member] : 1.0);
    }
  }
  begin_at(origin_ns);
}

void Playback::begin_at(std::int64_t origin_ns) {
  latest_ns_ = origin_ns + kLongestRunNs;
  for (Rank& rank : ranks_) rank.time.fill(origin_ns);
}

void Playback::play(std::span<const std::shared_ptr<const Tape>> tapes) {
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    if (rank.tape) {
      // Marks that later tapes may wait for outlive the tape that recorded them.
      std::unordered_map<Mark, std::int64_t> kept;
      for (const Mark mark : rank.tape->kept) {
        kept.emplace(mark, time_of(rank, mark));
      }
      rank.earlier_marks = std::move(kept);
    }
    rank.tape = tapes[r];
    rank.next = 0;
    rank.marks.assign(rank.tape->end_mark - rank.tape->first_mark, kUnknown);
    wake(r);
  }
  do {
    while (!awake_.empty()) {
      const std::uint32_t rank = awake_.front();
      awake_.pop_front();
      ranks_[rank].listed = false;
      advance(rank);
    }
  } while (end_transfer());
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    const Rank& rank = ranks_[r];
    const bool done =
        rank.next == rank.tape->ops.size() &&
        std::all_of(rank.queue.begin(), rank.queue.end(), [](const auto& q) { return q.empty(); });
    if (!done) throw std::logic_error("simulate: rank " + std::to_string(r) + " waits for ever");
  }
  for (Rank& rank : ranks_) emit_host_late(rank);
}

void Playback::hand_over_certain() {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) hand_over(rank, certain_until(ranks_[rank]));
}

void Playback::finish() {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) hand_over(rank, kEver);
}

std::int64_t Playback::now_ns() const noexcept {
  std::int64_t latest = kUnknown;
  for (const Rank& rank : ranks_) latest = std::max(latest, rank.time[0]);
  return latest;
}

void Playback::wake(std::uint32_t rank) {
  if (std::exchange(ranks_[rank].listed, true)) return;
  awake_.push_back(rank);
}

void Playback::advance(std::uint32_t r) {
  for (bool moved = true; moved;) {
    moved = advance_host(r);
    for (std::size_t queue = 1; queue < instrumentation::kStreamCount; ++queue) {
      moved = advance_stream(r, queue) || moved;
    }
    if (ranks_[r].held.size() >= kHeldEvents) hand_over(r, certain_until(ranks_[r]));
  }
}

bool Playback::advance_host(std::uint32_t r) {
  Rank& rank = ranks_[r];
  const std::vector<Op>& ops = rank.tape->ops;
  const std::size_t before = rank.next;
  for (; rank.next < ops.size(); ++rank.next) {
    const Op& op = ops[rank.next];
    if (op.queue == StreamId::host) {
      const std::int64_t before_ns = rank.time[0];
      if (!execute(r, op, rank.time[0])) break;
      if (op.kind != Op::Kind::busy) rank.host_late.host_waited(before_ns, rank.time[0]);
    } else {
      rank.queue[static_cast<std::size_t>(op.queue)].push_back(
          {static_cast<std::uint32_t>(rank.next), rank.time[0]});
    }
  }
  return rank.next != before;
}

bool Playback::advance_stream(std::uint32_t r, std::size_t queue) {
  Rank& rank = ranks_[r];
  std::deque<Pending>& pending = rank.queue[queue];
  bool moved = false;
  while (!pending.empty()) {
    const std::int64_t free_ns = rank.time[queue];
    const std::int64_t queued_ns = pending.front().queued_ns;
    std::int64_t time = std::max(free_ns, queued_ns);
    if (!execute(r, rank.tape->ops[pending.front().op], time)) break;
    if (queue == static_cast<std::size_t>(StreamId::compute)) rank.host_late.queued(free_ns, queued_ns);
    rank.time[queue] = time;
    pending.pop_front();
    moved = true;
  }
  return moved;
}

bool Playback::execute(std::uint32_t r, const Op& op, std::int64_t& time) {
  Rank& rank = ranks_[r];
  switch (op.kind) {
    case Op::Kind::emit: {
      Event event = rank.tape->events[op.index];
      if (event.kind == instrumentation::EventKind::step_end)
        rank.ended = instrumentation::as<instrumentation::EventKind::step_end>(event).step;
      event.ticks = static_cast<std::uint64_t>(time);
      rank.held.push_back(event);
      return true;
    }
    case Op::Kind::emit_timed:
      return emit_timed(rank, rank.tape->timed[op.index], time);
    case Op::Kind::busy:
      if (op.queue == StreamId::compute && rank.loses) {
        run_kernel(r, op, time);
      } else {
        pass(r, duration(r, op), time);
      }
      return true;
    case Op::Kind::hold:
      pass(r, op.ns, time);
      return true;
    case Op::Kind::record:
      rank.marks[op.index - rank.tape->first_mark] = time;
      return true;
    case Op::Kind::wait: {
      const std::int64_t ns = time_of(rank, op.index);
      if (ns == kUnknown) return false;
      time = std::max(time, ns);
      return true;
    }
    case Op::Kind::join:
      return join(r, op, time);
    case Op::Kind::move:
      return move(r, op, time);
  }
  return true;
}

void Playback::emit_host_late(Rank& rank) {
  using instrumentation::EventKind;
  const std::int64_t ns = rank.host_late.take();
  const std::uint32_t step = std::exchange(rank.ended, instrumentation::kNoId);
  if (step == instrumentation::kNoId) return;  // the played tape contains no step
  Event event = instrumentation::make<EventKind::host_late>({.step = step, .idle_ns = ns});
  event.ticks = static_cast<std::uint64_t>(rank.time[0]);
  rank.held.push_back(event);
}

void Playback::run_kernel(std::uint32_t r, const Op& op, std::int64_t& time) {
  Rank& rank = ranks_[r];
  const std::int64_t begin_ns = time;
  pass(r, duration(r, op) + whole_ns(rank.loss.deferred_at(begin_ns)), time);
  rank.loss.kernel(begin_ns, time);
}

void Playback::pass(std::uint32_t r, std::int64_t ns, std::int64_t& time) const {
  if (ns >= kLongestWorkNs) {
    throw std::invalid_argument(
        "simulate: rank " + std::to_string(r) +
        " would take a day or more for one operation; a rate is too low, or a latency "
        "or a factor of a straggler or a slow link too large");
  }
  time += ns;
  if (time > latest_ns_)
    throw std::invalid_argument("simulate: the run would take more than a year; play fewer steps");
}

std::int64_t Playback::time_of(const Rank& rank, Mark mark) {
  return mark >= rank.tape->first_mark ? rank.marks[mark - rank.tape->first_mark]
                                       : rank.earlier_marks.at(mark);
}

bool Playback::emit_timed(Rank& rank, const TimedEvent& timed, std::int64_t time) {
  std::vector<std::int64_t> reached_ns;
  for (const Mark mark : timed.marks) {
    reached_ns.push_back(time_of(rank, mark));
    if (reached_ns.back() == kUnknown) return false;
  }
  Event event = timed.event;
  timed.complete(event, reached_ns);
  event.ticks = static_cast<std::uint64_t>(time);
  rank.held.push_back(event);
  return true;
}

bool Playback::join(std::uint32_t r, const Op& op, std::int64_t& time) {
  const std::uint32_t group = groups_.of(r)[op.comm / 2].group;
  const std::vector<std::uint32_t>& members = groups_.groups()[group].group.members;
  if (members.size() == 1) return true;
  const std::uint64_t key = key_of(group, op);
  Join& at = joins_[key];
  bool& joined = ranks_[r].joined[static_cast<std::size_t>(op.queue)];
  if (!joined) {
    joined = true;
    ++at.arrived;
    at.latest_ns = at.arrived == 1 ? time : std::max(at.latest_ns, time);
    if (at.arrived == members.size()) {
      for (const std::uint32_t member : members) {
        if (member != r) wake(member);
      }
    }
  }
  if (at.arrived < members.size()) return false;
  joined = false;
  time = at.latest_ns;
  if (++at.left == members.size()) joins_.erase(key);
  return true;
}

/// All members reach it at the same time: after join(), and with equal latency.
bool Playback::move(std::uint32_t r, const Op& op, std::int64_t& time) {
  const std::uint32_t group = groups_.of(r)[op.comm / 2].group;
  const std::uint64_t key = key_of(group, op);
  const auto [at, first] = transfers_.try_emplace(key, Transfer{time, kUnknown});
  if (first) {
    const double slowness = group_slowness_[group];
    const std::int64_t moving_ns = slowness == 1 ? op.ns : whole_ns(static_cast<double>(op.ns) * slowness);
    std::int64_t alone_ns = time;
    pass(r, moving_ns, alone_ns);
    shared_.add(key, time, moving_ns, links_[group]);
    for (const std::uint32_t member : groups_.groups()[group].group.members) {
      if (ranks_[member].loses) ranks_[member].loss.transfer_begins(time);
    }
  }
  if (at->second.end_ns == kUnknown) return false;
  time = at->second.end_ns;
  if (++at->second.left == links_[group].size()) transfers_.erase(at);
  return true;
}

bool Playback::end_transfer() {
  const std::optional<SharedLinks::End> end = shared_.next();
  if (!end) return false;
  Transfer& transfer = transfers_.at(end->key);
  transfer.end_ns = end->ns;
  for (const std::uint32_t member : groups_.groups()[group_of(end->key)].group.members) {
    if (ranks_[member].loses) ranks_[member].loss.transfer_ends(transfer.begin_ns, end->ns);
    wake(member);
  }
  return true;
}

std::int64_t Playback::duration(std::uint32_t r, const Op& op) {
  double factor = 1;
  if (op.queue == StreamId::compute && !variation_.slowness.empty()) factor = variation_.slowness[r];
  if (variation_.jitter > 0) {
    const std::uint64_t bits =
        mixed(variation_.seed ^ mixed((static_cast<std::uint64_t>(r) << 40U) + ranks_[r].drawn++));
    factor *= 1 + variation_.jitter * (static_cast<double>(bits >> 11U) * 0x1p-52 - 1);
  }
  return factor == 1 ? op.ns : whole_ns(static_cast<double>(op.ns) * factor);
}

/// Lower bound of the times of events emitted from now on.
std::int64_t Playback::certain_until(const Rank& rank) const {
  std::int64_t until = rank.time[0];
  for (std::size_t queue = 1; queue < instrumentation::kStreamCount; ++queue) {
    if (rank.queue[queue].empty()) continue;
    until = std::min(until, std::max(rank.time[queue], rank.queue[queue].front().queued_ns));
  }
  return until;
}

void Playback::hand_over(std::uint32_t r, std::int64_t until_ns) {
  std::vector<Event>& held = ranks_[r].held;
  if (held.empty()) return;
  // Stable: events of one lane at one time stay in their order.
  std::stable_sort(held.begin(), held.end(), [](const Event& a, const Event& b) {
    return static_cast<std::int64_t>(a.ticks) < static_cast<std::int64_t>(b.ticks);
  });
  const auto end = std::find_if(held.begin(), held.end(), [until_ns](const Event& event) {
    return static_cast<std::int64_t>(event.ticks) > until_ns;
  });
  if (end == held.begin()) return;
  std::vector<Event> certain(held.begin(), end);
  held.erase(held.begin(), end);
  take_(r, std::move(certain));
}

}  // namespace shardscope::simulate
