#include "app/gui/model/map_rows.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "instrumentation/capability.h"

namespace shardscope::gui {
namespace {

constexpr float kHeading = 18, kLowest = 4, kLowGap = 1, kFullest = 56, kFull = 22, kFullGap = 4;
constexpr float kNumber = 14;  ///< height of a rank's number

/// Ranks of the run's world that no group has, as they have sent nothing.
std::vector<std::uint32_t> not_connected(const store::Store& store, const TimelineOptions& options) {
  std::set<std::uint32_t> known;
  for (const store::RankRow& rank : store.ranks()) known.insert(rank.rank);
  std::vector<std::uint32_t> out;
  if (!store.has_tables() || options.shown) return out;
  for (std::uint32_t rank = 0; rank < store.tables().world; ++rank) {
    if (!known.contains(rank)) out.push_back(rank);
  }
  return out;
}

}  // namespace

const MapRow* MapRows::of(std::uint32_t rank) const noexcept {
  const auto at = rank == ev::kNoId ? rows.end() : std::ranges::find(rows, rank, &MapRow::rank);
  return at == rows.end() ? nullptr : &*at;
}

MapRows map_rows(const store::Store& store, const TimelineOptions& options, float room) {
  std::vector<RankGroup> groups = shown_groups(store, options);
  if (const std::vector<std::uint32_t> others = not_connected(store, options); !others.empty()) {
    if (groups.empty()) groups.emplace_back();
    groups.back().ranks.insert(groups.back().ranks.end(), others.begin(), others.end());
  }
  std::size_t ranks = 0;
  for (const RankGroup& group : groups) ranks += group.ranks.size();
  const auto count = static_cast<float>(std::max<std::size_t>(ranks, 1));
  const float headings = groups.size() > 1 ? kHeading * static_cast<float>(groups.size()) : 0;
  const float each = std::floor((room - headings) / count);
  const bool low = options.rank_height == RankHeight::heat ||
                   (options.rank_height == RankHeight::automatic && each < kFull + kFullGap);
  const float gap = low ? kLowGap : kFullGap;
  const float height = low ? std::clamp(each - gap, kLowest, kFull) : std::clamp(each - gap, kFull, kFullest);
  const auto every = static_cast<std::size_t>(std::ceil(kNumber / (height + gap)));
  MapRows out;
  for (const RankGroup& group : groups) {
    if (headings > 0) {
      out.rows.push_back({ev::kNoId, group.title, out.height, kHeading, true});
      out.height += kHeading;
    }
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      out.rows.push_back({group.ranks[i], {}, out.height, height, i % every == 0});
      out.height += height + gap;
    }
  }
  return out;
}

std::pair<std::string, std::string> no_partition(const store::Store& store) {
  if (store.has_tables()) {
    for (const ev::Capability needed : {ev::Capability::layout, ev::Capability::modules}) {
      if (auto why = ev::why_not_recorded(store.tables(), needed)) return {"No partition is recorded", *why};
    }
  }
  return {"No parameters known yet", "The partition appears as soon as a rank has sent its tables."};
}

}  // namespace shardscope::gui
