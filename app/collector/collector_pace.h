// How often the collector does work that no viewer waits for. Each iteration of its event loop takes CPU time
// from the ranks of its host, and small chunks are compressed, written and indexed a second time when they
// are compacted into a block; so without viewers iterations are rare and chunks large. The cost of a chunk
// or batch hardly depends on its number of events: where the collector only records, the rate of chunks is
// bounded by a maximum age that grows with the number of ranks. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "instrumentation/drain_pace.h"

namespace shardscope::collector {

struct CollectorPace {
  double iteration_s = 0;     ///< longest time between two iterations; a message that arrives ends the wait
  double chunk_age_s = 0;     ///< age at which a rank's pending events become a chunk, however few they are
  double row_s = 0;           ///< least time between two rows of a rank's counters
  std::uint16_t look_ms = 0;  ///< longest interval at which ranks have to drain their rings (wire::Ping)
  std::uint16_t pack_ms = 0;  ///< how long nodes' collectors may hold back ranks' messages (wire::Ping)
};

/// Whether anything waits for received events (short iterations) or not (rare ones).
enum class Watch : std::uint8_t {
  idle,    ///< it only records
  active,  ///< a viewer is connected, ranks are being paused, clocks are being compared, the run ends
};

/// Rates of small chunks, and of batches that nodes relay, up to which their cost is negligible.
inline constexpr double kChunksPerSecond = 256;
/// A crash of a collector loses events younger than this, see docs/recording.md and docs/scale.md. The first
/// equals the interval between two commits of a recording, which a crash loses anyway.
inline constexpr double kShortestIdleAge_s = 0.5, kLongestIdleAge_s = 16, kLongestPack_s = 8;

[[nodiscard]] inline CollectorPace pace_of(Watch watch, std::size_t ranks) noexcept {
  if (watch == Watch::idle) {
    const double each_s = static_cast<double>(ranks) / kChunksPerSecond;
    return {0.25, std::clamp(each_s, kShortestIdleAge_s, kLongestIdleAge_s),
            std::clamp(static_cast<double>(ranks) / 1024, 0.5, 4.0),
            static_cast<std::uint16_t>(instrumentation::DrainPace::kUnwatched.count()),
            static_cast<std::uint16_t>(1000 * std::clamp(each_s, kShortestIdleAge_s, kLongestPack_s))};
  }
  // Few ranks: low latency. Many: larger chunks, which compress and index better.
  return {0.02, std::clamp(0.05 * static_cast<double>(ranks) / 16, 0.05, 0.5),
          std::clamp(static_cast<double>(ranks) / 4096, 0.2, 1.0), 0, 0};
}

}  // namespace shardscope::collector
