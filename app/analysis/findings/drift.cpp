// Ranks that became slow during a run of hours, from what a recording with limits keeps of the run.
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

#include "app/analysis/findings/findings.h"
#include "app/analysis/quantity_text.h"
#include "app/analysis/rank_drift.h"
#include "app/store/rank_end.h"
#include "app/store/silences.h"

namespace shardscope::analysis::findings {
namespace {

using ev::Severity;

/// Whether, after the rank had become slow, it failed, or resumed after a silence (another process, or the
/// same one on another host); empty if neither.
std::string what_followed(const store::Store& store, const RankDrift& drift) {
  std::string out;
  for (const store::Message& message : store.messages()) {
    if (message.rank != drift.rank || message.at_ns < drift.since_low_ns) continue;
    // The last one: a rank may have had many silences.
    if (store::is_resumption_message(message))
      out = fmt::format(" At {}: {}.", time_text(message.at_ns), message.text);
  }
  for (const store::RankRow& row : store.ranks()) {
    if (row.rank != drift.rank) continue;
    const store::RankEnd end = store::rank_end(store, row);
    if (store::is_failure(end.how))
      out += fmt::format(" At {} {}.", time_text(end.at_ns), store::text_of(end));
  }
  return out;
}

std::string title_of(const RankDrift& drift) {
  if (drift.over)
    return fmt::format("Rank {} was a straggler ({:.0f} % longer{}), and no longer is", drift.rank,
                       drift.excess_pct ? drift.excess_pct->middle : drift.last_pct,
                       drift.excess_pct ? "" : " at last");
  switch (drift.shape) {
    case DriftShape::grows:
      return fmt::format("Rank {} becomes slower: {:.0f} % by now", drift.rank, drift.last_pct);
    case DriftShape::at_once:
      return fmt::format("Rank {} became a straggler at once", drift.rank);
    case DriftShape::always:
      break;
  }
  return fmt::format("Rank {} is a straggler in all hours that are kept", drift.rank);
}

std::string next_step_of(const RankDrift& drift) {
  if (drift.over) return "Look at what was changed when it ended; nothing needs to be done now.";
  if (drift.shape == DriftShape::grows)
    return "Look for what builds up on its host: temperature and clocks of its device, memory that is never "
           "freed, a disk or log that fills. A restart of the rank shows whether it is the process.";
  return "Look at what began on its host then: another process, a lower clock, a device or link that was "
         "replaced by a slower mode. Exchange the host if it stays.";
}

void report(const Facts& facts, const RankDrift& drift, Found& found) {
  const std::string text = text_of(drift) + what_followed(facts.store, drift);
  if (!drift.over && found.add_evidence("straggler", drift.rank, " " + text)) return;
  const double excess_ms = drift.own_ms - drift.others_ms;
  Finding finding;
  finding.id = "straggler";
  finding.title = title_of(drift);
  finding.evidence = text;
  finding.next_step = next_step_of(drift);
  finding.rank = drift.rank;
  if (!drift.over) return found.add_by_cost(facts, excess_ms, std::move(finding));
  if (facts.share(excess_ms) < kNote) return;
  finding.severity = Severity::info;
  finding.at_ns = drift.since_ns;
  finding.until_ns = drift.until_ns;
  found.add(std::move(finding));
}

enum class DriftState : std::uint8_t { ongoing, ended };

void report_drifts(DriftState state, const Facts& facts, Found& found) {
  if (!facts.summary.rank_drifts) return;
  for (const RankDrift& drift : *facts.summary.rank_drifts)
    if (drift.over == (state == DriftState::ended)) report(facts, drift, found);
}

}  // namespace

void drifting_ranks(const Facts& facts, Found& found) { report_drifts(DriftState::ongoing, facts, found); }
/// After all other rules: a past drift does not explain the recorded steps.
void past_stragglers(const Facts& facts, Found& found) { report_drifts(DriftState::ended, facts, found); }

}  // namespace shardscope::analysis::findings
