// Advice that is tried before it is given: what-if replays the changes of each finding, and only options that
// gain are advised. The caller provides the player; this file depends on no simulator.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/analysis/setting_search.h"
#include "app/analysis/summary.h"

namespace shardscope::analysis {

/// Replays a recorded run with `changes` (none: as recorded); PlayOutcome::refused says why it cannot.
using Player = std::function<PlayOutcome(const std::vector<Change>&)>;

/// What became of an option of a finding.
struct TriedOption {
  std::string finding;  ///< its id
  std::vector<Change> changes;
  PlayOutcome outcome;   ///< `refused` has the reason where nothing is predicted
  bool advised = false;  ///< the finding advises it
};
/// All options, in the order of the findings; the same changes of a finding once.
struct TriedAdvice {
  PlayOutcome recorded;  ///< of the recorded settings
  std::vector<TriedOption> options;
};

/// [Note: advice that was tried]
/// Every option of every finding is replayed. A finding that costs time gets the option with the shortest
/// step, one that costs memory the option with the smallest peak; of options equal within 1 % the first.
/// Memory is scarce where ZeRO is used: an option with at least half of the largest gain and at most 10 %
/// more device peak is preferred to the largest gain; where the peak is not known, the part of it that is
/// counts. An option that gains less than 2 % (for a step also
/// less than 0.1 ms) is not advised: the finding then states what was tried, and becomes a note where nothing
/// else helps. Where communication is what it costs, an option that saves bytes of it and makes no step
/// longer is advised for these bytes, and says that it is not for time. Invalid
/// settings are never advised. If no option could be replayed, the first valid one stays, with the reason why
/// its gain is not predicted; so it does where memory is to be saved and the player knows no peak: the
/// finding then has what the option does to the step and to the part that is known. Two findings never advise
/// different values of a key: the one that gains less withdraws. A second call chooses anew.
TriedAdvice try_advice(std::vector<Finding>& findings, const Player& player);

/// findings_json() with `options` of each finding: what became of each, or why it was not replayed.
[[nodiscard]] std::string findings_json(const std::vector<Finding>& findings, bool simulated,
                                        const TriedAdvice& tried);

/// "98.5 ms of a step (what-if: ...)", or why no gain is known; empty if no setting is advised or was tried.
[[nodiscard]] std::string gain_text(const Finding& finding);

/// "12.0 MiB" or "12.0 MiB of communication in a step"; empty if the finding costs no bytes.
[[nodiscard]] std::string bytes_cost_text(const Finding& finding);

/// Adds an option to the finding; the first one is its advice until try_advice().
void advise(Finding& finding, Advice option);

}  // namespace shardscope::analysis
