#include "app/gui/model/rank_groups.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "app/analysis/zero_settings.h"
#include "app/gui/model/names.h"
#include "runtime/plan/zero_groups.h"

namespace shardscope::gui {
namespace {

using Ranks = std::vector<std::uint32_t>;

Ranks all_ranks(const store::Store& store) {
  Ranks out;
  for (const store::RankRow& rank : store.ranks()) out.push_back(rank.rank);
  return out;
}

RankGrouping by_node(const store::Store& store) {
  RankGrouping out{kByNode, {}};
  for (const store::RankRow& rank : store.ranks()) {
    auto known = std::ranges::find(out.groups, rank.host, &RankGroup::title);
    if (known == out.groups.end()) known = out.groups.insert(known, {rank.host, {}});
    known->ranks.push_back(rank.rank);
  }
  return out;
}

/// Numbers the groups by their first rank. A rank in several groups is placed in the first; ranks in none
/// form a group "in none".
RankGrouping numbered(std::string name, std::set<Ranks> lists, const Ranks& all) {
  RankGrouping out{std::move(name), {}};
  std::set<std::uint32_t> placed;
  for (const Ranks& list : lists) {
    RankGroup group{out.name + " " + std::to_string(out.groups.size()), {}};
    for (const std::uint32_t rank : list)
      if (std::ranges::binary_search(all, rank) && placed.insert(rank).second) group.ranks.push_back(rank);
    if (!group.ranks.empty()) out.groups.push_back(std::move(group));
  }
  RankGroup rest{"in none", {}};
  for (const std::uint32_t rank : all)
    if (!placed.contains(rank)) rest.ranks.push_back(rank);
  if (!rest.ranks.empty() && !out.groups.empty()) out.groups.push_back(std::move(rest));
  return out;
}

std::string name_of(const ev::GroupInfo& group) {
  switch (group.purpose) {
    case ev::GroupPurpose::shard:
      return "shard group";
    case ev::GroupPurpose::replica:
      return "replica group";
    case ev::GroupPurpose::other:
      return group.name.empty() ? "other group" : group.name;
    default:
      return std::string(word(group.purpose)) + " group";
  }
}

/// Process groups reported by the ranks.
void described(const store::Store& store, std::map<std::string, std::set<Ranks>>& out) {
  for (const store::RankRow& row : store.ranks()) {
    const ev::RunTables* const own = store.rank_tables(row.rank);
    if (own == nullptr) continue;
    for (const ev::GroupInfo& group : own->groups) {
      if (group.purpose != ev::GroupPurpose::world && group.ranks.size() > 1)
        out[name_of(group)].insert(group.ranks);
    }
  }
}

/// Groups derived from the settings of hpZ and MiCS, within each copy of the model.
void configured(const store::Store& store, std::map<std::string, std::set<Ranks>>& out) {
  if (!store.has_tables() || store.tables().stage != 3) return;
  const plan::ZeroConfig zero = analysis::zero_of(store.tables());
  for (const store::RankRow& row : store.ranks()) {
    const ev::RunTables* const own = store.rank_tables(row.rank);
    if (own == nullptr) continue;
    const Ranks copy = analysis::ranks_of_copy(*own);
    const auto place = std::ranges::find(copy, row.rank);
    if (place == copy.end()) continue;
    plan::ZeroGroups groups;
    try {
      groups = plan::make_zero_groups(zero, analysis::topology_of(*own),
                                      static_cast<std::uint32_t>(place - copy.begin()));
    } catch (const std::invalid_argument&) {
      return;  // settings that the run itself would have rejected
    }
    const auto add = [&](const char* name, const Ranks& places) {
      Ranks ranks;
      for (const std::uint32_t one : places)
        if (one < copy.size()) ranks.push_back(copy[one]);
      if (ranks.size() > 1) out[name].insert(std::move(ranks));
    };
    add("hpZ group", groups.secondary);
    add("MiCS shard group", groups.shard);
    add("MiCS replicas", groups.replica);
  }
}

}  // namespace

std::vector<RankGrouping> rank_groupings(const store::Store& store) {
  const Ranks all = all_ranks(store);
  std::map<std::string, std::set<Ranks>> lists;
  described(store, lists);
  configured(store, lists);
  std::vector<RankGrouping> out{by_node(store)};
  for (auto& [name, of] : lists) out.push_back(numbered(name, std::move(of), all));
  std::erase_if(out, [](const RankGrouping& one) { return one.groups.size() < 2; });
  return out;
}

const std::vector<RankGrouping>& RankGroupings::of(std::uint64_t run, const store::Store& store) {
  const bool same = run_ == run;
  if (same && revision_ == store.revision()) return all_;
  run_ = run;
  revision_ = store.revision();
  std::size_t described = 0;
  for (const store::RankRow& row : store.ranks())
    described += (store.rank_tables(row.rank) != nullptr ? 1U : 0U) + (row.host.empty() ? 0U : 1U);
  if (!same || ranks_ != store.ranks().size() || described_ != described) {
    ranks_ = store.ranks().size();
    described_ = described;
    all_ = rank_groupings(store);
  }
  return all_;
}

std::string numbers_text(const std::vector<std::uint32_t>& ranks) {
  std::string out;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    out += (out.empty() ? "" : ", ") + std::to_string(ranks[i]);
    if (last > i) out += " to " + std::to_string(ranks[last]);
    i = last + 1;
  }
  return out;
}

}  // namespace shardscope::gui
