#include "app/analysis/hang.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/analysis/issued_collectives.h"
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

Standing standing_of(const store::Store& store, const store::RankRow& row, const IssuedCollectives& known,
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

bool is_over(const Standing& one) {
  return one.how == Standing::How::gone || one.how == Standing::How::ended;
}

/// Fills in whom each rank waits for: of its oldest open collective that lacks somebody, the members that
/// have not begun it. Ranks that are over wait for nobody, unless all are: then they did when they were
/// ended. By rank, how many miss it; `oldest`: the first of these collectives.
std::map<std::uint32_t, std::uint32_t> find_waits(const std::vector<IssuedCollectives>& recent,
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
        const auto other = std::ranges::find(recent, member, &IssuedCollectives::rank);
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
  const std::int64_t from_ns = last_steps_from(store), now_ns = store.end_ns() + quiet_ns;
  const std::vector<std::uint32_t> everybody = all_ranks(store);
  std::vector<IssuedCollectives> recent;
  for (const store::RankRow& row : store.ranks()) {
    recent.push_back(issued_collectives(store, row.rank, from_ns, everybody));
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

}  // namespace shardscope::analysis
