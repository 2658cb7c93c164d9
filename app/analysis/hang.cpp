#include "app/analysis/hang.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "app/analysis/communication.h"
#include "app/analysis/foreign_json.h"
#include "app/analysis/quantity_text.h"
#include "app/analysis/spans.h"
#include "app/store/lane.h"
#include "app/store/module_name.h"
#include "app/store/names.h"
#include "app/store/rank_end.h"

namespace shardscope::analysis {
namespace {

using ev::EventKind;
using ev::StreamId;

/// One collective of one rank, issued or begun.
struct Issue {
  NamedCollective named;
  std::uint64_t key = 0;         ///< alike on every rank whatever the operation: place in its group's order
  std::uint32_t id = ev::kNoId;  ///< of the gather or bucket
  std::int64_t at_ns = 0;
  bool begun = false, open = false;
  std::vector<std::uint32_t> members;
};

/// What one rank did lately: from the begin of its last steps on.
struct Lately {
  std::uint32_t rank = 0;
  std::map<std::uint64_t, Issue> issues;                 ///< by key
  std::map<std::uint32_t, std::uint32_t> gather_module;  ///< module that a gather is for
  std::map<std::uint32_t, std::vector<std::uint32_t>> bucket_params;
};

std::vector<std::uint32_t> all_ranks(const store::Store& store) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t rank = 0; rank < (store.has_tables() ? store.tables().world : 0); ++rank)
    out.push_back(rank);
  return out;
}

/// The last two steps: what ranks compare is there, and reading it costs the same however long the run is.
std::int64_t compare_from(const store::Store& store) {
  const auto steps = store.steps();
  constexpr std::size_t kSteps = 2;
  return steps.size() <= kSteps ? store::Store::kBegin : steps[steps.size() - kSteps].begin_ns;
}

void read_instants(const store::Store& store, std::int64_t from_ns, Lately& out) {
  store.for_each_instant(out.rank, from_ns, store::Store::kEnd, [&](const ev::Event& event) {
    switch (event.kind) {
      case EventKind::collective_submitted: {
        const auto fields = ev::as<EventKind::collective_submitted>(event);
        Issue& issue = out.issues[fields.sequence];
        issue.named = {fields.op, fields.sequence, {}, fields.elems, fields.bytes, {}, 0};
        issue.key = fields.sequence;
        issue.id = fields.group;
        issue.at_ns = static_cast<std::int64_t>(event.ticks);
        break;
      }
      case EventKind::prefetch_issued: {
        const auto fields = ev::as<EventKind::prefetch_issued>(event);
        out.gather_module[fields.gather] = fields.module;
        break;
      }
      case EventKind::fetch_decision: {
        const auto fields = ev::as<EventKind::fetch_decision>(event);
        if (fields.gather != ev::kNoId) out.gather_module.try_emplace(fields.gather, fields.module);
        break;
      }
      case EventKind::param_status: {
        const auto fields = ev::as<EventKind::param_status>(event);
        if (fields.gather != ev::kNoId) out.gather_module.try_emplace(fields.gather, fields.module);
        break;
      }
      case EventKind::bucket_add: {
        const auto fields = ev::as<EventKind::bucket_add>(event);
        out.bucket_params[fields.bucket].push_back(fields.param);
        break;
      }
      default:
        break;
    }
  });
}

Lately lately(const store::Store& store, std::uint32_t rank, std::int64_t from_ns,
              const std::vector<std::uint32_t>& everybody) {
  Lately out;
  out.rank = rank;
  read_instants(store, from_ns, out);
  for (const StreamId stream : {StreamId::gather, StreamId::reduce, StreamId::compute}) {
    for_each_span(store, {rank, stream}, from_ns, store::Store::kEnd, [&](const store::Span& span) {
      if (span.kind != EventKind::collective_begin) return;
      const auto fields = ev::as<EventKind::collective_begin>(span);
      const ev::GroupInfo* group = group_of(store, rank, span);
      // Without the operation, which is what may differ.
      std::uint64_t key = fields.sequence;
      if (group != nullptr) {
        for (const char c : group->name) key = key * 1099511628211U + static_cast<unsigned char>(c);
        for (const std::uint32_t member : group->ranks) key = key * 1099511628211U + member;
        key = key << 24U | (fields.sequence & 0xFFFFFFU);
      }
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
      issue.begun = true;
      issue.open = span.end_ns == store::kOpen;
      // A smaller communicator that is not described: who is in it is not known.
      issue.members = group != nullptr                                  ? group->ranks
                      : ranks_of(store, rank, span) == everybody.size() ? everybody
                                                                        : std::vector<std::uint32_t>();
    });
  }
  for (auto& [key, issue] : out.issues) {
    if (issue.id == ev::kNoId) continue;
    if (const auto at = out.gather_module.find(issue.id);
        at != out.gather_module.end() && issue.named.op == ev::CollectiveOp::all_gather) {
      issue.named.module = store::module_name(store, at->second);
    } else if (const auto bucket = out.bucket_params.find(issue.id);
               bucket != out.bucket_params.end() && bucket->second.front() < store.tables().params.size()) {
      const auto& modules = store.tables().params[bucket->second.front()].modules;
      if (modules.empty()) continue;
      issue.named.module = store::module_name(store, modules.front());
      issue.named.more_params = static_cast<std::uint32_t>(bucket->second.size() - 1);
    }
  }
  return out;
}

/// The innermost span of a lane that has not ended.
std::optional<store::Span> open_span(const store::Store& store, store::LaneId lane, std::int64_t from_ns) {
  std::optional<store::Span> found;
  for_each_span(store, lane, from_ns, store::Store::kEnd, [&](const store::Span& span) {
    if (span.end_ns == store::kOpen && (!found || span.depth >= found->depth)) found = span;
  });
  return found;
}

std::string doing(const store::Store& store, const store::Span& span) {
  switch (span.kind) {
    case EventKind::module_begin: {
      const auto fields = ev::as<EventKind::module_begin>(span);
      return fmt::format("in {} ({})", store::module_name(store, fields.module), ev::label_of(fields.pass));
    }
    case EventKind::phase_begin:
      return fmt::format("in the phase {}", ev::label_of(ev::as<EventKind::phase_begin>(span).phase));
    case EventKind::data_wait_begin:
      return "waiting for its data";
    case EventKind::optimizer_begin:
      return "in the optimizer";
    case EventKind::fetch_wait_begin:
      return fmt::format("waiting for the parameters of {}",
                         store::module_name(store, ev::as<EventKind::fetch_wait_begin>(span).module));
    case EventKind::reduce_wait_begin:
      return "waiting for a reduction";
    case EventKind::paused_begin:
      return "held at a gate";
    default:
      return std::string("in ") + ev::name_of(span.kind);
  }
}

std::string last_gate(const store::Store& store, std::uint32_t rank) {
  const auto gate = store.gate_before(rank, store::Store::kEnd);
  if (!gate) return {};
  const bool module = gate->kind == ev::GateKind::pre_forward || gate->kind == ev::GateKind::post_forward ||
                      gate->kind == ev::GateKind::pre_backward || gate->kind == ev::GateKind::post_backward;
  return module ? fmt::format("{} of {}", ev::label_of(gate->kind), store::module_name(store, gate->id))
                : fmt::format("{} {}", ev::label_of(gate->kind), gate->id);
}

Standing standing_of(const store::Store& store, const store::RankRow& row, const Lately& known,
                     std::int64_t from_ns) {
  Standing out;
  out.rank = row.rank;
  out.last_event_ns = row.last_ns;
  out.gate = last_gate(store, row.rank);
  out.collectives = known.issues.size();
  const store::RankEnd end = store::rank_end(store, row);
  if (store::is_failure(end.how)) {
    out.how = Standing::How::gone;
    out.since_ns = end.at_ns;
    const std::string text = store::text_of(end);
    const std::size_t was = text.find("was "), failed = text.find("failed");
    out.doing = was != std::string::npos      ? text.substr(was)
                : failed != std::string::npos ? text.substr(failed)
                                              : "is gone";
  } else if (end.how == store::RankEnd::How::finished) {
    out.how = Standing::How::ended;
    out.since_ns = end.at_ns;
    out.doing = "has ended, with code 0";
  }
  for (const auto& [key, issue] : known.issues) {
    if (!issue.open || (out.collective && issue.at_ns >= out.since_ns)) continue;
    out.collective = issue.named;
    if (out.how == Standing::How::between) out.since_ns = issue.at_ns;
  }
  if (out.how != Standing::How::between) return out;
  const auto host = open_span(store, {row.rank, StreamId::host}, from_ns);
  const auto compute = open_span(store, {row.rank, StreamId::compute}, from_ns);
  if (host && host->kind == EventKind::paused_begin) {
    out.how = Standing::How::paused;
    out.doing = doing(store, *host);
    out.since_ns = host->begin_ns;
    return out;
  }
  if (compute) out.doing = doing(store, *compute);
  if (out.collective) {
    out.how = Standing::How::in_collective;
    return out;
  }
  if (!compute) {
    out.since_ns = row.last_ns;
    out.doing = host && host->kind == EventKind::step_begin ? "between two modules" : "between two steps";
    return out;
  }
  out.how = store::is_wait(compute->kind) || compute->kind == EventKind::data_wait_begin
                ? Standing::How::waiting
                : Standing::How::working;
  out.since_ns = compute->begin_ns;
  return out;
}

std::string ranks_text(const std::vector<std::uint32_t>& ranks) {
  std::string out = ranks.size() == 1 ? "rank " : "ranks ";
  constexpr std::size_t kShown = 8;
  for (std::size_t i = 0; i < std::min(ranks.size(), kShown); ++i)
    out += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  if (ranks.size() > kShown) out += fmt::format(" and {} more", ranks.size() - kShown);
  return out;
}

/// Where the orders part: the lowest place at which two ranks have different collectives.
/// Of a place in a group's order, what each rank issued there: the sides are what differs. A module counts
/// in gathers where every rank's is known: ranks that gather parameters of different modules in one
/// collective of the same size do not stand still, they compute with each other's weights.
std::map<std::tuple<ev::CollectiveOp, std::int64_t, std::string>, IssueDifference::Side> sides_of(
    const std::vector<Lately>& ranks, std::uint64_t key) {
  std::vector<std::pair<std::uint32_t, const Issue*>> issues;
  for (const Lately& rank : ranks) {
    if (const auto at = rank.issues.find(key); at != rank.issues.end())
      issues.emplace_back(rank.rank, &at->second);
  }
  const bool modules = std::ranges::all_of(issues, [](const auto& one) {
    return one.second->named.op == ev::CollectiveOp::all_gather && !one.second->named.module.empty();
  });
  std::map<std::tuple<ev::CollectiveOp, std::int64_t, std::string>, IssueDifference::Side> sides;
  for (const auto& [rank, issue] : issues) {
    const NamedCollective& named = issue->named;
    // What each rank gives to a collective to or from one rank may differ.
    const bool alike = named.op == ev::CollectiveOp::send || named.op == ev::CollectiveOp::receive ||
                       named.op == ev::CollectiveOp::all_to_all || named.op == ev::CollectiveOp::gather ||
                       named.op == ev::CollectiveOp::scatter;
    IssueDifference::Side& side =
        sides[alike ? std::tuple(ev::CollectiveOp::send, std::int64_t{0}, std::string())
                    : std::tuple(named.op, named.bytes, modules ? named.module : "")];
    side.ranks.push_back(rank);
    side.collective = named;
    side.module = named.module;
  }
  return sides;
}

std::optional<IssueDifference> first_difference(const std::vector<Lately>& ranks) {
  std::set<std::uint64_t> keys;
  for (const Lately& rank : ranks) {
    for (const auto& [key, issue] : rank.issues) keys.insert(key);
  }
  for (const std::uint64_t key : keys) {
    auto sides = sides_of(ranks, key);
    if (sides.size() < 2) continue;
    IssueDifference out;
    const auto& [op, bytes, module] = sides.begin()->first;
    const auto all = [&](auto alike) { return std::ranges::all_of(sides, alike); };
    out.what = !all([&](const auto& one) { return std::get<0>(one.first) == op; })      ? "operation"
               : !all([&](const auto& one) { return std::get<1>(one.first) == bytes; }) ? "size"
                                                                                        : "module";
    for (auto& [what, side] : sides) out.sides.push_back(std::move(side));
    return out;
  }
  return std::nullopt;
}

/// Ranks that did not come to what others are in, although the same place of theirs is known.
std::optional<IssueDifference> never_issued(const std::vector<Lately>& ranks, const Issue& issue) {
  IssueDifference out;
  out.what = "never issued";
  IssueDifference::Side came, missing;
  came.collective = issue.named;
  came.module = issue.named.module;
  for (const Lately& rank : ranks) {
    const bool issued = rank.issues.contains(issue.key);
    (issued ? came : missing).ranks.push_back(rank.rank);
  }
  if (missing.ranks.empty() || came.ranks.empty()) return std::nullopt;
  out.sides = {came, missing};
  return out;
}

bool is_over(const Standing& one) {
  return one.how == Standing::How::gone || one.how == Standing::How::ended;
}

/// Fills in whom each rank waits for: of its oldest open collective that lacks somebody, the members that
/// have not begun it. Ranks that are over wait for nobody, unless all are: then they did when they were
/// ended. By rank, how many miss it; `oldest`: the first of these collectives.
std::map<std::uint32_t, std::uint32_t> find_waits(const std::vector<Lately>& recent,
                                                  std::vector<Standing>& ranks, const Issue*& oldest) {
  std::map<std::uint32_t, std::uint32_t> missed;
  const bool all_over = std::ranges::all_of(ranks, is_over);
  for (std::size_t index = 0; index < recent.size(); ++index) {
    Standing& standing = ranks[index];
    if (is_over(standing) && !all_over) continue;
    const Issue* own = nullptr;
    for (const auto& [key, issue] : recent[index].issues) {
      if (!issue.open || (own != nullptr && issue.at_ns >= own->at_ns)) continue;
      std::vector<std::uint32_t> absent;
      for (const std::uint32_t member : issue.members) {
        const auto other = std::ranges::find(recent, member, &Lately::rank);
        const auto came =
            other == recent.end() ? decltype(other->issues)::const_iterator() : other->issues.find(key);
        if (other == recent.end() || came == other->issues.end() || !came->second.begun ||
            came->second.named.op != issue.named.op)
          absent.push_back(member);
      }
      if (absent.empty()) continue;
      own = &issue;
      standing.waits_for = absent;
    }
    if (own == nullptr) continue;
    for (const std::uint32_t rank : standing.waits_for) ++missed[rank];
    if (oldest == nullptr || own->at_ns < oldest->at_ns) oldest = own;
  }
  return missed;
}

/// The rank that most others miss; of several the one that waits for nobody itself.
std::uint32_t most_missed(const std::map<std::uint32_t, std::uint32_t>& missed,
                          const std::vector<Standing>& ranks) {
  std::uint32_t found = ev::kNoId, most = 0;
  for (const auto& [rank, count] : missed) {
    const auto standing = std::ranges::find(ranks, rank, &Standing::rank);
    const bool waits = standing != ranks.end() && !standing->waits_for.empty();
    const std::uint32_t weight = count * 2 + (waits ? 0 : 1);
    if (weight <= most) continue;
    most = weight;
    found = rank;
  }
  return found;
}

/// Of several ranks that are gone, the one that failed first.
std::string nobody_waits(const store::Store& store, const std::vector<Standing>& ranks) {
  const std::optional<store::RankEnd> first = store::first_failure(store);
  auto gone = first ? std::ranges::find(ranks, first->rank, &Standing::rank) : ranks.end();
  if (gone == ranks.end()) gone = std::ranges::find(ranks, Standing::How::gone, &Standing::how);
  if (std::ranges::find(ranks, Standing::How::paused, &Standing::how) != ranks.end())
    return "The run is paused: its ranks are held at a gate.";
  return gone != ranks.end()
             ? fmt::format("Rank {} {}; no rank waits in a collective.", gone->rank, gone->doing)
             : "No rank waits in a collective for one that has not come.";
}

/// "Ranks 0, 1 wait in all-gather #12 for rank 2, since 1.2 s (at least 3 s). Rank 2 never came to it: it is
/// ..."
std::string who_waits(const Hang& hang, const Issue& oldest, std::int64_t now_ns) {
  std::vector<std::uint32_t> waiting;
  for (const Standing& one : hang.ranks) {
    if (!one.waits_for.empty()) waiting.push_back(one.rank);
  }
  const auto wanted = std::ranges::find_if(hang.ranks, [&](const Standing& one) {
    return std::ranges::find(one.waits_for, hang.culprit) != one.waits_for.end();
  });
  std::string text = fmt::format("{} {} in {} for {}, since {} (at least {}).", ranks_text(waiting),
                                 waiting.size() == 1 ? "waits" : "wait", oldest.named.text(),
                                 ranks_text(wanted->waits_for), store::seconds_text(oldest.at_ns),
                                 time_text(std::max<std::int64_t>(now_ns - oldest.at_ns, 0)));
  text[0] = 'R';
  const auto culprit = std::ranges::find(hang.ranks, hang.culprit, &Standing::rank);
  if (culprit == hang.ranks.end())
    return text + fmt::format(" Nothing was recorded of rank {}.", hang.culprit);
  const std::string now =
      !culprit->waits_for.empty() && culprit->collective
          ? fmt::format("waits in {}", culprit->collective->text())
      : is_over(*culprit)
          ? culprit->doing
          : fmt::format("is {}", culprit->doing.empty() ? "not in any recorded span" : culprit->doing);
  text += fmt::format(" Rank {} never came to it: it {}", hang.culprit, now);
  if (!culprit->gate.empty()) text += fmt::format("; the last gate that it passed is {}", culprit->gate);
  return text + fmt::format(", its last event is of {}.", store::seconds_text(culprit->last_event_ns));
}

constexpr const char* kGoesOn = "The run goes on: events come in.";

/// "The ranks issued different collectives (size): rank 0 all-gather #3 ...; rank 1 ...": after the rest.
void add_difference(Hang& out) {
  if (!out.difference || out.difference->what == "never issued") return;
  out.text += fmt::format(" The ranks issued different collectives ({}):", out.difference->what);
  for (const IssueDifference::Side& side : out.difference->sides)
    out.text +=
        fmt::format(" {} {};", ranks_text(side.ranks), side.collective ? side.collective->text() : "nothing");
  out.text.back() = '.';
}

}  // namespace

std::string NamedCollective::text() const {
  std::string out = fmt::format("{} #{}", ev::label_of(op), sequence);
  if (!group.empty()) out += " of group " + group;
  if (!module.empty()) out += " for " + module;
  if (more_params > 0)
    out += fmt::format(" and {} more parameter{}", more_params, more_params == 1 ? "" : "s");
  if (bytes > 0) out += " (" + bytes_text(bytes) + ")";
  return out;
}

Hang diagnose_hang(const store::Store& store, Watched watched, std::int64_t quiet_ns) {
  Hang out;
  const std::int64_t from_ns = compare_from(store), now_ns = store.end_ns() + quiet_ns;
  const std::vector<std::uint32_t> everybody = all_ranks(store);
  std::vector<Lately> recent;
  for (const store::RankRow& row : store.ranks()) {
    recent.push_back(lately(store, row.rank, from_ns, everybody));
    out.ranks.push_back(standing_of(store, row, recent.back(), from_ns));
  }
  out.difference = first_difference(recent);
  const Issue* oldest = nullptr;
  const std::map<std::uint32_t, std::uint32_t> missed = find_waits(recent, out.ranks, oldest);
  if (oldest == nullptr) {
    out.text = watched == Watched::goes_on ? kGoesOn : nobody_waits(store, out.ranks);
    add_difference(out);
    return out;
  }
  out.since_ns = oldest->at_ns;
  out.culprit = most_missed(missed, out.ranks);
  const auto culprit = std::ranges::find(out.ranks, out.culprit, &Standing::rank);
  const bool over = culprit != out.ranks.end() && is_over(*culprit);
  const bool all_over = std::ranges::all_of(out.ranks, is_over);
  constexpr std::int64_t kLongNs = 1'000'000'000;
  const bool certain = watched == Watched::quiet || (over && !all_over) || now_ns - oldest->at_ns >= kLongNs;
  out.stands_still = certain && watched != Watched::goes_on;
  if (watched == Watched::goes_on) {
    out.text = kGoesOn;
  } else {
    if (!certain) out.text = "Where the recording ends: ";
    out.text += who_waits(out, *oldest, now_ns);
    if (!certain) out.text += " Whether it was on its way is not recorded.";
    if (!out.difference) out.difference = never_issued(recent, *oldest);
  }
  add_difference(out);
  return out;
}

std::string hang_json(const Hang& hang) {
  const auto collective = [](const std::optional<NamedCollective>& one) -> nlohmann::json {
    if (!one) return nullptr;
    return {{"op", ev::name_of(one->op)},     {"sequence", one->sequence}, {"group", one->group},
            {"elements", one->elems},         {"bytes", one->bytes},       {"module", one->module},
            {"more_params", one->more_params}};
  };
  const auto how = [](Standing::How of) {
    constexpr const char* kNames[] = {"in_collective", "working", "waiting", "paused",
                                      "between",       "ended",   "gone"};
    return kNames[static_cast<std::size_t>(of)];
  };
  nlohmann::json out{
      {"stands_still", hang.stands_still},
      {"text", hang.text},
      {"since_ns", hang.since_ns},
      {"culprit", hang.culprit == ev::kNoId ? nlohmann::json(nullptr) : nlohmann::json(hang.culprit)},
      {"ranks", nlohmann::json::array()},
      {"difference", nullptr}};
  for (const Standing& one : hang.ranks) {
    out["ranks"].push_back({{"rank", one.rank},
                            {"state", how(one.how)},
                            {"collective", collective(one.collective)},
                            {"doing", one.doing},
                            {"gate", one.gate},
                            {"since_ns", one.since_ns},
                            {"last_event_ns", one.last_event_ns},
                            {"waits_for", one.waits_for}});
  }
  if (hang.difference) {
    out["difference"] = {{"what", hang.difference->what}, {"sides", nlohmann::json::array()}};
    for (const IssueDifference::Side& side : hang.difference->sides) {
      out["difference"]["sides"].push_back(
          {{"ranks", side.ranks}, {"collective", collective(side.collective)}, {"module", side.module}});
    }
  }
  return to_text(out, 2) + "\n";
}

}  // namespace shardscope::analysis
