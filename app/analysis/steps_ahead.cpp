#include "app/analysis/steps_ahead.h"

#include <algorithm>
#include <span>
#include <utility>

namespace shardscope::analysis {
namespace {

/// In a live run, events of a rank's other threads may arrive this much later.
constexpr std::int64_t kSettling_ns = 4'000'000'000;

/// Whether events are missing that may determine the step's end. In a live run the step may still get longer
/// on another rank.
bool lacks_events(const store::Store& store, std::uint32_t rank, std::int64_t from_ns, std::uint32_t step) {
  std::int64_t until_ns = store::Store::kEnd;
  const std::span<const store::StepRow> rows = store.steps();
  const auto row = std::ranges::lower_bound(rows, step, {}, &store::StepRow::step);
  if (!store.bounds() && row != rows.end() && row->step == step) until_ns = row->end_ns;
  return std::ranges::any_of(store.gaps(), [&](const store::Gap& gap) {
    return gap.rank == rank && gap.end_ns >= from_ns && gap.begin_ns < until_ns;
  });
}

}  // namespace

std::int64_t steps_known_until(const store::Store& store, std::int64_t until_ns) {
  if (!store.bounds()) return until_ns;
  std::int64_t known = store.end_ns();
  for (const store::RankRow& row : store.ranks()) known = std::min(known, row.last_ns);
  return std::min(until_ns, known - kSettling_ns);
}

const RankReading* StepsAhead::next(std::uint32_t rank, std::int64_t from_ns) {
  const auto found = ranks_.find(rank);
  if (found == ranks_.end()) return nullptr;
  std::deque<RankReading>& steps = found->second;
  while (!steps.empty() && steps.front().window.begin_ns < from_ns) steps.pop_front();
  return steps.empty() ? nullptr : &steps.front();
}

std::optional<RankReading> StepsAhead::take(std::uint32_t rank, const StepWindow& window) {
  const RankReading* const read = next(rank, window.begin_ns);
  if (read == nullptr || read->window.begin_ns != window.begin_ns || read->window.end_ns != window.end_ns)
    return std::nullopt;
  std::deque<RankReading>& steps = ranks_.at(rank);
  std::optional<RankReading> out = std::move(steps.front());
  steps.pop_front();
  return out;
}

void StepsAhead::read(const store::Store& store, std::uint32_t rank, std::int64_t from_ns,
                      std::int64_t known_until_ns, const std::function<bool()>& out_of_time) {
  if (store.ranks().size() <= kManyRanks) return;
  const std::size_t room = kMostBytes / store.ranks().size();
  std::deque<RankReading>& steps = ranks_[rank];
  std::size_t bytes = 0;
  while (steps.size() < kMostSteps && bytes < room && !out_of_time()) {
    const std::optional<StepWindow> window = step_from(store, rank, from_ns, known_until_ns);
    // step_from() may have found an unreadable block, which adds a gap: check after it.
    if (!window || lacks_events(store, rank, from_ns, window->step)) return;
    steps.push_back(read_step(store, rank, *window));
    bytes += steps.back().bytes();
    from_ns = std::max(window->end_ns, window->begin_ns + 1);
  }
}

}  // namespace shardscope::analysis
