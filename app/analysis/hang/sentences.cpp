#include "app/analysis/hang/sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "app/analysis/hang/module_order.h"
#include "app/analysis/hang/rank_states.h"
#include "app/analysis/hang/waits.h"
#include "app/analysis/quantity_text.h"
#include "app/analysis/spans.h"
#include "app/store/framework.h"
#include "app/store/module_name.h"
#include "app/store/rank_end.h"
#include "runtime/plan/fault.h"

namespace shardscope::analysis {
namespace {

/// The innermost recorded module of the rank at that time; empty if none.
std::string module_at(const store::Store& store, std::uint32_t rank, std::int64_t at_ns) {
  std::optional<store::Span> found;
  for_each_span(store, {rank, ev::StreamId::compute}, at_ns, at_ns + 1, [&](const store::Span& span) {
    const bool within = span.begin_ns <= at_ns && (span.end_ns == store::kOpen || span.end_ns > at_ns);
    if (span.kind == ev::EventKind::module_begin && within && (!found || span.depth >= found->depth))
      found = span;
  });
  return found ? store::module_name(store, ev::as<ev::EventKind::module_begin>(*found).module)
               : std::string();
}

/// " Ranks 0, 1: in the phase optimizer.": what running ranks do, while `missed` does not.
std::string state_of_others(const std::vector<RankState>& ranks, const RankState& missed) {
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

/// The ranks in a collective that lacks a member.
struct Waiting {
  std::vector<std::uint32_t> ranks, wanted;
  std::vector<std::uint32_t> failed;  ///< of `ranks`: those whose collective ended with an error
  std::int64_t failed_ns = 0;         ///< the first of these errors
  bool ended = false;                 ///< all of `ranks` are over
  std::int64_t ended_ns = 0;          ///< the first of them
  [[nodiscard]] bool over() const noexcept { return ended || failed.size() == ranks.size(); }
  /// "wait", for one rank "waits"; "waited" if it ended with an error on all, or all are over.
  [[nodiscard]] const char* verb() const noexcept {
    return over() ? "waited" : ranks.size() == 1 ? "waits" : "wait";
  }
};

Waiting waiting_in(const Hang& hang, const std::vector<const Issue*>& blocked, const Issue& oldest) {
  Waiting out;
  for (std::size_t index = 0; index < blocked.size(); ++index) {
    if (blocked[index] == nullptr || blocked[index]->key != oldest.key) continue;
    // A different operation at the same position is another collective: what its rank did instead.
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

/// Headline: "Ranks 0, 1 wait for rank 2 in all-gather #12 of layer.3: it is stopped since 1.2 s".
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

/// The rank that differs from the others: the culprit, else the only one alone on its side of the difference.
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

}  // namespace

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
  // Its last events before it was killed or disconnected are lost: it may have entered.
  const bool lost =
      cut_off || (culprit->how == RankState::How::gone && !culprit->reported_end && waiting.failed_ns != 0 &&
                  waiting.failed_ns - culprit->last_event_ns < kLongNs);
  text += lost ? fmt::format(" No event shows that rank {} entered it: it {}", hang.culprit, now)
               : fmt::format(" Rank {} never entered it: it {}", hang.culprit, now);
  if (!culprit->gate.empty()) text += fmt::format("; the last gate that it passed is {}", culprit->gate);
  return text + fmt::format(", its last event is of {}.", store::seconds_text(culprit->last_event_ns));
}

std::string no_rank_waits(const std::vector<RankState>& ranks, const RankState* missed) {
  if (std::ranges::find(ranks, RankState::How::paused, &RankState::how) != ranks.end())
    return "The run is paused: its ranks are held at a gate.";
  if (ranks.empty()) return "No event of any rank has arrived.";
  if (missed == nullptr) return "No rank waits in a collective for one that has not entered it.";
  return fmt::format("Rank {} {}; no rank waits in a recorded collective.", missed->rank, missed->doing) +
         state_of_others(ranks, *missed);
}

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

std::string other_modules(const store::Store& store, std::int64_t from_ns, const Hang& hang,
                          bool failed_alike) {
  std::optional<std::uint32_t> odd = odd_one(hang);
  if (!odd && (hang.difference || failed_alike)) odd = rank_of_other_modules(store, from_ns);
  return odd ? other_modules_text(store, *odd, from_ns) : std::string();
}

void add_absent(const store::Store& store, Watched watched, Hang& out) {
  if (watched == Watched::recorded) return;
  const std::uint32_t world = store.has_tables() ? store.tables().world : 0;
  std::vector<std::uint32_t> absent;
  // Both are in order of ranks.
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    if (!std::ranges::binary_search(out.ranks, rank, {}, &RankState::rank)) absent.push_back(rank);
  }
  if (!absent.empty() && !out.ranks.empty())
    out.text += fmt::format(" No event of {} of {} has arrived.", ranks_text(absent), world);
}

void add_stops(Hang& out) {
  for (const store::Silence& stop : out.stops) {
    if (stop.lasts()) continue;  // already stated
    // A silence may be due to the network, or end with another process.
    out.text +=
        fmt::format(" Rank {} {} from {} to {} ({}){}.", stop.rank,
                    stop.process_frozen ? "was frozen" : "sent nothing", store::seconds_text(stop.begin_ns),
                    store::seconds_text(stop.end_ns), time_text(stop.end_ns - stop.begin_ns),
                    stop.process_frozen ? ": none of its threads sent anything" : "");
  }
}

void add_exception(const store::Store& store, Hang& out) {
  constexpr std::size_t kMost = 400;
  if (!store.has_tables() || store::framework_of(store.tables()) == store::Framework::zero) return;
  std::optional<std::uint32_t> rank = odd_one(out);
  if (const auto first = store::first_failure(store); !rank && first) rank = first->rank;
  if (!rank) return;
  const auto one = std::ranges::find(out.ranks, *rank, &RankState::rank);
  // Without an exception it is the code again.
  if (one == out.ranks.end() || one->how != RankState::How::gone || one->exit_message.empty() ||
      one->exit_message.starts_with("exit code "))
    return;
  const std::string first_line = one->exit_message.substr(0, std::min(kMost, one->exit_message.find('\n')));
  out.text += fmt::format(" Rank {} ended with {}{}", *rank, first_line,
                          first_line.ends_with('.') || first_line.ends_with('?') ? "" : ".");
}

void add_rehearsal(const store::Store& store, Hang& out) {
  if (const auto fault = rehearsed_fault(store))
    out.text += fmt::format(" The run rehearses this: {}.", *fault);
}

std::optional<std::string> rehearsed_fault(const store::Store& store) {
  for (const store::Message& message : store.messages()) {
    if (message.text.starts_with(plan::kRehearses)) return message.text.substr(plan::kRehearses.size());
  }
  return std::nullopt;
}

}  // namespace shardscope::analysis
