// Of a recorded run whose `tokens` events carry the true time in v0: how far off the times are that their
// chunks give them, and whether that is within the residual of each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

#include "app/store/chunk.h"
#include "app/store/database.h"

namespace shardscope::collector {

struct ClockErrors {
  std::uint64_t events = 0, beyond = 0;  ///< beyond the residual of their chunk
  std::int64_t error_ns = 0;             ///< the largest
  std::int64_t residual_ns = 0;          ///< the largest of a chunk
  std::int64_t last_residual_ns = 0;
};

inline std::map<std::uint32_t, ClockErrors> clock_errors(const std::string& recording) {
  std::map<std::uint32_t, ClockErrors> ranks;
  store::Database database(recording, store::Database::Access::read);
  store::Statement rows = database.prepare("SELECT bytes FROM chunks ORDER BY id");
  while (rows.step()) {
    const auto bytes = rows.bytes(0);
    const store::Chunk chunk = store::Chunk::decode(bytes.data(), bytes.size());
    ClockErrors& rank = ranks[chunk.rank];
    rank.residual_ns = std::max(rank.residual_ns, chunk.clock_residual_ns);
    rank.last_residual_ns = chunk.clock_residual_ns;
    for (const instrumentation::Event& event : chunk.events) {
      if (event.kind != instrumentation::EventKind::tokens) continue;
      const std::int64_t error =
          std::abs(static_cast<std::int64_t>(event.ticks) + chunk.clock_offset_ns - event.v0);
      ++rank.events;
      rank.beyond += error > chunk.clock_residual_ns ? 1 : 0;
      rank.error_ns = std::max(rank.error_ns, error);
    }
  }
  return ranks;
}

}  // namespace shardscope::collector
