#include "app/analysis/flight_groups.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

namespace shardscope::analysis {
namespace {

/// A process group by name and ranks: groups made by splitting one share its name.
using FlightGroupKey = std::pair<std::string, std::vector<std::uint32_t>>;

FlightGroupKey key_of(const FlightDump& dump, const std::string& name) {
  const auto known = dump.groups.find(name);
  return {name, known == dump.groups.end() ? std::vector<std::uint32_t>() : known->second.ranks};
}

/// Whether it has every record since its first: a buffer that has wrapped starts late, and without completed
/// operations (TORCH_INCLUDE_ONLY_ACTIVE) numbers are missing in between.
bool is_gapless(const FlightDump& dump) {
  return !dump.entries.empty() && dump.entries.back().record - dump.entries.front().record + 1 ==
                                      static_cast<std::int64_t>(dump.entries.size());
}

}  // namespace

FlightParts FlightLane::at(std::int64_t sequence) const {
  const auto sequence_of = [](const FlightEntry* one) { return one->sequence; };
  const auto begin = std::ranges::lower_bound(collectives, sequence, {}, sequence_of);
  const auto end = std::ranges::upper_bound(collectives, sequence, {}, sequence_of);
  return {begin, end};
}

const FlightLane* FlightGroupLanes::of(std::uint32_t rank) const {
  const auto found = std::ranges::lower_bound(lanes, rank, {}, &FlightLane::rank);
  return found == lanes.end() || found->rank != rank ? nullptr : &*found;
}

std::vector<FlightGroupLanes> flight_groups(const std::vector<FlightDump>& dumps, const FlightTexts& texts) {
  // First each dump's part: if no ranks are recorded, the members are those with operations.
  struct Part {
    const FlightDump* dump = nullptr;
    std::vector<const FlightEntry*> entries;
  };
  std::map<FlightGroupKey, std::vector<Part>> parts;
  for (const FlightDump& dump : dumps) {
    std::map<FlightTexts::Id, Part> by_name;
    for (const FlightEntry& entry : dump.entries) by_name[entry.group].entries.push_back(&entry);
    for (auto& [name, part] : by_name) {
      part.dump = &dump;
      parts[key_of(dump, texts.text_of(name))].push_back(std::move(part));
    }
  }
  std::vector<FlightGroupLanes> out;
  for (auto& [key, of] : parts) {
    FlightGroupLanes& group = out.emplace_back();
    group.name = key.first;
    std::vector<std::uint32_t> members = key.second;
    // If no ranks are recorded: for the default group all ranks up to the highest dump, for others the ranks
    // with operations.
    group.description = texts.text_of(of.front().entries.front()->description);
    if (members.empty() && group.description == "default_pg") {
      for (std::uint32_t rank = 0; rank <= dumps.back().rank; ++rank) members.push_back(rank);
    } else if (members.empty()) {
      for (const Part& part : of) members.push_back(part.dump->rank);
    }
    for (const std::uint32_t rank : members) {
      FlightLane& lane = group.lanes.emplace_back();
      lane.rank = rank;
      const auto dump = std::ranges::lower_bound(dumps, rank, {}, &FlightDump::rank);
      if (dump != dumps.end() && dump->rank == rank) lane.dump = &*dump;
    }
    for (const Part& part : of) {
      const auto lane = std::ranges::lower_bound(group.lanes, part.dump->rank, {}, &FlightLane::rank);
      // The rank used a group that does not contain it according to its own dump.
      if (lane == group.lanes.end() || lane->rank != part.dump->rank) continue;
      for (const FlightEntry* entry : part.entries)
        (entry->point_to_point ? lane->point_to_point : lane->collectives).push_back(entry);
      std::ranges::stable_sort(lane->collectives, {}, [](const FlightEntry* one) { return one->sequence; });
    }
  }
  return out;
}

FlightProgress flight_progress(const FlightLane& lane) {
  FlightProgress out;
  out.rank = lane.rank;
  out.has_dump = lane.dump != nullptr;
  out.whole = lane.dump != nullptr && is_gapless(*lane.dump) &&
              (!lane.collectives.empty() || lane.dump->from_the_begin());
  if (lane.collectives.empty()) return out;
  out.first = lane.collectives.front()->sequence;
  out.last = lane.collectives.back();
  out.issued = out.last->sequence;
  for (const FlightEntry* one : lane.collectives) {
    if (one->state == FlightState::completed || one->state == FlightState::ended)
      out.completed = one->sequence;
  }
  return out;
}

std::optional<FlightPeers> flight_peers(const FlightEntry& entry, const FlightTexts& texts) {
  // "send 0->1", "recv 1<-0", or "recv 1<-?" for any source
  std::string_view rest = texts.text_of(entry.name);
  FlightPeers out;
  out.is_send = rest.starts_with("send ");
  if (!out.is_send && !rest.starts_with("recv ")) return std::nullopt;
  rest.remove_prefix(5);
  const auto number = [&rest](std::size_t& to) {
    const auto [after, error] = std::from_chars(rest.data(), rest.data() + rest.size(), to);
    if (error != std::errc()) return false;
    rest.remove_prefix(static_cast<std::size_t>(after - rest.data()));
    return true;
  };
  std::size_t own = 0, other = 0;
  if (!number(own) || !rest.starts_with(out.is_send ? "->" : "<-")) return std::nullopt;
  rest.remove_prefix(2);
  if (!number(other) || !rest.empty()) return std::nullopt;
  out.from = out.is_send ? own : other;
  out.to = out.is_send ? other : own;
  return out;
}

std::optional<FlightDifference> pair_difference(const FlightGroupLanes& group, const FlightTexts& texts) {
  struct Pair {
    std::vector<const FlightEntry*> sends, receives;
  };
  std::map<std::pair<std::size_t, std::size_t>, Pair> pairs;
  for (std::size_t i = 0; i < group.lanes.size(); ++i) {
    for (const FlightEntry* one : group.lanes[i].point_to_point) {
      const auto peers = flight_peers(*one, texts);
      if (!peers || peers->from >= group.lanes.size() || peers->to >= group.lanes.size()) continue;
      if ((peers->is_send ? peers->from : peers->to) != i) continue;
      Pair& pair = pairs[{peers->from, peers->to}];
      (peers->is_send ? pair.sends : pair.receives).push_back(one);
    }
  }
  std::optional<FlightDifference> out;
  std::int64_t earliest = INT64_MAX;
  const auto take = [&](FlightDifference::What what, const FlightLane& from, const FlightEntry* send,
                        const FlightLane& to, const FlightEntry* receive) {
    const FlightEntry& known = send != nullptr ? *send : *receive;
    if (known.created_ns >= earliest) return;
    earliest = known.created_ns;
    out = FlightDifference{what, known.sequence, true, {{{from.rank}, send}, {{to.rank}, receive}}, {}};
    if (send == nullptr) std::swap(out->sides[0], out->sides[1]);  // the missing side last
  };
  for (const auto& [ends, pair] : pairs) {
    const FlightLane &from = group.lanes[ends.first], &to = group.lanes[ends.second];
    if (from.dump == nullptr || to.dump == nullptr) continue;
    // Messages are matched by position since the start of the run; if a buffer does not reach back that far,
    // only operations open on one end alone can be judged.
    const bool whole = flight_progress(from).whole && from.dump->from_the_begin() &&
                       flight_progress(to).whole && to.dump->from_the_begin();
    const auto is_open = [](const FlightEntry* one) { return one->is_open(); };
    if (!whole) {
      const auto send = std::ranges::find_if(pair.sends, is_open);
      const auto receive = std::ranges::find_if(pair.receives, is_open);
      const bool sends = send != pair.sends.end(), receives = receive != pair.receives.end();
      if (sends != receives)
        take(FlightDifference::What::missing, from, sends ? *send : nullptr, to,
             receives ? *receive : nullptr);
      continue;
    }
    for (std::size_t i = 0; i < std::max(pair.sends.size(), pair.receives.size()); ++i) {
      const FlightEntry* send = i < pair.sends.size() ? pair.sends[i] : nullptr;
      const FlightEntry* receive = i < pair.receives.size() ? pair.receives[i] : nullptr;
      if (send == nullptr || receive == nullptr) {
        const FlightEntry* one = send != nullptr ? send : receive;
        if (!one->is_open()) continue;  // a small message can be sent before it is received
        take(FlightDifference::What::missing, from, send, to, receive);
      } else if (texts.sizes_of(send->input_sizes).elems != texts.sizes_of(receive->output_sizes).elems) {
        take(FlightDifference::What::sizes, from, send, to, receive);
      } else if (send->input_types != receive->output_types && send->input_types != 0 &&
                 receive->output_types != 0) {
        take(FlightDifference::What::type, from, send, to, receive);
      } else {
        continue;
      }
      break;
    }
  }
  return out;
}

}  // namespace shardscope::analysis
