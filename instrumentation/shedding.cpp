#include "instrumentation/shedding.h"

#include <algorithm>
#include <array>
#include <bitset>

namespace shardscope::instrumentation {
namespace {

constexpr std::size_t kPools = 16;  ///< pools that a memory code can encode

/// By the detail level of the kind: shed first are events that a run at a lower level would not have emitted,
/// so the rest is a complete recording at that level. Memory events are a class of their own, because each
/// carries the sum of all before it.
ShedClass class_by_detail(EventKind kind) noexcept {
  if (kind == EventKind::memory_alloc || kind == EventKind::memory_free) return ShedClass::memory;
  switch (detail_of(kind)) {
    case Detail::kernels:
      return ShedClass::kernels;
    case Detail::params:
      return ShedClass::params;
    case Detail::modules:
      return ShedClass::modules;
    case Detail::phases:
      return ShedClass::phases;
    case Detail::steps:
      return ShedClass::steps;
  }
  return ShedClass::kernels;
}

/// Indices in `events`, ascending: the largest "pool bytes after" of each pool, and each pool's last event.
/// Each event carries the pool's bytes after it, so these two suffice: the peak stays exact, and later events
/// continue from the correct level.
std::vector<std::size_t> watermarks(const std::vector<Event>& events) {
  std::array<std::size_t, kPools> most{}, last{};
  std::bitset<kPools> seen;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (shed_class(events[i].kind) != ShedClass::memory) continue;
    const std::size_t pool = pool_number(events[i].code);
    if (!seen[pool] || events[i].v1 > events[most[pool]].v1) most[pool] = i;
    last[pool] = i;
    seen.set(pool);
  }
  std::vector<std::size_t> kept;
  for (std::size_t pool = 0; pool < kPools; ++pool) {
    if (seen[pool]) kept.insert(kept.end(), {most[pool], last[pool]});
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

}  // namespace

ShedClass shed_class(EventKind kind) noexcept {
  static constexpr std::size_t kKinds = static_cast<std::size_t>(kLastEventKind) + 1;
  static const std::array<ShedClass, kKinds> table = [] {
    std::array<ShedClass, kKinds> out{};
    for (std::size_t k = 0; k < kKinds; ++k) out[k] = class_by_detail(static_cast<EventKind>(k));
    return out;
  }();
  const auto k = static_cast<std::size_t>(kind);
  return k < kKinds ? table[k] : ShedClass::kernels;
}

/// In place: the rest keeps its order, and `events` its capacity.
std::uint32_t shed(std::vector<Event>& events, ShedClass victim, std::int64_t& first_ns,
                   std::int64_t& last_ns) {
  const std::vector<std::size_t> kept =
      victim == ShedClass::memory ? watermarks(events) : std::vector<std::size_t>();
  std::size_t out = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (shed_class(events[i].kind) != victim || std::binary_search(kept.begin(), kept.end(), i)) {
      events[out++] = events[i];
      continue;
    }
    first_ns = std::min(first_ns, static_cast<std::int64_t>(events[i].ticks));
    last_ns = std::max(last_ns, static_cast<std::int64_t>(events[i].ticks));
  }
  const auto gone = static_cast<std::uint32_t>(events.size() - out);
  events.resize(out);
  return gone;
}

}  // namespace shardscope::instrumentation
