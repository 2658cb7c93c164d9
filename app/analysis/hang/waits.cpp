#include "app/analysis/hang/waits.h"

#include <algorithm>
#include <map>

#include "app/analysis/hang/rank_states.h"
#include "app/store/rank_end.h"

namespace shardscope::analysis {
namespace {

/// Whether `rank` has begun the collective `issue` of another rank, not a different one at its position.
bool has_entered(const IssuedCollectives& rank, const Issue& issue) {
  const auto at = rank.issues.find(issue.key);
  if (at == rank.issues.end()) return rank.is_past(issue.key);
  const Issue& own = at->second;
  return own.begun &&
         (own.named.op == issue.named.op || (may_differ(own.named.op) && may_differ(issue.named.op)));
}

}  // namespace

std::optional<std::uint32_t> failed_by_itself(const store::Store& store) {
  const std::optional<store::RankEnd> first = store::first_failure(store);
  if (!first) return std::nullopt;
  const bool otherwise = std::ranges::any_of(store.ranks(), [&](const store::RankRow& row) {
    const store::RankEnd end = store::rank_end(store, row);
    return row.rank != first->rank && (end.how != first->how || end.exit_code != first->exit_code);
  });
  return otherwise ? std::optional(first->rank) : std::nullopt;
}

bool was_cut_off(const store::Store& store, std::uint32_t rank, std::int64_t now_ns) {
  const auto row = std::ranges::find(store.ranks(), rank, &store::RankRow::rank);
  return row != store.ranks().end() && store::rank_end(store, *row).how == store::RankEnd::How::killed &&
         now_ns - row->last_ns < kLongNs;
}

std::vector<const Issue*> find_waits(const std::vector<IssuedCollectives>& recent,
                                     std::optional<std::uint32_t> cut_off, std::vector<RankState>& ranks) {
  std::vector<const Issue*> blocked(recent.size());
  const bool all_over = std::ranges::all_of(ranks, is_over);
  for (std::size_t index = 0; index < recent.size(); ++index) {
    RankState& state = ranks[index];
    if (is_over(state) && state.rank == cut_off) continue;
    const bool by_error_only = is_over(state) && !all_over;
    const Issue*& oldest_blocked = blocked[index];
    for (const auto& [key, issue] : recent[index].issues) {
      if (!issue.open || (by_error_only && issue.failed_ns == 0) ||
          (oldest_blocked != nullptr && issue.at_ns >= oldest_blocked->at_ns))
        continue;
      std::vector<std::uint32_t> absent;
      for (const std::uint32_t member : issue.members()) {
        // Sorted by rank, like the store's rows.
        const auto other = std::ranges::lower_bound(recent, member, {}, &IssuedCollectives::rank);
        if (other == recent.end() || other->rank != member || !has_entered(*other, issue))
          absent.push_back(member);
      }
      if (absent.empty()) continue;
      oldest_blocked = &issue;
      state.waits_for = absent;
    }
  }
  return blocked;
}

const Issue* oldest_without(const std::vector<const Issue*>& blocked, const std::vector<RankState>& ranks,
                            std::uint32_t rank) {
  const Issue* oldest = nullptr;
  for (std::size_t index = 0; index < blocked.size(); ++index) {
    const bool lacks = std::ranges::find(ranks[index].waits_for, rank) != ranks[index].waits_for.end();
    if (lacks && (oldest == nullptr || blocked[index]->at_ns < oldest->at_ns)) oldest = blocked[index];
  }
  return oldest;
}

std::uint32_t most_missed(const std::vector<RankState>& ranks) {
  std::map<std::uint32_t, std::uint32_t> missed;  // number of ranks that wait for it
  for (const RankState& one : ranks) {
    for (const std::uint32_t rank : one.waits_for) ++missed[rank];
  }
  std::uint32_t found = instrumentation::kNoId, most = 0;
  for (const auto& [rank, count] : missed) {
    const auto state = std::ranges::find(ranks, rank, &RankState::rank);
    const bool waits = state != ranks.end() && !state->waits_for.empty();
    const std::uint32_t weight = count * 2 + (waits ? 0 : 1);
    if (weight <= most) continue;
    most = weight;
    found = rank;
  }
  return found;
}

const RankState* without_waits(const store::Store& store, const std::vector<RankState>& ranks) {
  if (std::ranges::find(ranks, RankState::How::paused, &RankState::how) != ranks.end()) return nullptr;
  const std::optional<store::RankEnd> first = store::first_failure(store);
  auto found = first ? std::ranges::find(ranks, first->rank, &RankState::rank) : ranks.end();
  if (found == ranks.end()) found = std::ranges::find(ranks, RankState::How::gone, &RankState::how);
  if (found == ranks.end()) found = std::ranges::find(ranks, RankState::How::stopped, &RankState::how);
  return found == ranks.end() ? nullptr : &*found;
}

}  // namespace shardscope::analysis
