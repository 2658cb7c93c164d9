// Defects of a recording: an injected fault, missing events, damage, clocks.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "app/analysis/findings/findings.h"
#include "app/analysis/hang/hang.h"
#include "app/analysis/quantity_text.h"
#include "app/store/losses.h"
#include "app/store/rank_end.h"

namespace shardscope::analysis::findings {

using ev::Severity;

/// Before its consequences: an injected fault must not be mistaken for a real one.
void rehearsals(const Facts& facts, Found& found) {
  std::optional<std::string> fault = rehearsed_fault(facts.store);
  if (!fault || fault->empty()) return;
  (*fault)[0] = static_cast<char>(std::toupper(static_cast<unsigned char>((*fault)[0])));
  Finding finding{Severity::info, "This run injects a fault (--fault)",
                  *fault + ". Other findings may be consequences of it.",
                  "Nothing is wrong with the program: run it without --fault."};
  finding.id = kRehearsedFault;
  found.add(std::move(finding));
}

namespace {

/// The gap that lacks most: messages before events, since each has an unknown number of them.
void look_at_worst_gap(const Facts& facts, Finding& finding) {
  const auto gaps = facts.store.gaps();
  const auto lost = [](const store::Gap& gap) {
    return std::tuple(gap.messages, gap.events, gap.end_ns - gap.begin_ns);
  };
  const auto worst = std::ranges::max_element(gaps, {}, lost);
  if (worst == gaps.end() || (worst->messages == 0 && worst->events == 0)) return;
  finding.rank = worst->rank;
  finding.at_ns = std::max<std::int64_t>(worst->begin_ns, 0);
  finding.until_ns = std::max(worst->end_ns, finding.at_ns + 1);
}

/// The first end without a begin of the rank with most unexplained ones. Steps that lack no event come first:
/// there nothing explains an end. Reads kMostSteps steps: a program that never emits a begin does so in each.
void look_at_wrong_end(const Facts& facts, Finding& finding) {
  constexpr std::size_t kMostSteps = 64;
  const std::vector<store::Store::UnmatchedEnds> rows = facts.store.unmatched_ends();
  const auto worst = std::ranges::max_element(
      rows, {}, [](const store::Store::UnmatchedEnds& row) { return row.count - row.explained; });
  if (worst == rows.end()) return;
  finding.rank = worst->rank;
  const auto search = [&](std::int64_t begin_ns, std::int64_t end_ns) {
    std::optional<std::int64_t> first;
    facts.store.for_each_end_without_begin(worst->rank, begin_ns, end_ns,
                                           [&](const store::Store::EndWithoutBegin& end) {
                                             if (ev::end_of(end.begin) == worst->kind)
                                               first = std::min(first.value_or(end.at_ns), end.at_ns);
                                           });
    if (!first) return false;
    finding.at_ns = std::max<std::int64_t>(*first, 1);
    return true;
  };
  std::size_t read = 0;
  for (const bool whole : {true, false}) {
    for (const StepDigest& step : facts.digest.steps()) {
      const auto own = std::ranges::find(step.ranks, worst->rank, &RankStep::rank);
      if (own == step.ranks.end() || own->recorded.events_missing == whole || ++read > kMostSteps) continue;
      if (search(own->begin_ns, own->end_ns)) return;
    }
  }
  // Between steps, or in one that has not ended.
  constexpr std::uint64_t kMostEvents = 1'000'000;
  if (facts.store.event_count() <= kMostEvents) search(store::Store::kBegin, store::Store::kEnd);
}

}  // namespace

void losses_of_events(const Facts& facts, Found& found) {
  const store::Store& store = facts.store;
  std::uint64_t dropped = 0, lost = 0;
  for (const store::RankRow& rank : store.ranks()) {
    dropped += rank.dropped;
    lost += rank.lost_messages;
  }
  if (dropped + lost == 0) return;
  std::uint64_t shed = 0;
  for (const store::Gap& gap : store.gaps()) shed += gap.shed;
  Finding finding{
      Severity::warning,
      "Events are missing",
      fmt::format("{} events dropped ({} by ranks, {} shed by a collector), {} messages lost on the "
                  "way; the lanes show where. Those stretches are unrecorded time; sums and averages are "
                  "of steps that lack nothing.",
                  dropped, dropped - std::min(shed, dropped), shed, lost),
      "Lower the detail level, or give the collector a core of its own.",
      0,
      ev::kNoId};
  finding.id = "events_missing";
  look_at_worst_gap(facts, finding);
  found.add(std::move(finding));
}

void wrong_emission(const Facts& facts, Found& found) {
  const store::Store& store = facts.store;
  const std::string where = store::unmatched_ends_by_rank(store.unmatched_ends());
  if (where.empty()) return;
  Finding finding{
      Severity::warning,
      "Spans end that never began",
      fmt::format("{}. No missing events explain it. The spans that they ended are in no figure.", where),
      "Look at what the program emits: a begin for every end, on the same lane, nested.",
      0,
      ev::kNoId};
  finding.id = "unmatched_ends";
  look_at_wrong_end(facts, finding);
  found.add(std::move(finding));
}

void damage(const Facts& facts, Found& found) {
  const Summary& summary = facts.summary;
  if (summary.problems.empty()) return;
  constexpr std::size_t kShown = 3;
  std::string evidence;
  for (std::size_t i = 0; i < std::min(kShown, summary.problems.size()); ++i) {
    evidence += summary.problems[i] + ". ";
  }
  if (summary.problems.size() > kShown)
    evidence += fmt::format("{} more: see `shardscope info`. ", summary.problems.size() - kShown);
  const bool empty = !facts.store.has_tables() && facts.store.event_count() == 0;
  Finding finding{
      Severity::warning,
      empty ? "Nothing is recorded" : "The recording is not whole",
      evidence + (empty ? "There are no figures." : "Figures are of what could be read."),
      empty ? "Record the run again; docs/attach.md says how a PyTorch training comes to be recorded."
            : "Look for a complete copy; if the run was cut off, this is all there is.",
      0,
      ev::kNoId};
  finding.id = "recording_damaged";
  found.add(std::move(finding));
}

/// Attributing delays requires the order in which ranks entered: report clocks whose error may exceed the
/// duration of collectives.
void clock_residuals(const Facts& facts, Found& found) {
  constexpr double kTrusted = 0.02;  // of a step
  const RankSummary* worst = nullptr;
  for (const RankSummary& rank : facts.summary.ranks) {
    if (worst == nullptr || rank.clock_residual_ns > worst->clock_residual_ns) worst = &rank;
  }
  if (facts.summary.ranks.size() < 2 || facts.step_ms <= 0) return;
  const double residual_ms = static_cast<double>(worst->clock_residual_ns) * 1e-6;
  if (facts.share(residual_ms) < kTrusted) return;
  Finding finding{
      Severity::info,
      fmt::format("The clock of rank {} is known to {:.2f} ms only", worst->rank, residual_ms),
      fmt::format("That is {:.0f} % of a step: which rank entered a collective last, and how long "
                  "others waited for it, may be wrong by as much.",
                  100 * facts.share(residual_ms)),
      "Record with the collector near the ranks, or longer: the estimate gets better with time.",
      0,
      worst->rank};
  finding.id = "clock_residual";
  // Where it waits most the order of entering matters most.
  look_at_worst(facts, finding, [](const RankStep& step) { return step.exposed.waiting_ns; });
  found.add(std::move(finding));
}

}  // namespace shardscope::analysis::findings
