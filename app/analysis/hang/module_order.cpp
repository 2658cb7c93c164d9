#include "app/analysis/hang/module_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "app/analysis/spans.h"
#include "app/store/lane.h"
#include "app/store/losses.h"
#include "app/store/module_name.h"
#include "app/store/names.h"

namespace shardscope::analysis {
namespace {

using ev::EventKind;
using ev::StreamId;

struct Begun {
  std::int64_t at_ns = 0;
  std::uint8_t depth = 0;
  ModuleVisit visit;
};

constexpr std::uint32_t kRoot = 0;  // modules are numbered in pre-order

bool begins_micro_step(const ModuleVisit& visit) noexcept {
  return visit.module == kRoot && visit.pass == ev::Pass::forward;
}

/// The module whose gate the rank passed after it began its last module. The framework fetches parameters
/// between the gate and the module's begin; ranks whose orders differ wait there. nullopt if the gate's pass
/// is not certain: a forward may be part of a recomputation or an evaluation.
std::optional<ModuleVisit> module_after_gate(const store::Store& store, std::uint32_t rank,
                                             const Begun& last) {
  const auto gate = store.gate_before(rank, store::Store::kEnd);
  if (!gate || gate->at_ns <= last.at_ns || gate->id == kRoot) return std::nullopt;
  if (gate->kind == ev::GateKind::pre_forward && last.visit.pass == ev::Pass::forward)
    return ModuleVisit{last.visit.micro_step, ev::Pass::forward, gate->id, false};
  if (gate->kind == ev::GateKind::pre_backward && last.visit.pass != ev::Pass::recompute)
    return ModuleVisit{last.visit.micro_step, ev::Pass::backward, gate->id, false};
  return std::nullopt;
}

/// Where to begin the comparison: at the first micro-step that both have from its begin.
std::optional<std::pair<std::size_t, std::size_t>> first_common_visits(const std::vector<ModuleVisit>& a,
                                                                       const std::vector<ModuleVisit>& b) {
  std::map<std::uint32_t, std::size_t> in_b;  // by micro-step
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (begins_micro_step(b[i])) in_b.try_emplace(b[i].micro_step, i);
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!begins_micro_step(a[i])) continue;
    if (const auto at = in_b.find(a[i].micro_step); at != in_b.end()) return std::pair(i, at->second);
  }
  return std::nullopt;
}

struct Divergence {
  std::size_t at = 0;  ///< index in the first argument's visits
  ModuleVisit mine, others;
  [[nodiscard]] bool operator==(const Divergence&) const = default;
};

std::optional<Divergence> divergence(const std::vector<ModuleVisit>& mine,
                                     const std::vector<ModuleVisit>& other) {
  const auto begin = first_common_visits(mine, other);
  if (!begin) return std::nullopt;
  auto [at_mine, at_other] = *begin;
  for (; at_mine < mine.size() && at_other < other.size(); ++at_mine, ++at_other) {
    if (mine[at_mine] != other[at_other]) return Divergence{at_mine, mine[at_mine], other[at_other]};
  }
  return std::nullopt;
}

/// Ranks of different pipeline stages, experts or models normally run different modules.
bool run_the_same_modules(const store::Store& store) {
  if (!store.has_tables() || store.tables().models.size() > 1) return false;
  return std::ranges::none_of(store.tables().groups, [](const ev::GroupInfo& group) {
    return group.purpose == ev::GroupPurpose::pipeline || group.purpose == ev::GroupPurpose::expert;
  });
}

}  // namespace

std::string ranks_text(const std::vector<std::uint32_t>& ranks) {
  std::string out = ranks.size() == 1 ? "rank " : "ranks ";
  constexpr std::size_t kShown = 8;
  for (std::size_t i = 0; i < std::min(ranks.size(), kShown); ++i)
    out += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  if (ranks.size() > kShown) out += fmt::format(" and {} more", ranks.size() - kShown);
  return out;
}

std::vector<ModuleVisit> module_visits(const store::Store& store, std::uint32_t rank, std::int64_t from_ns) {
  std::vector<Begun> begun;
  for_each_span(store, {rank, StreamId::compute}, from_ns, store::Store::kEnd, [&](const store::Span& span) {
    // An earlier module's pass may have begun before the events read here.
    if (span.kind != EventKind::module_begin || span.begin_ns < from_ns) return;
    const auto fields = ev::as<EventKind::module_begin>(span);
    if (fields.micro_step == ev::kNoId) return;
    begun.push_back({span.begin_ns, span.depth, {fields.micro_step, fields.pass, fields.module}});
  });
  std::ranges::stable_sort(begun, [](const Begun& a, const Begun& b) {
    return std::pair(a.at_ns, a.depth) < std::pair(b.at_ns, b.depth);
  });
  std::vector<ModuleVisit> out;
  for (const Begun& one : begun) {
    if (out.empty() && !begins_micro_step(one.visit)) continue;
    out.push_back(one.visit);
  }
  if (!out.empty()) {
    if (const auto next = module_after_gate(store, rank, begun.back())) out.push_back(*next);
  }
  return out;
}

std::optional<std::uint32_t> rank_of_other_modules(const store::Store& store, std::int64_t from_ns) {
  if (store::losses_of(store).any() || !run_the_same_modules(store)) return std::nullopt;
  std::map<std::uint32_t, std::vector<ModuleVisit>> visits;  // by rank
  for (const store::RankRow& row : store.ranks()) visits[row.rank] = module_visits(store, row.rank, from_ns);
  std::optional<std::uint32_t> found;
  for (const auto& [rank, mine] : visits) {
    std::optional<Divergence> place;
    const bool alone = std::ranges::all_of(visits, [&, mine = &mine, rank = rank](const auto& other) {
      if (other.first == rank) return true;
      const std::optional<Divergence> parted = divergence(*mine, other.second);
      if (!place) place = parted;
      return parted && *parted == *place;
    });
    if (alone && place) found = rank;
  }
  return found;
}

std::string other_modules_text(const store::Store& store, std::uint32_t rank, std::int64_t from_ns) {
  if (store::losses_of(store).any() || !run_the_same_modules(store)) return {};
  const std::vector<ModuleVisit> mine = module_visits(store, rank, from_ns);
  std::optional<Divergence> found;
  std::vector<std::uint32_t> others;
  for (const store::RankRow& row : store.ranks()) {
    if (row.rank == rank || mine.empty()) continue;
    const std::optional<Divergence> parted = divergence(mine, module_visits(store, row.rank, from_ns));
    if (!parted || (found && parted->at >= found->at && *parted != *found)) continue;
    if (!found || parted->at < found->at) others.clear();
    found = parted;
    others.push_back(row.rank);
  }
  if (!found) return {};
  const auto ran = [&](const ModuleVisit& visit) {
    const std::string name = store::module_name(store, visit.module);
    const char* const verb = visit.begun ? "ran" : "came to";
    return visit.pass == found->others.pass && visit.micro_step == found->others.micro_step
               ? fmt::format("{} {}", verb, name)
               : fmt::format("{} {} ({} of micro-step {})", verb, name, ev::label_of(visit.pass),
                             visit.micro_step);
  };
  return fmt::format("In the {} of micro-step {} rank {} {} where {} {}.", ev::label_of(found->others.pass),
                     found->others.micro_step, rank, ran(found->mine), ranks_text(others),
                     ran(found->others));
}

}  // namespace shardscope::analysis
