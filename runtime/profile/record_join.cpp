#include "runtime/profile/record_join.h"

#include <algorithm>

#include "instrumentation/event_fields.h"
#include "runtime/profile/open_spans.h"

namespace shardscope::profile {
namespace {

using instrumentation::Event;
using instrumentation::EventKind;
using instrumentation::kNoDelay;
using instrumentation::kNoId;
using instrumentation::StreamId;

/// Number of latest calls of a thread that are searched for calls nested in the latest one.
constexpr std::size_t kCallsKept = 8;

}  // namespace

RecordJoin::RecordJoin(GpuLanes lanes, std::int64_t begin_ns)
    : lanes_(std::move(lanes)), begin_ns_(begin_ns), known_until_ns_(begin_ns) {}

void RecordJoin::add_launch(const LaunchRecord& launch) {
  Launch entry{launch.begin_ns, true};
  std::vector<Call>& calls = calls_[launch.thread];
  for (const Call& call : calls) {
    if (call.correlation == launch.correlation) continue;
    if (launch.begin_ns <= call.begin_ns && call.end_ns <= launch.end_ns) {
      if (const auto inner = launches_.find(call.correlation); inner != launches_.end())
        inner->second.pending = false;
    } else if (call.begin_ns <= launch.begin_ns && launch.end_ns <= call.end_ns) {
      entry.pending = false;
    }
  }
  calls.push_back({launch.correlation, launch.begin_ns, launch.end_ns});
  if (calls.size() > kCallsKept) calls.erase(calls.begin());
  const auto [known, added] = launches_.try_emplace(launch.correlation, entry);
  // The runtime's call and the driver's call inside it share the correlation id: the outer one began first.
  if (!added) known->second.begin_ns = std::min(known->second.begin_ns, launch.begin_ns);
}

void RecordJoin::add(const RecordBatch& batch) {
  records_ += batch.records();
  dropped_ += batch.dropped;
  held_since_ns_ = batch.held_since_ns;
  for (const LaunchRecord& launch : batch.launches) add_launch(launch);
  for (const OwnerRecord& owner : batch.owners) owners_[owner.correlation] = owner.owner;
  for (const WorkRecord& work : batch.work) waiting_.push_back({work, flush_});
  syncs_.insert(syncs_.end(), batch.syncs.begin(), batch.syncs.end());
  memory_.insert(memory_.end(), batch.memory.begin(), batch.memory.end());
}

void RecordJoin::emit_work(const WorkRecord& record, std::int64_t tolerance_ns,
                           std::vector<TimedEvent>& out) {
  const auto place =
      lanes_.place(record.stream, record.begin_ns, record.end_ns, tolerance_ns, record.usual_lane);
  if (!place) {
    ++no_place_;
    ++not_placed_;
    return;
  }
  std::int64_t delay = kNoDelay;
  if (const auto launch = launches_.find(record.correlation); launch != launches_.end())
    delay = record.begin_ns - launch->second.begin_ns;
  else
    ++no_launch_;
  Owner owner;
  if (const auto known = owners_.find(record.correlation); known != owners_.end())
    owner = owner_of_id(known->second);
  Event event = instrumentation::make<EventKind::gpu_begin>(place->lane, {.work = record.work,
                                                                          .owner_kind = owner.kind,
                                                                          .name = record.name,
                                                                          .owner = owner.id,
                                                                          .cuda_stream = record.stream,
                                                                          .delay_ns = delay,
                                                                          .amount = record.amount});
  out.emplace_back(place->begin_ns, event);
  event.kind = EventKind::gpu_end;
  out.emplace_back(std::max(record.end_ns, place->begin_ns), event);
}

void RecordJoin::forget(std::int64_t before_ns) {
  for (auto launch = launches_.begin(); launch != launches_.end();) {
    if (launch->second.begin_ns < before_ns) {
      owners_.erase(launch->first);
      launch = launches_.erase(launch);
    } else {
      ++launch;
    }
  }
  // Owner records also exist for calls that are not recorded as launches (an event, a wait).
  if (owners_.size() > 4 * launches_.size() + 65536) owners_.clear();
}

void RecordJoin::drop_impossible(std::int64_t flushed_ns) {
  const auto impossible = [&](std::int64_t begin_ns, std::int64_t end_ns) {
    return begin_ns < begin_ns_ - kWrongByNs || end_ns > flushed_ns + kWrongByNs;
  };
  dropped_ += std::erase_if(
      waiting_, [&](const Waiting& one) { return impossible(one.record.begin_ns, one.record.end_ns); });
  dropped_ +=
      std::erase_if(syncs_, [&](const SyncRecord& one) { return impossible(one.begin_ns, one.end_ns); });
  dropped_ +=
      std::erase_if(memory_, [&](const MemoryRecord& one) { return impossible(one.at_ns, one.at_ns); });
}

std::vector<TimedEvent> RecordJoin::settle(std::int64_t flushed_ns, std::int64_t tolerance_ns, bool end) {
  ++flush_;
  drop_impossible(flushed_ns);
  std::sort(waiting_.begin(), waiting_.end(), [](const Waiting& a, const Waiting& b) {
    return std::pair(a.record.begin_ns, a.record.end_ns) < std::pair(b.record.begin_ns, b.record.end_ns);
  });
  // In order: work after a record that waits for its launch waits too.
  auto settled = waiting_.begin();
  for (; settled != waiting_.end(); ++settled) {
    const auto launch = launches_.find(settled->record.correlation);
    if (launch != launches_.end()) launch->second.pending = false;
    if (launch == launches_.end() && !end && settled->since_flush + 1 >= flush_) break;
  }
  std::int64_t known =
      settled == waiting_.end() ? flushed_ns : std::min(flushed_ns, settled->record.begin_ns);
  for (auto rest = settled; rest != waiting_.end(); ++rest) {
    if (const auto launch = launches_.find(rest->record.correlation); launch != launches_.end())
      launch->second.pending = false;
  }
  if (!end) {
    known = std::min(known, held_since_ns_);
    for (const auto& [correlation, launch] : launches_) {
      if (launch.pending && launch.begin_ns > flushed_ns - kGiveUpNs)
        known = std::min(known, launch.begin_ns);
    }
  }

  std::vector<TimedEvent> out;
  for (auto work = waiting_.begin(); work != settled; ++work) emit_work(work->record, tolerance_ns, out);
  waiting_.erase(waiting_.begin(), settled);

  std::sort(syncs_.begin(), syncs_.end(),
            [](const SyncRecord& a, const SyncRecord& b) { return a.begin_ns < b.begin_ns; });
  for (const SyncRecord& sync : syncs_) {
    // If two threads wait at once, the lane can show only one. An overlap within the clock error is no
    // overlap.
    if (sync.begin_ns < sync_end_ns_ &&
        (sync_end_ns_ - sync.begin_ns > tolerance_ns || sync.end_ns < sync_end_ns_)) {
      ++no_place_;
      ++not_placed_;
      continue;
    }
    const std::int64_t begin_ns = std::max(sync.begin_ns, sync_end_ns_);
    sync_end_ns_ = std::max(begin_ns, sync.end_ns);
    Event event =
        instrumentation::make<EventKind::gpu_sync_begin>({.sync = sync.sync, .cuda_stream = sync.stream});
    out.emplace_back(begin_ns, event);
    event.kind = EventKind::gpu_sync_end;
    out.emplace_back(sync_end_ns_, event);
  }
  syncs_.clear();
  for (const MemoryRecord& memory : memory_) {
    out.emplace_back(memory.at_ns, instrumentation::make<EventKind::gpu_memory>(
                                       {.pool = memory.pool,
                                        .freed = memory.freed,
                                        .bytes = memory.bytes,
                                        .address = static_cast<std::int64_t>(memory.address)}));
  }
  memory_.clear();
  if (known > known_until_ns_) {
    Event event =
        instrumentation::make<EventKind::gpu_records_begin>({.flush = static_cast<std::uint32_t>(flush_),
                                                             .not_placed = no_place_,
                                                             .no_launch = no_launch_,
                                                             .records = static_cast<std::int64_t>(records_),
                                                             .dropped = static_cast<std::int64_t>(dropped_)});
    out.emplace_back(known_until_ns_, event);
    event.kind = EventKind::gpu_records_end;
    out.emplace_back(known, event);
    known_until_ns_ = known;
    records_ = dropped_ = 0;
    no_place_ = no_launch_ = 0;
  }
  forget(flushed_ns - 2 * kGiveUpNs);
  return out;
}

std::vector<TimedEvent> RecordJoin::take(std::int64_t flushed_ns, std::int64_t tolerance_ns) {
  return settle(flushed_ns, tolerance_ns, false);
}

std::vector<TimedEvent> RecordJoin::take_all(std::int64_t flushed_ns, std::int64_t tolerance_ns) {
  return settle(flushed_ns, tolerance_ns, true);
}

}  // namespace shardscope::profile
