#include "app/gui/model/rank_order.h"

#include <algorithm>
#include <map>

#include "app/gui/model/rank_pace.h"

namespace shardscope::gui {

const char* word(RankOrder order) noexcept {
  switch (order) {
    case RankOrder::number:
      return "rank";
    case RankOrder::computation:
      return "computation";
    case RankOrder::exposed:
      return "exposed communication";
  }
  return "";
}

const char* word(RankHeight height) noexcept {
  switch (height) {
    case RankHeight::automatic:
      return "low rows where ranks do not fit";
    case RankHeight::full:
      return "full rows";
    case RankHeight::heat:
      return "low rows";
  }
  return "";
}

std::vector<std::uint32_t> rank_order(const AppState& app) {
  const RankOrder order = app.timeline.order;
  if (order == RankOrder::number) return {};
  const StepTimes* const times = step_shown(app);
  std::map<std::uint32_t, std::int64_t> key;
  if (times != nullptr) {
    for (const StepTimes::Rank& one : times->ranks) {
      if (one.time.known())
        key[one.rank] = order == RankOrder::computation ? one.time.compute_ns : one.time.exposed_comm_ns;
    }
  }
  std::vector<std::uint32_t> out;
  for (const store::RankRow& rank : app.store().ranks()) out.push_back(rank.rank);
  std::ranges::stable_sort(out, std::ranges::greater{}, [&](std::uint32_t rank) {
    const auto found = key.find(rank);
    return found == key.end() ? std::int64_t{-1} : found->second;
  });
  return out;
}

}  // namespace shardscope::gui
