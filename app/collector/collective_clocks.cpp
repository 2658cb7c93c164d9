#include "app/collector/collective_clocks.h"

#include <algorithm>

#include "app/collector/plausible_time.h"
#include "app/collector/rank_session.h"
#include "app/collector/rank_table.h"
#include "instrumentation/event_fields.h"

namespace shardscope::collector {

using instrumentation::CollectiveOp;
using instrumentation::CollectiveScope;
using instrumentation::Event;
using instrumentation::EventKind;

namespace {
constexpr std::int64_t kUnknown = INT64_MIN;
/// A collective's end without `collective_entered` is a timestamp on a GPU's stream: bound on the error of
/// its conversion to the host's clock (half the time to read both clocks; runtime/device/cuda/stamper.h).
constexpr std::int64_t kStamp_ns = 20'000;
/// Time between two sampled collectives, and the part added per rank: a window of the estimator has up to two
/// hundred samples, with 1,024 ranks about thirty.
constexpr double kEvery_s = 0.02, kEveryOfRank_s = 1e-4;

/// Whether the operation cannot end on any rank before every rank has entered it.
bool ends_after_all(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::all_gather:
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::all_reduce:
    case CollectiveOp::barrier:
    case CollectiveOp::all_to_all:
      return true;
    case CollectiveOp::reduce:
    case CollectiveOp::broadcast:
    case CollectiveOp::send:
    case CollectiveOp::receive:
    case CollectiveOp::gather:
    case CollectiveOp::scatter:
      return false;
  }
  return false;
}

bool among_all(instrumentation::CollectiveCode code) {
  return !code.known() || code.scope() == CollectiveScope::world;
}

/// Fields of a collective's begin, its end or collective_entered: their first fields are the same.
instrumentation::Fields<EventKind::collective_begin> fields_of(const Event& event) noexcept {
  return instrumentation::as<EventKind::collective_begin>(event);
}
}  // namespace

void CollectiveClockSamples::add(std::uint32_t rank, std::uint32_t world, std::span<const Event> events,
                                 std::int64_t to_node_ns, std::int64_t error_ns, double now_s) {
  if (rank >= world || !plausible_time(to_node_ns) || !plausible_time(error_ns)) return;
  for (const Event& event : events) {
    if (event.kind == EventKind::collective_begin) {
      if (among_all(fields_of(event).code)) add_begin(rank, world, event, to_node_ns, error_ns, now_s);
    } else if (event.kind == EventKind::collective_entered) {
      add_all_arrived(rank, event, to_node_ns, error_ns);
    } else if (event.kind == EventKind::collective_end && ends_after_all(fields_of(event).op) &&
               !fields_of(event).code.end_is_bound() && !fields_of(event).code.ended_by_error()) {
      add_all_arrived(rank, event, to_node_ns, error_ns + kStamp_ns);
    }
  }
}

void CollectiveClockSamples::add_begin(std::uint32_t rank, std::uint32_t world, const Event& event,
                                       std::int64_t to_node_ns, std::int64_t error_ns, double now_s) {
  const auto at = static_cast<std::int64_t>(event.ticks);
  if (!plausible_time(at)) return;
  Slot* slot = find(fields_of(event).sequence);
  // A slot for an older collective, which another rank has passed already, would never be complete.
  const bool first = !any_seen_ || static_cast<std::int32_t>(fields_of(event).sequence - newest_) > 0;
  if (first) {
    any_seen_ = true;
    newest_ = fields_of(event).sequence;
    if (slot == nullptr && now_s - admitted_s_ >= kEvery_s + kEveryOfRank_s * world) slot = free_slot(now_s);
    if (slot != nullptr && !slot->in_use) {
      admitted_s_ = now_s;
      slot->sequence = fields_of(event).sequence;
      slot->op = fields_of(event).op;
      slot->in_use = true;
      slot->since_s = now_s;
      slot->missing = world;
      slot->of_ranks.assign(world, {kUnknown, kUnknown, 0});
      update_marks();
    }
  }
  if (slot == nullptr || slot->op != fields_of(event).op || slot->of_ranks.size() != world) return;
  CollectiveSample& sample = slot->of_ranks[rank];
  if (sample.begin_ns != kUnknown) return;
  sample.begin_ns = at + to_node_ns;
  sample.error_ns = error_ns;
}

void CollectiveClockSamples::add_all_arrived(std::uint32_t rank, const Event& event, std::int64_t to_node_ns,
                                             std::int64_t error_ns) {
  Slot* slot = find(fields_of(event).sequence);
  if (slot == nullptr || slot->op != fields_of(event).op || rank >= slot->of_ranks.size()) return;
  CollectiveSample& sample = slot->of_ranks[rank];
  const auto at = static_cast<std::int64_t>(event.ticks);
  if (sample.begin_ns == kUnknown || sample.all_arrived_ns != kUnknown || !plausible_time(at) ||
      at + to_node_ns < sample.begin_ns) {
    return;
  }
  sample.all_arrived_ns = at + to_node_ns;
  sample.error_ns = std::max(sample.error_ns, error_ns);
  --slot->missing;
}

void CollectiveClockSamples::update_marks() noexcept {
  marks_ = 0;
  for (const Slot& slot : slots_) {
    if (slot.in_use) marks_ |= std::uint64_t{1} << slot.sequence % 64;
  }
}

CollectiveClockSamples::Slot* CollectiveClockSamples::find(std::uint32_t sequence) {
  if ((marks_ >> sequence % 64 & 1U) == 0) return nullptr;
  const auto at = std::find_if(slots_.begin(), slots_.end(),
                               [&](const Slot& slot) { return slot.in_use && slot.sequence == sequence; });
  return at == slots_.end() ? nullptr : &*at;
}

CollectiveClockSamples::Slot* CollectiveClockSamples::free_slot(double now_s) {
  for (Slot& slot : slots_) {
    if (slot.in_use && slot.missing != 0 && now_s - slot.since_s > kTimeout_s) slot.in_use = false;
    if (!slot.in_use) return &slot;
  }
  return nullptr;
}

std::optional<std::vector<CollectiveSample>> CollectiveClockSamples::take() {
  for (Slot& slot : slots_) {
    if (!slot.in_use || slot.missing != 0) continue;
    slot.in_use = false;
    update_marks();
    return std::move(slot.of_ranks);
  }
  return std::nullopt;
}

std::size_t refine_clocks(std::span<const CollectiveSample> samples,
                          std::span<ClockEstimator* const> clocks) {
  std::int64_t all_begun = INT64_MIN;   // earliest time at which all had entered, on the collector's clock
  std::int64_t first_past = INT64_MAX;  // latest time at which the first rank can have left
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (clocks[i] == nullptr || !clocks[i]->known()) continue;
    const CollectiveSample& m = samples[i];
    all_begun = std::max(all_begun, m.begin_ns + clocks[i]->bounds(m.begin_ns).low_ns - m.error_ns);
    first_past =
        std::min(first_past, m.all_arrived_ns + clocks[i]->bounds(m.all_arrived_ns).high_ns + m.error_ns);
  }
  if (all_begun == INT64_MIN) return 0;
  std::size_t contradictions = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (clocks[i] == nullptr || !clocks[i]->known() || clocks[i]->is_same_clock()) continue;
    const CollectiveSample& m = samples[i];
    contradictions += !clocks[i]->refine(m.all_arrived_ns, all_begun - m.all_arrived_ns - m.error_ns,
                                         m.begin_ns, first_past - m.begin_ns + m.error_ns);
  }
  return contradictions;
}

std::vector<std::size_t> CollectiveClocks::learn(RankTable& ranks, std::uint32_t world,
                                                 const RankSession& rank, const wire::Batch& batch,
                                                 double now_s) {
  std::vector<std::size_t> contradicted;
  if (!ranks.counts().clocks_differ() || !rank.on_refinable_clock()) return contradicted;
  const wire::Relay to_node = batch.relay.value_or(wire::Relay{});
  samples_.add(rank.row.rank, world, batch.events, to_node.offset_ns,
               to_node.residual_ns + batch.clock_error_ns, now_s);
  while (const auto whole = samples_.take()) {
    std::vector<ClockEstimator*> clocks(whole->size());
    for (auto& [id, of] : ranks) {
      if (id < clocks.size()) clocks[id] = &of.refinable_clock();
    }
    if (const std::size_t wrong = refine_clocks(*whole, clocks); wrong != 0) contradicted.push_back(wrong);
  }
  return contradicted;
}

}  // namespace shardscope::collector
