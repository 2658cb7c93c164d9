#include "app/collector/run_record.h"

#include <array>

#include "instrumentation/shedding.h"

namespace shardscope::collector {

using instrumentation::ShedClass;

namespace {
/// Steps, errors and tables are never shed, nor memory watermarks.
constexpr std::array kShedOrder = {ShedClass::kernels, ShedClass::params, ShedClass::modules,
                                   ShedClass::phases, ShedClass::memory};
}  // namespace

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

void RunRecord::hand_over(RankTable& ranks, double now_s) {
  for (auto& [id, rank] : ranks) {
    while (rank.pending() && rank.clock_settled(now_s) && has_room()) flush(rank);
  }
}

std::uint64_t RunRecord::shed(RankTable& ranks, double now_s) {
  // An eighth below the bound, so that the scan is paid once for many messages.
  const std::size_t target = intake_limit_ - intake_limit_ / 8;
  std::uint64_t gone = 0;
  for (const ShedClass victim : kShedOrder) {
    for (auto& [id, rank] : ranks) {
      if (bytes() <= target) break;
      std::uint32_t here = 0;
      pending(rank, [&, &of = rank] { here = of.shed(victim); });
      if (here != 0) ranks.note_change(rank, now_s);
      gone += here;
    }
  }
  if (gone != 0) board_.shed(gone);
  return gone;
}

}  // namespace shardscope::collector
