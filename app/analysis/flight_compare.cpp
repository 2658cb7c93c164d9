#include "app/analysis/flight_compare.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "app/analysis/flight_groups.h"

namespace shardscope::analysis {
namespace {

/// Members that `open` of `rank` waits for: those that certainly never issued it or issued something else; if
/// there are none, those for which the dumps do not tell (no dump, or no operation of the group).
std::vector<std::uint32_t> lacking(const FlightGroupLanes& group, const std::vector<FlightProgress>& progress,
                                   std::uint32_t rank, const FlightEntry& open, const FlightTexts& texts) {
  std::vector<std::uint32_t> surely, maybe;
  const FlightLane* own = group.of(rank);
  if (own == nullptr) return {};
  if (open.point_to_point) {
    const auto peers = flight_peers(open, texts);
    if (!peers) return {};
    const std::size_t other = peers->is_send ? peers->to : peers->from;
    if (other >= group.lanes.size()) return {};
    const bool comes = std::ranges::any_of(group.lanes[other].point_to_point, [&](const FlightEntry* one) {
      const auto its = flight_peers(*one, texts);
      return one->is_open() && its && its->is_send != peers->is_send && its->from == peers->from &&
             its->to == peers->to;
    });
    if (!comes) surely.push_back(group.lanes[other].rank);
    return surely;
  }
  const FlightParts parts = own->at(open.sequence);
  for (std::size_t i = 0; i < group.lanes.size(); ++i) {
    const FlightLane& lane = group.lanes[i];
    if (lane.rank == rank) continue;
    const FlightParts others = lane.at(open.sequence);
    if (!others.empty()) {
      if (!issued_alike(parts, others, texts)) surely.push_back(lane.rank);
    } else if (lane.dump == nullptr || !progress[i].issued) {
      (progress[i].whole ? surely : maybe).push_back(lane.rank);
    } else if (progress[i].whole && *progress[i].issued < open.sequence) {
      surely.push_back(lane.rank);
    }
  }
  return surely.empty() ? maybe : surely;
}

/// Of the ranks that others wait for, those that wait for no rank themselves; if all of them wait, those that
/// most ranks wait for.
std::vector<std::uint32_t> most_waited_for(const std::vector<FlightRankState>& ranks) {
  std::map<std::uint32_t, std::size_t> count;
  for (const FlightRankState& one : ranks) {
    for (const std::uint32_t rank : one.waits_for) ++count[rank];
  }
  const auto waits = [&](std::uint32_t rank) {
    const auto state = std::ranges::lower_bound(ranks, rank, {}, &FlightRankState::rank);
    return state != ranks.end() && state->rank == rank && !state->waits_for.empty();
  };
  std::vector<std::uint32_t> free, out;
  std::size_t most = 0;
  for (const auto& [rank, times] : count) {
    if (!waits(rank)) free.push_back(rank);
    most = std::max(most, times);
  }
  if (!free.empty()) return free;
  for (const auto& [rank, times] : count) {
    if (times == most) out.push_back(rank);
  }
  // If most of them are waited for equally often, none of them stands out as the cause.
  return out.size() * 2 <= count.size() ? out : std::vector<std::uint32_t>();
}

}  // namespace

const char* name_of(FlightDifference::What what) {
  switch (what) {
    case FlightDifference::What::operation:
      return "operation";
    case FlightDifference::What::count:
      return "count";
    case FlightDifference::What::sizes:
      return "sizes";
    case FlightDifference::What::type:
      return "type";
    case FlightDifference::What::missing:
      return "missing";
    case FlightDifference::What::unfinished:
      return "unfinished";
  }
  return "";
}

FlightComparison compare_flights(const std::vector<FlightDump>& dumps, const FlightTexts& texts) {
  const std::vector<FlightGroupLanes> groups = flight_groups(dumps, texts);
  FlightComparison out;
  std::set<std::uint32_t> absent;
  for (const FlightGroupLanes& group : groups) {
    FlightGroupState& state = out.groups.emplace_back();
    state.name = group.name;
    state.description = group.description;
    for (const FlightLane& lane : group.lanes) {
      state.ranks.push_back(flight_progress(lane));
      if (lane.dump == nullptr) absent.insert(lane.rank);
    }
    state.difference = collective_difference(group, state.ranks, texts);
    // Waits for a rank that itself waits for a message are a consequence of the message.
    using What = FlightDifference::What;
    if (!state.difference || state.difference->what == What::missing ||
        state.difference->what == What::unfinished) {
      if (auto pair = pair_difference(group, texts)) state.difference = std::move(pair);
    }
  }
  out.without_dump.assign(absent.begin(), absent.end());
  for (const FlightDump& dump : dumps) {
    FlightRankState& state = out.ranks.emplace_back();
    state.rank = dump.rank;
    if (!dump.entries.empty()) state.last = &dump.entries.back();
    const auto open = std::ranges::find_if(dump.entries, &FlightEntry::is_open);
    if (open == dump.entries.end()) continue;
    state.open = &*open;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const FlightLane* lane = groups[i].of(dump.rank);
      if (lane == nullptr || groups[i].name != texts.text_of(open->group)) continue;
      const auto& entries = open->point_to_point ? lane->point_to_point : lane->collectives;
      if (std::ranges::find(entries, state.open) == entries.end()) continue;
      state.group = i;
      state.waits_for = lacking(groups[i], out.groups[i].ranks, dump.rank, *open, texts);
    }
  }
  out.culprits = most_waited_for(out.ranks);
  return out;
}

}  // namespace shardscope::analysis
