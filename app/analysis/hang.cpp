#include "app/analysis/hang.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/analysis/issued_collectives.h"
#include "app/analysis/module_order.h"
#include "app/analysis/quantity_text.h"
#include "app/analysis/spans.h"
#include "app/store/lane.h"
#include "app/store/module_name.h"
#include "app/store/names.h"
#include "app/store/rank_end.h"
#include "app/store/span_label.h"
#include "runtime/plan/fault.h"

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

std::string doing(const store::Store& store, std::uint32_t rank, const store::Span& span) {
  if (const std::string what = store::awaited(store, span); !what.empty()) return "waiting for " + what;
  const std::string label = store::label_of(store, rank, span);
  switch (span.kind) {
    case EventKind::module_begin:
      return fmt::format("in {} ({})", label, ev::label_of(ev::as<EventKind::module_begin>(span).pass));
    case EventKind::phase_begin:
      return "in the phase " + label;
    case EventKind::optimizer_begin:
      return "in the " + label;
    case EventKind::paused_begin:
      return "held at a gate";
    default:
      return "in " + label;
  }
}

/// The innermost module that the rank was in; empty: in none that was recorded.
std::string module_at(const store::Store& store, std::uint32_t rank, std::int64_t at_ns) {
  std::optional<store::Span> found;
  for_each_span(store, {rank, StreamId::compute}, at_ns, at_ns + 1, [&](const store::Span& span) {
    const bool within = span.begin_ns <= at_ns && (span.end_ns == store::kOpen || span.end_ns > at_ns);
    if (span.kind == EventKind::module_begin && within && (!found || span.depth >= found->depth))
      found = span;
  });
  return found ? store::module_name(store, ev::as<EventKind::module_begin>(*found).module) : std::string();
}

std::string last_gate(const store::Store& store, std::uint32_t rank) {
  const auto gate = store.gate_before(rank, store::Store::kEnd);
  if (!gate) return {};
  const bool module = gate->kind == ev::GateKind::pre_forward || gate->kind == ev::GateKind::post_forward ||
                      gate->kind == ev::GateKind::pre_backward || gate->kind == ev::GateKind::post_backward;
  return module ? fmt::format("{} of {}", ev::label_of(gate->kind), store::module_name(store, gate->id))
                : fmt::format("{} {}", ev::label_of(gate->kind), gate->id);
}

/// Of those that a rank is in: later ones of other streams or groups wait behind it.
const Issue* oldest_open(const IssuedCollectives& known) {
  const Issue* oldest = nullptr;
  for (const auto& [key, issue] : known.issues) {
    if (issue.open && (oldest == nullptr || issue.at_ns < oldest->at_ns)) oldest = &issue;
  }
  return oldest;
}

/// That the rank ended last; nothing where it ended none.
std::optional<std::uint32_t> last_step(const store::Store& store, std::uint32_t rank, std::int64_t from_ns) {
  std::optional<std::uint32_t> last;
  for_each_span(store, {rank, StreamId::host}, from_ns, store::Store::kEnd, [&](const store::Span& span) {
    if (span.kind == EventKind::step_begin && span.end_ns != store::kOpen)
      last = std::max(last.value_or(0), ev::as<EventKind::step_begin>(span).step);
  });
  return last;
}

RankState state_of(const store::Store& store, const store::RankRow& row, const IssuedCollectives& known,
                   std::int64_t from_ns) {
  RankState out;
  out.rank = row.rank;
  out.last_event_ns = row.last_ns;
  out.gate = last_gate(store, row.rank);
  out.collectives = known.issues.size();
  const store::RankEnd end = store::rank_end(store, row);
  out.said_end = end.how == store::RankEnd::How::finished || end.how == store::RankEnd::How::failed;
  if (store::is_failure(end.how)) {
    out.how = RankState::How::gone;
    out.since_ns = end.at_ns;
    const std::string text = store::text_of(end);
    const std::size_t was = text.find("was "), failed = text.find("failed");
    out.doing = was != std::string::npos      ? text.substr(was)
                : failed != std::string::npos ? text.substr(failed)
                                              : "is gone";
  } else if (end.how == store::RankEnd::How::stopped) {
    out.how = RankState::How::stopped;
    const auto silence = store::silence_now(store, row.rank);
    out.since_ns = silence ? silence->begin_ns : end.at_ns;
    out.doing = fmt::format("{} since {}", end.stop_seen ? "is stopped" : "is silent, perhaps stopped,",
                            store::seconds_text(out.since_ns));
    if (const auto compute = open_span(store, {row.rank, StreamId::compute}, from_ns))
      out.doing += ", last seen " + doing(store, row.rank, *compute);
  } else if (end.how == store::RankEnd::How::finished) {
    out.how = RankState::How::ended;
    out.since_ns = end.at_ns;
    out.doing = "has ended, with code 0";
  }
  if (const Issue* const oldest = oldest_open(known); oldest != nullptr) {
    out.collective = oldest->named;
    if (out.how == RankState::How::between) out.since_ns = oldest->at_ns;
  }
  if (out.how != RankState::How::between) return out;
  const auto host = open_span(store, {row.rank, StreamId::host}, from_ns);
  const auto compute = open_span(store, {row.rank, StreamId::compute}, from_ns);
  if (host && host->kind == EventKind::paused_begin) {
    out.how = RankState::How::paused;
    out.doing = doing(store, row.rank, *host);
    out.since_ns = host->begin_ns;
    return out;
  }
  if (compute) out.doing = doing(store, row.rank, *compute);
  if (out.collective) {
    out.how = RankState::How::in_collective;
    return out;
  }
  if (!compute) {
    out.since_ns = row.last_ns;
    out.doing = host && host->kind == EventKind::step_begin ? "between two modules" : "between two steps";
    if (const auto step = last_step(store, row.rank, from_ns); step && out.doing == "between two steps")
      out.doing += fmt::format(", after step {}", *step);
    return out;
  }
  out.how = store::is_wait(compute->kind) || compute->kind == EventKind::data_wait_begin
                ? RankState::How::waiting
                : RankState::How::working;
  out.since_ns = compute->begin_ns;
  return out;
}

bool is_over(const RankState& one) {
  return one.how == RankState::How::gone || one.how == RankState::How::ended;
}

/// Whether `rank` has begun the collective `issue` of another one, and not a different one at its place.
bool came_to(const IssuedCollectives& rank, const Issue& issue) {
  const auto at = rank.issues.find(issue.key);
  if (at == rank.issues.end()) return rank.is_past(issue.key);
  const Issue& own = at->second;
  return own.begun &&
         (own.named.op == issue.named.op || (may_differ(own.named.op) && may_differ(issue.named.op)));
}

/// The events of a rank that is stopped or gone end earlier than what it did: a collective that others have
/// left two steps ago is over on it too.
void forget_what_is_over(const std::vector<IssuedCollectives>& recent, std::vector<RankState>& ranks) {
  for (std::size_t index = 0; index < recent.size(); ++index) {
    RankState& state = ranks[index];
    if (!is_over(state) && state.how != RankState::How::stopped) continue;
    const Issue* const oldest = oldest_open(recent[index]);
    if (oldest == nullptr) continue;
    const bool over = std::ranges::any_of(recent, [&](const IssuedCollectives& other) {
      return std::ranges::find(oldest->members, other.rank) != oldest->members.end() &&
             other.is_past(oldest->key);
    });
    if (over) state.collective.reset();
  }
}

/// The rank that failed first, and not as the others did, as where all are ended from outside.
std::optional<std::uint32_t> failed_by_itself(const store::Store& store) {
  const std::optional<store::RankEnd> first = store::first_failure(store);
  if (!first) return std::nullopt;
  const bool otherwise = std::ranges::any_of(store.ranks(), [&](const store::RankRow& row) {
    const store::RankEnd end = store::rank_end(store, row);
    return row.rank != first->rank && (end.how != first->how || end.exit_code != first->exit_code);
  });
  return otherwise ? std::optional(first->rank) : std::nullopt;
}

constexpr std::int64_t kLongNs = 1'000'000'000;  ///< longer than a rank's events are on their way

/// Killed so soon after its last event that arrived that those after it are lost: what it did then is not
/// known, whatever it had begun.
bool was_cut_off(const store::Store& store, std::uint32_t rank, std::int64_t now_ns) {
  const auto row = std::ranges::find(store.ranks(), rank, &store::RankRow::rank);
  return row != store.ranks().end() && store::rank_end(store, *row).how == store::RankEnd::How::killed &&
         now_ns - row->last_ns < kLongNs;
}

/// Fills in whom each rank waits for: of its oldest open collective that lacks a member, the members that
/// have not begun it. Ranks that are over wait for none, unless all are, or the collective ended by an error:
/// then they did when they were ended, but for `cut_off`, which went on after its last event that arrived.
/// Returns these collectives, by index of the rank; null where it waits for no rank.
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
      for (const std::uint32_t member : issue.members) {
        // By rank, as the store's rows are.
        const auto other = std::ranges::lower_bound(recent, member, {}, &IssuedCollectives::rank);
        if (other == recent.end() || other->rank != member || !came_to(*other, issue))
          absent.push_back(member);
      }
      if (absent.empty()) continue;
      oldest_blocked = &issue;
      state.waits_for = absent;
    }
  }
  return blocked;
}

/// Of the collectives in `blocked` that lack `rank`, the one that began first; null where none does.
const Issue* oldest_without(const std::vector<const Issue*>& blocked, const std::vector<RankState>& ranks,
                            std::uint32_t rank) {
  const Issue* oldest = nullptr;
  for (std::size_t index = 0; index < blocked.size(); ++index) {
    const bool lacks = std::ranges::find(ranks[index].waits_for, rank) != ranks[index].waits_for.end();
    if (lacks && (oldest == nullptr || blocked[index]->at_ns < oldest->at_ns)) oldest = blocked[index];
  }
  return oldest;
}

/// The rank that most others miss; of several the one that waits for no rank itself.
std::uint32_t most_missed(const std::vector<RankState>& ranks) {
  std::map<std::uint32_t, std::uint32_t> missed;  // by how many
  for (const RankState& one : ranks) {
    for (const std::uint32_t rank : one.waits_for) ++missed[rank];
  }
  std::uint32_t found = ev::kNoId, most = 0;
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

/// Where no rank waits in a recorded collective: the rank that failed first, or else one that is gone or
/// stopped. Null where all go on or the run is paused.
const RankState* without_waits(const store::Store& store, const std::vector<RankState>& ranks) {
  if (std::ranges::find(ranks, RankState::How::paused, &RankState::how) != ranks.end()) return nullptr;
  const std::optional<store::RankEnd> first = store::first_failure(store);
  auto found = first ? std::ranges::find(ranks, first->rank, &RankState::rank) : ranks.end();
  if (found == ranks.end()) found = std::ranges::find(ranks, RankState::How::gone, &RankState::how);
  if (found == ranks.end()) found = std::ranges::find(ranks, RankState::How::stopped, &RankState::how);
  return found == ranks.end() ? nullptr : &*found;
}

/// " Ranks 0, 1: in the phase optimizer.": what those that go on do, while `missed` does not.
std::string what_others_do(const std::vector<RankState>& ranks, const RankState& missed) {
  std::map<std::string, std::vector<std::uint32_t>> doing;
  for (const RankState& one : ranks) {
    if (one.rank != missed.rank && !is_over(one) && one.how != RankState::How::stopped)
      doing[one.doing].push_back(one.rank);
  }
  std::string text;
  constexpr std::size_t kShown = 3;
  for (const auto& [what, those] : doing) {
    if (doing.size() > kShown) break;
    std::string sentence = fmt::format("{}: {}.", ranks_text(those), what);
    sentence[0] = 'R';
    text += " " + sentence;
  }
  return text;
}

/// " Ranks 0, 1, 2 failed with exit code 1.": of a run in which ranks differed and each failed by itself.
std::string how_all_ended(const std::vector<RankState>& ranks) {
  std::map<std::string, std::vector<std::uint32_t>> ends;
  for (const RankState& one : ranks) ends[one.doing].push_back(one.rank);
  std::string text;
  for (const auto& [how, those] : ends) {
    std::string sentence = fmt::format("{} {}.", ranks_text(those), how);
    sentence[0] = 'R';
    text += " " + sentence;
  }
  return text;
}

std::string no_rank_waits(const std::vector<RankState>& ranks, const RankState* missed) {
  if (std::ranges::find(ranks, RankState::How::paused, &RankState::how) != ranks.end())
    return "The run is paused: its ranks are held at a gate.";
  if (ranks.empty()) return "No event of any rank has arrived.";
  if (missed == nullptr) return "No rank waits in a collective for one that has not come.";
  return fmt::format("Rank {} {}; no rank waits in a recorded collective.", missed->rank, missed->doing) +
         what_others_do(ranks, *missed);
}

/// The ranks in one collective that lacks another.
struct Waiting {
  std::vector<std::uint32_t> ranks, wanted;
  std::vector<std::uint32_t> failed;  ///< of `ranks`: theirs ended by an error
  std::int64_t failed_ns = 0;         ///< the first of these
  bool ended = false;                 ///< all of `ranks` are over
  std::int64_t ended_ns = 0;          ///< the first of them
  [[nodiscard]] bool over() const noexcept { return ended || failed.size() == ranks.size(); }
  /// "wait", of one rank "waits"; where it ended by an error on all, or all are over, "waited".
  [[nodiscard]] const char* verb() const noexcept {
    return over() ? "waited" : ranks.size() == 1 ? "waits" : "wait";
  }
};

Waiting waiting_in(const Hang& hang, const std::vector<const Issue*>& blocked, const Issue& oldest) {
  Waiting out;
  for (std::size_t index = 0; index < blocked.size(); ++index) {
    if (blocked[index] == nullptr || blocked[index]->key != oldest.key) continue;
    // Another operation at the same place is another collective: what its rank did instead.
    if (blocked[index]->named.op != oldest.named.op) continue;
    const RankState& one = hang.ranks[index];
    out.ended = is_over(one) && (out.ranks.empty() || out.ended);
    out.ended_ns = out.ranks.empty() ? one.since_ns : std::min(out.ended_ns, one.since_ns);
    out.ranks.push_back(one.rank);
    if (blocked[index] == &oldest) out.wanted = one.waits_for;
    const std::int64_t failed_ns = blocked[index]->failed_ns;
    if (failed_ns == 0) continue;
    out.failed_ns = out.failed.empty() ? failed_ns : std::min(out.failed_ns, failed_ns);
    out.failed.push_back(one.rank);
  }
  return out;
}

/// "Ranks 0, 1 wait for rank 2 in all-gather #12 of layer.3; it is stopped since 1.2 s".
std::string short_form(const Hang& hang, const Waiting& waiting, const Issue& oldest) {
  std::string text = fmt::format("{} {} for {} in {}", ranks_text(waiting.ranks), waiting.verb(),
                                 ranks_text(waiting.wanted), oldest.named.text());
  text[0] = 'R';
  const auto culprit = std::ranges::find(hang.ranks, hang.culprit, &RankState::rank);
  if (culprit != hang.ranks.end() && waiting.wanted.size() == 1 &&
      (is_over(*culprit) || culprit->how == RankState::How::stopped))
    text += ": it " + culprit->doing;
  return text;
}

/// "Ranks 0, 1 wait in all-gather #12 for rank 2, since 1.2 s (at least 3 s). Rank 2 never came to it: it is
/// ..."
std::string who_waits(Hang& hang, const std::vector<const Issue*>& blocked, const Issue& oldest,
                      std::int64_t now_ns, bool cut_off) {
  const Waiting waiting = waiting_in(hang, blocked, oldest);
  std::string until;
  if (!waiting.over())
    until = fmt::format(" (at least {})", time_text(std::max<std::int64_t>(now_ns - oldest.at_ns, 0)));
  if (!waiting.failed.empty()) {
    const bool on_all = waiting.failed.size() == waiting.ranks.size();
    until += fmt::format(", {}{} it ended by an error {} later", on_all || waiting.ended ? "until" : "but",
                         on_all ? "" : fmt::format(" on {}", ranks_text(waiting.failed)),
                         time_text(waiting.failed_ns - oldest.at_ns));
  } else if (waiting.ended) {
    until += fmt::format(", until {} ended {} later", waiting.ranks.size() == 1 ? "it" : "the first of them",
                         time_text(std::max<std::int64_t>(waiting.ended_ns - oldest.at_ns, 0)));
  }
  std::string text =
      fmt::format("{} {} in {} for {}, since {}{}.", ranks_text(waiting.ranks), waiting.verb(),
                  oldest.named.text(), ranks_text(waiting.wanted), store::seconds_text(oldest.at_ns), until);
  text[0] = 'R';
  hang.headline = short_form(hang, waiting, oldest);
  const auto culprit = std::ranges::find(hang.ranks, hang.culprit, &RankState::rank);
  if (culprit == hang.ranks.end())
    return text + fmt::format(" Nothing was recorded of rank {}.", hang.culprit);
  const Issue* const own = blocked[static_cast<std::size_t>(culprit - hang.ranks.begin())];
  const std::string now =
      own != nullptr && !culprit->waits_for.empty() && culprit->how != RankState::How::stopped
          ? fmt::format("{} in {} for {}", is_over(*culprit) ? "waited" : "waits", own->named.text(),
                        ranks_text(culprit->waits_for))
      : is_over(*culprit) || culprit->how == RankState::How::stopped
          ? culprit->doing
          : fmt::format("is {}", culprit->doing.empty() ? "not in any recorded span" : culprit->doing);
  // What it did last before it was killed or its connection ended has not arrived: it may have been in it.
  const bool lost =
      cut_off || (culprit->how == RankState::How::gone && !culprit->said_end && waiting.failed_ns != 0 &&
                  waiting.failed_ns - culprit->last_event_ns < kLongNs);
  text += lost ? fmt::format(" No event shows that rank {} came to it: it {}", hang.culprit, now)
               : fmt::format(" Rank {} never came to it: it {}", hang.culprit, now);
  if (!culprit->gate.empty()) text += fmt::format("; the last gate that it passed is {}", culprit->gate);
  return text + fmt::format(", its last event is of {}.", store::seconds_text(culprit->last_event_ns));
}

constexpr const char* kGoesOn = "The run goes on: events come in.";

/// "The ranks issued different collectives (size): rank 0 all-gather #3 ..., in layer.1; rank 1 ...": after
/// the rest. What a collective is for is in its own text.
void add_difference(const store::Store& store, Hang& out) {
  if (!out.difference || out.difference->what == "never issued") return;
  out.text += fmt::format("{}The ranks issued different collectives ({}):", out.text.empty() ? "" : " ",
                          out.difference->what);
  for (IssueDifference::Side& side : out.difference->sides) {
    const bool is_for = !side.module.empty();
    if (!is_for) side.module = module_at(store, side.ranks.front(), side.at_ns);
    out.text += fmt::format(" {} {}{}{};", ranks_text(side.ranks),
                            side.collective ? side.collective->text() : "nothing",
                            is_for || side.module.empty() ? "" : ", in ", is_for ? "" : side.module);
  }
  out.text.back() = '.';
}

/// The rank that the others differ from: the culprit, else the one that stands alone in the difference.
std::optional<std::uint32_t> odd_one(const Hang& hang) {
  if (hang.culprit != ev::kNoId) return hang.culprit;
  if (!hang.difference || hang.ranks.size() < 3) return std::nullopt;
  std::optional<std::uint32_t> found;
  for (const IssueDifference::Side& side : hang.difference->sides) {
    if (side.ranks.size() != 1) continue;
    if (found) return std::nullopt;
    found = side.ranks.front();
  }
  return found;
}

/// Why they issued different ones, or why one did not come: it ran other modules. Empty where they did not.
/// `failed_alike`: every rank failed by itself, which may be all that shows.
std::string other_modules(const store::Store& store, std::int64_t from_ns, const Hang& hang,
                          bool failed_alike) {
  std::optional<std::uint32_t> odd = odd_one(hang);
  if (!odd && (hang.difference || failed_alike)) odd = rank_of_other_modules(store, from_ns);
  return odd ? other_modules_text(store, *odd, from_ns) : std::string();
}

/// Of a run that has just begun: who has sent nothing yet.
void add_absent(const store::Store& store, Watched watched, Hang& out) {
  if (watched == Watched::recorded) return;
  const std::uint32_t world = store.has_tables() ? store.tables().world : 0;
  std::vector<std::uint32_t> absent;
  // In order of ranks, as the store's rows are.
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    if (!std::ranges::binary_search(out.ranks, rank, {}, &RankState::rank)) absent.push_back(rank);
  }
  if (!absent.empty() && !out.ranks.empty())
    out.text += fmt::format(" No event of {} of {} has arrived.", ranks_text(absent), world);
}

/// "Rank 2 stood still from 5.200 s to 26.400 s (21.2 s): none of its threads sent anything.": of the latest.
void add_stops(Hang& out) {
  for (const store::Silence& stop : out.stops) {
    if (stop.lasts()) continue;  // said before
    // A silence may end with another process, or be of the network.
    out.text +=
        fmt::format(" Rank {} {} from {} to {} ({}){}.", stop.rank,
                    stop.stood_still ? "stood still" : "sent nothing", store::seconds_text(stop.begin_ns),
                    store::seconds_text(stop.end_ns), time_text(stop.end_ns - stop.begin_ns),
                    stop.stood_still ? ": none of its threads sent anything" : "");
  }
}

/// What was done on purpose (--fault) must not pass for a failure.
void add_rehearsal(const store::Store& store, Hang& out) {
  for (const store::Message& message : store.messages()) {
    if (!message.text.starts_with(plan::kRehearses)) continue;
    out.text += fmt::format(" The run rehearses this: {}.", message.text.substr(plan::kRehearses.size()));
    return;
  }
}

/// Those that are over, or last; the latest.
std::vector<store::Silence> latest_stops(const store::Store& store) {
  constexpr std::size_t kMost = 4;
  std::vector<store::Silence> stops = store::silences(store);
  if (stops.size() > kMost) stops.erase(stops.begin(), stops.end() - kMost);
  return stops;
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
  const std::vector<std::uint32_t> world = all_ranks(store);
  std::vector<IssuedCollectives> recent;
  for (const store::RankRow& row : store.ranks()) {
    recent.push_back(issued_collectives(store, row.rank, from_ns, world));
    out.ranks.push_back(state_of(store, row, recent.back(), from_ns));
  }
  forget_what_is_over(recent, out.ranks);
  out.stops = latest_stops(store);
  out.difference = first_difference(recent);
  const std::optional<std::uint32_t> failed = failed_by_itself(store);
  const std::optional<std::uint32_t> cut_off =
      failed && was_cut_off(store, *failed, now_ns) ? failed : std::nullopt;
  const std::vector<const Issue*> blocked = find_waits(recent, cut_off, out.ranks);
  out.culprit = most_missed(out.ranks);
  const Issue* const oldest = oldest_without(blocked, out.ranks, out.culprit);
  if (oldest == nullptr) {
    const RankState* const missed = without_waits(store, out.ranks);
    // Who is killed from outside says nothing about the others.
    const auto failed_itself = [](const RankState& one) {
      return one.how == RankState::How::gone && one.said_end;
    };
    const bool failed_alike = !failed && missed != nullptr && std::ranges::all_of(out.ranks, failed_itself);
    const std::string modules =
        watched == Watched::goes_on ? std::string() : other_modules(store, from_ns, out, failed_alike);
    const bool differed = failed_alike && (out.difference || !modules.empty());
    if (!differed) out.text = watched == Watched::goes_on ? kGoesOn : no_rank_waits(out.ranks, missed);
    // Ranks also agree outside recorded collectives, as on overflow and norm.
    if (missed != nullptr && missed->how == RankState::How::stopped && watched == Watched::quiet) {
      out.stands_still = true;
      out.culprit = missed->rank;
      out.since_ns = missed->since_ns;
    }
    add_difference(store, out);
    if (!modules.empty()) out.text += (out.text.empty() ? "" : " ") + modules;
    if (differed) out.text += how_all_ended(out.ranks);
    add_absent(store, watched, out);
    add_stops(out);
    if (watched != Watched::goes_on) add_rehearsal(store, out);
    return out;
  }
  out.since_ns = oldest->at_ns;
  const auto culprit = std::ranges::find(out.ranks, out.culprit, &RankState::rank);
  const bool over = culprit != out.ranks.end() && is_over(*culprit);
  const bool all_over = std::ranges::all_of(out.ranks, is_over);
  const bool stopped = culprit != out.ranks.end() && culprit->how == RankState::How::stopped;
  const bool died = all_over && failed == out.culprit;
  const bool certain = watched == Watched::quiet || oldest->failed_ns != 0 || (over && !all_over) || died ||
                       stopped || now_ns - oldest->at_ns >= kLongNs;
  out.stands_still = certain && watched != Watched::goes_on;
  if (watched == Watched::goes_on) {
    out.text = kGoesOn;
  } else {
    if (!certain) out.text = "Where the recording ends: ";
    out.text += who_waits(out, blocked, *oldest, now_ns, cut_off == out.culprit);
    if (!certain) out.text += " Whether it was on its way is not recorded.";
    if (!out.difference) out.difference = never_issued(recent, *oldest);
  }
  add_difference(store, out);
  if (watched != Watched::goes_on) {
    const std::string modules = other_modules(store, from_ns, out, false);
    if (!modules.empty()) out.text += " " + modules;
  }
  add_stops(out);
  if (watched != Watched::goes_on) add_rehearsal(store, out);
  return out;
}

}  // namespace shardscope::analysis
