#include "app/analysis/own_times.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "app/store/own_times.h"
#include "app/store/rank_end.h"

namespace shardscope::analysis {

std::vector<store::OwnTimeRow> own_times_of(const store::Store& store, const Digest& digest) {
  constexpr auto kLeast_ns = static_cast<std::int64_t>(kLeastHours * 3'600e9);
  const std::span<const store::RankRow> ranks = store.ranks();
  if (digest.evicted_steps() > 0 || ranks.size() < 2 || store.end_ns() < kLeast_ns) return {};
  const auto runs = [&](const store::RankRow& row) {
    return store::rank_end(store, row).how == store::RankEnd::How::running;
  };
  if (std::ranges::any_of(ranks, runs)) return {};
  store::OwnTimes times;
  for (std::size_t i = digest.first_measured(); i < digest.steps().size(); ++i) {
    for (const RankStep& rank : digest.steps()[i].ranks) {
      if (!rank.time.known() || rank.time.unrecorded_ns > 0) continue;
      const std::int64_t waited_ns = rank.time.exposed_comm_ns;
      times.add(rank.rank, {.step = digest.steps()[i].step,
                            .own_ns = rank.time.total_ns - rank.time.checkpoint_ns - waited_ns,
                            .waited_ns = waited_ns});
    }
  }
  return times.changes().rows;
}

}  // namespace shardscope::analysis
