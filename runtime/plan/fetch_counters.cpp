#include "runtime/plan/fetch_counters.h"

#include <utility>

namespace shardscope::plan {
namespace {

constexpr std::array<const char*, kFetchCounters> kNames{
    "forward_fetch_submit",  "forward_fetch_wait",  "forward_prefetch_submit",  "forward_all_gather",
    "backward_fetch_submit", "backward_fetch_wait", "backward_prefetch_submit", "backward_all_gather"};
constexpr std::size_t kPerDirection = kFetchCounters / 2;

}  // namespace

const char* name_of(FetchCounter counter) noexcept {
  const auto index = static_cast<std::size_t>(counter);
  return index < kFetchCounters ? kNames[index] : "unknown";
}

void FetchCounters::fetched(const FetchPlan& plan, Direction direction,
                            const std::function<std::size_t(ParamId)>& source_of) {
  const auto add = [&](FetchCounter forward, std::int64_t counted) {
    const std::size_t offset = direction == Direction::forward ? 0 : kPerDirection;
    FetchCount& counter = counts_[static_cast<std::size_t>(forward) + offset];
    ++counter.count;
    counter.elems += counted;
  };
  const auto gathered = [&](const Gather& gather) {
    std::array<std::int64_t, kGatherSources> parts{};
    for (const ParamId id : gather.params) parts.at(source_of(id)) += elems_[raw(id)];
    for (const std::int64_t part : parts) {
      if (part > 0) add(FetchCounter::forward_all_gather, part);
    }
  };
  if (!plan.gather.params.empty()) {
    add(FetchCounter::forward_fetch_submit, shards_of(plan.gather.params));
    gathered(plan.gather);
  }
  add(FetchCounter::forward_fetch_wait, shards_of(plan.wait));
  if (!plan.prefetch.params.empty()) {
    add(FetchCounter::forward_prefetch_submit, plan.prefetch.elems);
    gathered(plan.prefetch);
  }
}

FetchCounts FetchCounters::take() noexcept { return std::exchange(counts_, {}); }

std::int64_t FetchCounters::shards_of(const std::vector<ParamId>& params) const {
  std::int64_t sum = 0;
  for (const ParamId id : params) sum += shard_elems_[raw(id)];
  return sum;
}

}  // namespace shardscope::plan
