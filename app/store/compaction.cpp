#include "app/store/compaction.h"

#include <algorithm>
#include <utility>

namespace shardscope::store {

Chunk joined(std::span<const Chunk> chunks) {
  Chunk out = chunks.back();
  out.sequence = chunks.front().sequence;
  out.dropped_before = chunks.front().dropped_before;
  out.shed_before = chunks.front().shed_before;
  out.lost_before = chunks.front().lost_before;
  out.lost_between = chunks.front().lost_between;
  // On the clock that the joined chunk's offset is for. Unsigned: see below.
  const auto moved_by = [&](std::int64_t ns) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(ns) +
                                     static_cast<std::uint64_t>(chunks.front().clock_offset_ns) -
                                     static_cast<std::uint64_t>(out.clock_offset_ns));
  };
  const bool known = chunks.front().missing_begin_ns < chunks.front().missing_end_ns;
  out.missing_begin_ns = known ? moved_by(chunks.front().missing_begin_ns) : 0;
  out.missing_end_ns = known ? moved_by(chunks.front().missing_end_ns) : 0;
  out.parts = 0;
  out.events.clear();
  for (const Chunk& chunk : chunks) {
    out.parts += chunk.parts;
    out.clock_residual_ns = std::max(out.clock_residual_ns, chunk.clock_residual_ns);
    // Unsigned: offsets may be anything in a damaged run, and wrap back when the time is converted.
    const std::uint64_t moved =
        static_cast<std::uint64_t>(chunk.clock_offset_ns) - static_cast<std::uint64_t>(out.clock_offset_ns);
    for (instrumentation::Event event : chunk.events) {
      event.ticks += moved;
      out.events.push_back(event);
    }
  }
  return out;
}

void Compaction::take(Pending& pending, std::vector<Rows>& out) {
  if (!pending.rows.empty()) out.push_back(std::move(pending.rows));
  pending = {};
}

std::vector<Compaction::Rows> Compaction::wrote(std::int64_t id, const Chunk& chunk) {
  std::vector<Rows> out;
  Pending& pending = ranks_[chunk.rank];
  // Events are missing before a chunk: it may begin a group but not be inside one.
  const bool gap = chunk.dropped_before != 0 || chunk.lost_before != 0;
  const bool large = chunk.events.size() >= kLargeEvents;
  const bool full = pending.rows.size() + chunk.parts > Chunk::kMaxParts;
  if (gap || large || full) take(pending, out);
  if (large) {
    out.push_back({id});
    return out;
  }
  pending.rows.push_back(id);
  pending.events += chunk.events.size();
  if (pending.events >= kJoinedEvents) take(pending, out);
  return out;
}

std::vector<Compaction::Rows> Compaction::rest() {
  std::vector<Rows> out;
  for (auto& [rank, pending] : ranks_) take(pending, out);
  return out;
}

}  // namespace shardscope::store
