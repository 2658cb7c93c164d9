// shardscope_keep(): events recorded before a run starts. shardscope_memory_level(): sampled memory levels.
#include <array>
#include <mutex>
#include <optional>
#include <string>

#include "instrumentation/c_api/run.h"
#include "instrumentation/c_api/status.h"
#include "instrumentation/ring.h"

namespace shardscope::instrumentation::c_api {
namespace {

std::mutex g_keeping;
std::optional<PreattachBuffer> g_kept;  // guarded by g_keeping

/// Levels by pool and category. Each call emits the change since the last emitted level, as an allocation or
/// a free. If a full ring drops the event, the stored level stays unchanged, so the next call emits both
/// changes and the categories still add up.
class MemoryLevels {
 public:
  void set(MemoryPool pool, MemoryCategory category, std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    Pool& of = pools_[static_cast<std::size_t>(pool)];
    std::int64_t& level = of.levels[static_cast<std::size_t>(category)];
    const std::int64_t change = bytes - level;
    if (change == 0) return;
    const std::int64_t total = of.total + change;
    const bool kept = change > 0
                          ? emit_kept(make<EventKind::memory_alloc>(
                                {.pool = pool, .category = category, .bytes = change, .pool_bytes = total}))
                          : emit_kept(make<EventKind::memory_free>(
                                {.pool = pool, .category = category, .bytes = -change, .pool_bytes = total}));
    if (!kept) return;
    level = bytes;
    of.total = total;
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    pools_ = {};
  }

 private:
  struct Pool {
    std::array<std::int64_t, kMemoryCategoryCount> levels{};
    std::int64_t total = 0;
  };
  /// emit(); returns whether the calling thread's ring stored the event.
  static bool emit_kept(const Event& event) noexcept {
    Ring* ring = detail::t_ring != nullptr ? detail::t_ring : detail::ring_slow();
    if (ring == nullptr) return false;
    const std::uint64_t dropped = ring->dropped();
    ring->push(event);
    return ring->dropped() == dropped;
  }
  std::mutex mutex_;  ///< held while emitting, so that totals are emitted in order
  std::array<Pool, kMemoryPoolCount> pools_;
};

MemoryLevels g_levels_of_memory;

}  // namespace

std::optional<PreattachBuffer> kept_beginning() noexcept {
  const std::lock_guard lock(g_keeping);
  return g_kept;
}

void end_keeping() noexcept {
  const std::lock_guard lock(g_keeping);
  g_kept.reset();
}

void forget_memory_levels() noexcept { g_levels_of_memory.forget(); }

}  // namespace shardscope::instrumentation::c_api

using namespace shardscope::instrumentation;
using namespace shardscope::instrumentation::c_api;

extern "C" {

SHARDSCOPE_API shardscope_status shardscope_keep(int32_t detail, uint64_t ring_events) {
  return guarded([&] {
    require(detail >= -1 && detail <= SHARDSCOPE_DETAIL_KERNELS,
            "detail is " + std::to_string(detail) + "; use a SHARDSCOPE_DETAIL_... or -1");
    require(ring_events <= kMaxRingEvents, "ring_events is " + std::to_string(ring_events) + "; at most " +
                                               std::to_string(kMaxRingEvents) + " are allowed");
    const std::lock_guard lock(g_keeping);
    if (!g_kept && g_detail.load(std::memory_order_relaxed) >= 0)
      throw Failure(SHARDSCOPE_INVALID_STATE,
                    "a run goes on: what it emits is sent, there is nothing to keep");
    if (detail < 0) {
      g_detail.store(-1, std::memory_order_relaxed);
      g_kept.reset();
      return;
    }
    if (ring_events != 0) RingRegistry::instance().set_capacity(static_cast<std::size_t>(ring_events));
    if (!g_kept) {
      forget_memory_levels();
      RingRegistry::instance().forget_drops();  // earlier drops are missing in no run
      g_kept = PreattachBuffer{TickClock::sample(), RingRegistry::instance().dropped()};
    }
    g_detail.store(detail, std::memory_order_relaxed);
  });
}

SHARDSCOPE_API void shardscope_memory_level(uint8_t pool, uint8_t category, int64_t bytes) {
  if (!enabled(detail_of(EventKind::memory_alloc))) return;
  if (pool >= kMemoryPoolCount || category >= kMemoryCategoryCount || bytes < 0) {
    count_invalid_event();
    return;
  }
  g_levels_of_memory.set(static_cast<MemoryPool>(pool), static_cast<MemoryCategory>(category), bytes);
}

}  // extern "C"
