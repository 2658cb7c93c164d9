#include "app/analysis/hang/issued_collectives.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "app/analysis/communication.h"
#include "app/analysis/spans.h"
#include "app/store/lane.h"
#include "app/store/module_name.h"

namespace shardscope::analysis {
namespace {

using ev::EventKind;
using ev::StreamId;

struct Names {
  std::map<std::uint32_t, std::uint32_t> gather_module;  ///< module for which a gather was issued
  std::map<std::uint32_t, std::vector<std::uint32_t>> bucket_params;
};

/// Reads names of collectives, and collectives that were issued but not begun. The latter have no recorded
/// group: if groups are described, their numbers have no known position.
void read_instants(const store::Store& store, std::int64_t from_ns, IssuedCollectives& out, Names& names) {
  const ev::RunTables* own = store.rank_tables(out.rank);
  const bool one_order = own == nullptr || own->groups.empty();
  store.for_each_instant(out.rank, from_ns, store::Store::kEnd, [&](const ev::Event& event) {
    switch (event.kind) {
      case EventKind::collective_submitted: {
        if (!one_order) break;
        const auto fields = ev::as<EventKind::collective_submitted>(event);
        if (fields.sequence >> 24U != 0) break;  // in a group without a description
        Issue& issue = out.issues[fields.sequence];
        issue.named = {fields.op, fields.sequence, {}, fields.elems, fields.bytes, {}, 0};
        issue.key = fields.sequence;
        issue.id = fields.group;
        issue.at_ns = issue.issued_ns = static_cast<std::int64_t>(event.ticks);
        break;
      }
      case EventKind::prefetch_issued: {
        const auto fields = ev::as<EventKind::prefetch_issued>(event);
        names.gather_module[fields.gather] = fields.module;
        break;
      }
      case EventKind::fetch_decision: {
        const auto fields = ev::as<EventKind::fetch_decision>(event);
        if (fields.gather != ev::kNoId) names.gather_module.try_emplace(fields.gather, fields.module);
        break;
      }
      case EventKind::param_status: {
        const auto fields = ev::as<EventKind::param_status>(event);
        if (fields.gather != ev::kNoId) names.gather_module.try_emplace(fields.gather, fields.module);
        break;
      }
      case EventKind::bucket_add: {
        const auto fields = ev::as<EventKind::bucket_add>(event);
        names.bucket_params[fields.bucket].push_back(fields.param);
        break;
      }
      default:
        break;
    }
  });
}

bool between_two(ev::CollectiveOp op) noexcept {
  return op == ev::CollectiveOp::send || op == ev::CollectiveOp::receive;
}

/// Sets the module for which it gathers, or the first one whose gradients it reduces.
void name_module(const store::Store& store, const Names& names, Issue& issue) {
  if (issue.id == ev::kNoId) return;
  if (issue.named.op == ev::CollectiveOp::all_gather) {
    if (const auto at = names.gather_module.find(issue.id); at != names.gather_module.end()) {
      issue.named.module = store::module_name(store, at->second);
      return;
    }
  }
  const auto bucket = names.bucket_params.find(issue.id);
  if (bucket == names.bucket_params.end() || bucket->second.front() >= store.tables().params.size()) return;
  const auto& modules = store.tables().params[bucket->second.front()].modules;
  if (modules.empty()) return;
  issue.named.module = store::module_name(store, modules.front());
  issue.named.more_params = static_cast<std::uint32_t>(bucket->second.size() - 1);
}

bool span_failed(const store::Span& span) {
  return ev::as<EventKind::collective_begin>(span).code.ended_by_error();
}

/// When a rank is gone the library ends the others' collectives with an error: these ranks were still waiting
/// in them, unless they completed a later one. A collective of another group begun while they waited does not
/// count: groups have separate orders.
void open_failed(IssuedCollectives& rank) {
  std::int64_t completed_ns = store::Store::kBegin;
  for (const auto& [key, issue] : rank.issues) {
    if (issue.begun && !issue.open && issue.failed_ns == 0)
      completed_ns = std::max(completed_ns, issue.at_ns);
  }
  for (auto& [key, issue] : rank.issues) {
    if (issue.failed_ns != 0 && issue.failed_ns > completed_ns) issue.open = true;
  }
}

/// Ranks known to be in it. None for a smaller group without a description, and for a send or receive among
/// more than two ranks, whose other end is not recorded. `known`: the lists of this rank's groups so far.
SharedRanks members_of(const store::Store& store, std::uint32_t rank, const store::Span& span,
                       const SharedRanks& world, std::vector<SharedRanks>& known) {
  const auto ranks = collective_ranks(store, rank, span);
  if (!ranks) return nullptr;
  if (between_two(ev::as<EventKind::collective_begin>(span).op) && ranks->count > 2) return nullptr;
  if (ranks->count == world->size()) return world;
  std::vector<std::uint32_t> list = ranks->list();
  if (list.empty()) return nullptr;
  const auto same = std::ranges::find_if(known, [&](const SharedRanks& one) { return *one == list; });
  if (same != known.end()) return *same;
  return known.emplace_back(std::make_shared<const std::vector<std::uint32_t>>(std::move(list)));
}

using RankIssue = std::pair<std::uint32_t, const Issue*>;

/// Issues at one position that should be the same collective: for each set of members seen there, the issues
/// of its members. Disjoint groups have the same positions, and may differ from each other.
std::vector<std::vector<RankIssue>> alike_at(const std::vector<IssuedCollectives>& ranks, std::uint64_t key) {
  const auto differ = [](const auto* a, const auto* b) { return *a < *b; };
  std::vector<RankIssue> known;
  std::set<const std::vector<std::uint32_t>*, decltype(differ)> groups(differ);
  for (const IssuedCollectives& rank : ranks) {
    const auto at = rank.issues.find(key);
    if (at == rank.issues.end() || at->second.members().empty()) continue;
    known.emplace_back(rank.rank, &at->second);
    groups.insert(&at->second.members());
  }
  if (groups.size() == 1) return {std::move(known)};
  std::vector<std::vector<RankIssue>> out;
  for (const auto* members : groups) {
    std::vector<RankIssue>& of_group = out.emplace_back();
    for (const std::uint32_t member : *members) {
      const auto at = std::ranges::lower_bound(known, member, {}, &RankIssue::first);
      if (at != known.end() && at->first == member) of_group.push_back(*at);
    }
  }
  return out;
}

using Sides = std::map<std::tuple<ev::CollectiveOp, std::int64_t, std::string>, IssueDifference::Side>;

/// Groups issues at one position by operation, bytes and module: more than one side is a difference. The
/// module only counts for gathers, if it is known on every rank: ranks that gather for different modules in
/// one collective of the same size do not hang, but compute with wrong weights.
Sides sides_of(const std::vector<RankIssue>& issues) {
  const bool modules = std::ranges::all_of(issues, [](const auto& one) {
    return one.second->named.op == ev::CollectiveOp::all_gather && !one.second->named.module.empty();
  });
  Sides sides;
  for (const auto& [rank, issue] : issues) {
    const NamedCollective& named = issue->named;
    IssueDifference::Side& side =
        sides[may_differ(named.op) ? std::tuple(ev::CollectiveOp::send, std::int64_t{0}, std::string())
                                   : std::tuple(named.op, named.bytes, modules ? named.module : "")];
    side.at_ns = side.ranks.empty() ? issue->at_ns : std::min(side.at_ns, issue->at_ns);
    side.ranks.push_back(rank);
    side.collective = named;
    side.module = named.module;
  }
  return sides;
}

IssueDifference difference_of(Sides sides) {
  IssueDifference out;
  const auto& first = sides.begin()->first;
  const auto all = [&](auto alike) { return std::ranges::all_of(sides, alike); };
  if (!all([&](const auto& one) { return std::get<0>(one.first) == std::get<0>(first); }))
    out.what = "operation";
  else if (!all([&](const auto& one) { return std::get<1>(one.first) == std::get<1>(first); }))
    out.what = "size";
  else
    out.what = "module";
  for (auto& [what, side] : sides) out.sides.push_back(std::move(side));
  return out;
}

}  // namespace

bool IssuedCollectives::is_past(std::uint64_t key) const {
  const auto later = issues.upper_bound(key);
  return !issues.contains(key) && later != issues.end() && in_one_order(key, later->first);
}

bool may_differ(ev::CollectiveOp op) noexcept {
  return between_two(op) || op == ev::CollectiveOp::all_to_all || op == ev::CollectiveOp::gather ||
         op == ev::CollectiveOp::scatter;
}

const std::vector<std::uint32_t>& Issue::members() const {
  static const std::vector<std::uint32_t> kUnknown;
  return known_members == nullptr ? kUnknown : *known_members;
}

SharedRanks all_ranks(const store::Store& store) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t rank = 0; rank < (store.has_tables() ? store.tables().world : 0); ++rank)
    out.push_back(rank);
  return std::make_shared<const std::vector<std::uint32_t>>(std::move(out));
}

std::int64_t last_steps_from(const store::Store& store) {
  const auto steps = store.steps();
  constexpr std::size_t kSteps = 2;
  return steps.size() <= kSteps ? store::Store::kBegin : steps[steps.size() - kSteps].begin_ns;
}

IssuedCollectives issued_collectives(const store::Store& store, std::uint32_t rank, std::int64_t from_ns,
                                     const SharedRanks& world) {
  IssuedCollectives out;
  std::vector<SharedRanks> groups;
  Names names;
  bool only_world = true;
  out.rank = rank;
  read_instants(store, from_ns, out, names);
  for (const StreamId stream : {StreamId::gather, StreamId::reduce, StreamId::compute}) {
    for_each_span(store, {rank, stream}, from_ns, store::Store::kEnd, [&](const store::Span& span) {
      if (span.kind != EventKind::collective_begin) return;
      const auto fields = ev::as<EventKind::collective_begin>(span);
      const ev::GroupInfo* group = group_of(store, rank, span);
      const std::uint64_t key = place_in_group(store, rank, span);
      Issue& issue = out.issues[key];
      issue.key = key;
      issue.named = {fields.op,
                     fields.sequence,
                     group != nullptr ? group->name : std::string(),
                     fields.elems,
                     fields.bytes,
                     {},
                     0};
      issue.id = fields.group;
      issue.at_ns = span.begin_ns;
      if (issue.issued_ns == 0) issue.issued_ns = span.begin_ns;
      issue.begun = true;
      issue.open = span.end_ns == store::kOpen;
      issue.failed_ns = !issue.open && span_failed(span) ? span.end_ns : 0;
      issue.known_members = members_of(store, rank, span, world, groups);
      only_world = only_world && (between_two(fields.op) || issue.known_members == world);
    });
  }
  // A collective that has not begun has no group: assume all ranks if all others were of all ranks.
  for (auto& [key, issue] : out.issues) {
    if (!issue.begun && only_world && !between_two(issue.named.op)) issue.known_members = world;
  }
  open_failed(out);
  for (auto& [key, issue] : out.issues) name_module(store, names, issue);
  return out;
}

std::optional<IssueDifference> first_difference(const std::vector<IssuedCollectives>& ranks) {
  std::map<std::uint64_t, std::int64_t> first_at;  // by position: when the first rank issued it
  for (const IssuedCollectives& rank : ranks) {
    for (const auto& [key, issue] : rank.issues) {
      const auto [at, added] = first_at.try_emplace(key, issue.issued_ns);
      if (!added) at->second = std::min(at->second, issue.issued_ns);
    }
  }
  std::optional<IssueDifference> found;
  std::int64_t found_ns = 0;
  for (const auto& [key, at_ns] : first_at) {
    if (found && at_ns >= found_ns) continue;
    for (const std::vector<RankIssue>& issues : alike_at(ranks, key)) {
      Sides sides = sides_of(issues);
      if (sides.size() < 2) continue;
      found = difference_of(std::move(sides));
      found_ns = at_ns;
      break;
    }
  }
  return found;
}

std::optional<IssueDifference> never_issued(const std::vector<IssuedCollectives>& ranks, const Issue& issue) {
  if (issue.members().empty()) return std::nullopt;
  IssueDifference out;
  out.what = "never issued";
  IssueDifference::Side came, missing;
  came.collective = issue.named;
  came.module = issue.named.module;
  for (const IssuedCollectives& rank : ranks) {
    if (!std::ranges::binary_search(issue.members(), rank.rank)) continue;
    const bool issued = rank.issues.contains(issue.key) || rank.is_past(issue.key);
    (issued ? came : missing).ranks.push_back(rank.rank);
  }
  if (missing.ranks.empty() || came.ranks.empty()) return std::nullopt;
  out.sides = {came, missing};
  return out;
}

}  // namespace shardscope::analysis
