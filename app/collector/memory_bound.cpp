#include <algorithm>

#include "app/collector/collector.h"
#include "app/collector/rank_session.h"
#include "app/collector/recorder.h"
#include "app/collector/upstream.h"
#include "app/store/interval_set.h"
#include "app/store/own_time.h"
#include "app/store/own_times.h"
#include "app/store/rank_state.h"
#include "instrumentation/rank_link.h"
#include "instrumentation/sockets.h"

namespace shardscope::collector {

std::size_t memory_bound(const CollectorOptions& options, std::size_t ranks, std::size_t params) {
  constexpr std::size_t kMiB = 1U << 20;
  constexpr std::size_t kEvent = sizeof(instrumentation::Event);
  // Independent of received data: SQLite's pages, sockets, a block while it is made (events, columns, levels
  // of detail), buffers that some ranks keep, storage that is reused for the next chunk.
  constexpr std::size_t kProgram = 64 * kMiB;
  constexpr std::size_t kStorage = Recorder::kStorages * Recorder::kLargestStorage * kEvent;
  constexpr std::size_t kRoom = store::kRanksWithRoom * 2 * kMiB;
  // Of a rank: messages in ZeroMQ's receive queue (and two more in its engine), open spans, the latest status
  // of each parameter.
  constexpr std::size_t kBatch = instrumentation::kBatchEvents * kEvent;
  constexpr std::size_t kRank = (instrumentation::kReceivedMessages + 2) * kBatch + 96 * 1024;
  const std::size_t status = 3 * sizeof(store::ParamState) * params;
  // With limits: a rank's intervals not measured yet, and its rows of the whole run (docs/recording.md).
  constexpr std::size_t kOwnTimes =
      store::OwnTimeOfRank::kMostPending * sizeof(store::Interval) + store::OwnTimes::kBytesOfRank;
  const std::size_t own_times = options.retention.limited() || options.rotation.on() ? kOwnTimes : 0;
  const std::size_t upstream =
      options.upstream.empty() ? 0 : std::max(options.intake_bytes, ranks * Upstream::kLeastQueue);
  return kProgram + kStorage + kRoom + options.view_log.memory_bytes + options.intake_bytes + upstream +
         options.viewers.bytes + ranks * (kRank + own_times + status);
}

}  // namespace shardscope::collector
