#include "app/collector/held_chunks.h"

#include <utility>

#include "app/store/compaction.h"

namespace shardscope::collector {

using store::Compaction;

void HeldChunks::add(store::Chunk& chunk, std::vector<std::byte> encoded, std::int64_t now_ns) {
  Held& held = ranks_[chunk.rank];
  // Missing events lie before a chunk: the chunk may be the first of a recording's row, but no later one.
  const bool gap = chunk.dropped_before != 0 || chunk.lost_before != 0;
  const bool large = chunk.events.size() >= Compaction::kJoinedEvents;
  if (gap || large) record(held);
  if (large) {
    record_(chunk, encoded);
    return;
  }
  if (held.chunks.empty()) {
    held.since_ns = now_ns;
    held.encoded = std::move(encoded);
  } else {
    held.encoded.clear();
  }
  held.events += chunk.events.size();
  events_ += chunk.events.size();
  held.chunks.push_back(std::move(chunk));
  if (held.events >= Compaction::kJoinedEvents) record(held);
  if (events_ > kMostEvents) record_all();
}

void HeldChunks::record(Held& held) {
  if (held.chunks.empty()) return;
  events_ -= std::exchange(held.events, 0);
  const std::vector<store::Chunk> chunks = std::exchange(held.chunks, {});
  const std::vector<std::byte> encoded = std::exchange(held.encoded, {});
  if (chunks.size() == 1) {
    record_(chunks.front(), encoded);
  } else {
    record_(store::joined(chunks), {});
  }
}

void HeldChunks::record_due(std::int64_t now_ns) {
  for (auto& [rank, held] : ranks_) {
    if (now_ns - held.since_ns >= kLongest_ns) record(held);
  }
}

void HeldChunks::record_all() {
  for (auto& [rank, held] : ranks_) record(held);
}

}  // namespace shardscope::collector
