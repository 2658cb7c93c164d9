// How a run ended: a rank that failed, or one that others waited for until a time-out or until the run was
// ended.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "app/analysis/findings/findings.h"
#include "app/analysis/hang/hang.h"
#include "app/store/rank_end.h"

namespace shardscope::analysis::findings {
namespace {

using ev::Severity;
using How = store::RankEnd::How;

bool says_time_out(const std::string& text) {
  return text.find("imed out") != std::string::npos || text.find("timeout") != std::string::npos;
}

/// Ended by its launcher or by the user: after another rank had failed, or because nothing went on, or in a
/// healthy run.
bool was_ended(const store::RankEnd& end) {
  constexpr std::int32_t kBySignal = 128;
  return (end.how == How::killed &&
          (end.exit_code == kBySignal + SIGTERM || end.exit_code == kBySignal + SIGINT)) ||
         end.exit_message.find("KeyboardInterrupt") != std::string::npos;
}

/// Whether other ranks waited for it until a time-out, or longer than is usual, before any of them ended.
bool was_long_awaited(const store::Store& store, const Hang& hang) {
  std::int64_t until_ns = store.end_ns();
  for (const store::RankRow& row : store.ranks()) {
    if (row.rank == hang.culprit) continue;
    const store::RankEnd end = store::rank_end(store, row);
    if (!store::is_failure(end.how)) continue;
    if (says_time_out(end.exit_message)) return true;
    until_ns = std::min(until_ns, end.at_ns);
  }
  return until_ns - hang.since_ns >= usual_wait_ns(store);
}

/// Whether the rank was still there when another one had waited too long. A rank that dies by itself is seen
/// to be gone within seconds, a time-out takes longer; where connections end with a process the others fail
/// at once, by another error.
bool was_there_at_a_time_out(const store::Store& store, std::uint32_t rank) {
  std::optional<std::int64_t> timed_out, gone;
  for (const store::Message& message : store.messages()) {
    if (message.rank == rank) {
      if (!gone && store::is_gone_message(message)) gone = message.at_ns;
    } else if (!timed_out && message.severity == Severity::error && says_time_out(message.text)) {
      timed_out = message.at_ns;
    }
  }
  return timed_out && gone && *gone > *timed_out;
}

/// "Ranks 0, 2 then failed: RuntimeError: ... Timed out waiting ...".
std::string failures_text(const store::Store& store) {
  std::string ranks, message;
  std::size_t count = 0;
  for (const store::RankRow& row : store.ranks()) {
    const store::RankEnd end = store::rank_end(store, row);
    if (!store::is_failure(end.how)) continue;
    ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", row.rank);
    ++count;
    if (message.empty()) message = end.exit_message;
  }
  return fmt::format("Rank{} {} then failed{}{}", count == 1 ? "" : "s", ranks, message.empty() ? "" : ": ",
                     message);
}

/// Whether what others wait for is a consequence of this rank's end.
bool failed_by_itself(const store::Store& store, const Hang& hang) {
  const auto ranks = store.ranks();
  const auto row = std::ranges::find(ranks, hang.culprit, &store::RankRow::rank);
  if (row == ranks.end()) return false;
  const store::RankEnd end = store::rank_end(store, *row);
  if (!store::is_failure(end.how)) return false;
  if (was_ended(end)) return !was_long_awaited(store, hang);
  if (end.how == How::silent) return !was_there_at_a_time_out(store, hang.culprit);
  // It gave up in a collective of its own. A time-out of anything else, as of its loader, is its own failure.
  const auto state = std::ranges::find(hang.ranks, hang.culprit, &RankState::rank);
  return !(says_time_out(end.exit_message) && state != hang.ranks.end() && state->collective);
}

/// A run whose ranks are all there says nothing yet: `why` watches it until no more events arrive.
bool may_have_hung(const store::Store& store) {
  const auto ranks = store.ranks();
  const auto over = [&](const store::RankRow& rank) { return rank.finished || !rank.connected; };
  const auto well = [](const store::RankRow& rank) { return rank.finished && rank.exit_code == 0; };
  return std::ranges::any_of(ranks, over) && !std::ranges::all_of(ranks, well);
}

struct HangAdvice {
  std::string title, next_step;
};
HangAdvice advice_of(const Hang& hang) {
  const auto culprit = std::ranges::find(hang.ranks, hang.culprit, &RankState::rank);
  const RankState::How how = culprit == hang.ranks.end() ? RankState::How::between : culprit->how;
  if (how == RankState::How::ended) {
    return {fmt::format("The run hangs: rank {} ended and is waited for", hang.culprit),
            "Look at why it ended before the others: another number of batches, a branch that returns."};
  }
  if (how == RankState::How::stopped) {
    return {fmt::format("The run hangs: rank {} is stopped and is waited for", hang.culprit),
            "Look on its host for what stopped it: SIGSTOP, a debugger, a frozen container."};
  }
  const std::string title = fmt::format("The run hung: others waited for rank {}", hang.culprit);
  if (hang.difference) {
    return {
        title,
        "Look at the first difference: every rank has to issue the same collectives in the same order, so a "
        "branch, a batch or a checkpoint of one rank must not have collectives of its own."};
  }
  return {title,
          "Look at what that rank did instead. While a run hangs, `shardscope why --stacks ENDPOINT` asks "
          "its ranks "
          "where they are."};
}

}  // namespace

/// A wait that never completed. The ranks that wait are the first to fail, by a time-out, and the one that
/// they wait for is ended after them: it is the cause of their failures, unless it failed by itself
/// (rank_failures()).
void hangs(const Facts& facts, Found& found) {
  if (!may_have_hung(facts.store)) return;
  const Hang hang = diagnose_hang(facts.store);
  if (!hang.hung || hang.culprit == ev::kNoId || failed_by_itself(facts.store, hang)) return;
  auto [title, next_step] = advice_of(hang);
  Finding finding{Severity::error, title, hang.text, next_step, hang.since_ns, hang.culprit};
  finding.id = "hang";
  found.add(std::move(finding));
}

/// The one that failed first is the problem; the others end because it is gone.
void rank_failures(const Facts& facts, Found& found) {
  const store::Store& store = facts.store;
  const std::optional<store::RankEnd> first = store::first_failure(store);
  if (!first) return;
  if (found.has("hang")) return found.follows("hang", failures_text(store));
  const bool by_itself = first->how == store::RankEnd::How::failed;
  std::string evidence = store::words_on(store, *first);
  if (!by_itself) {
    evidence = fmt::format("Its last event is at {} and it never reported its end.{}{}",
                           store::seconds_text(first->at_ns), evidence.empty() ? "" : " ",
                           evidence.empty() ? "" : "R" + evidence.substr(1) + ".");
  }
  std::string others;
  for (const store::RankRow& rank : store.ranks()) {
    if (rank.rank == first->rank || !store::is_failure(store::rank_end(store, rank).how)) continue;
    others += fmt::format("{}{}", others.empty() ? "" : ", ", rank.rank);
  }
  Finding finding{Severity::error,
                  "R" + store::text_of(*first).substr(1),
                  evidence,
                  by_itself ? "Read its last message; the other ranks end because it is gone."
                            : "Look on its host for what killed it: out of memory, a signal, a crash.",
                  first->at_ns,
                  first->rank};
  finding.id = "rank_failed";
  if (!others.empty()) {
    finding.explains.push_back(fmt::format(
        "Ranks failed after rank {}, for which they wait in every collective: {}", first->rank, others));
  }
  found.add(std::move(finding));
}

}  // namespace shardscope::analysis::findings
