#include "app/collector/run_record.h"

namespace shardscope::collector {

void RunRecord::flush(RankSession& rank) {
  store::Chunk chunk;
  pending(rank, [&] { chunk = rank.take_chunk(); });
  if (chunk.dropped_before != 0) board_.dropped(chunk.dropped_before);
  recorder_->chunk(std::move(chunk));
}

void RunRecord::add(RankSession& rank, wire::Batch& batch, double now_s) {
  pending(rank, [&] { rank.add(batch, now_s, [this] { return recorder_->take_storage(); }); });
  batch_storage_ = std::move(batch.events);
}

}  // namespace shardscope::collector
