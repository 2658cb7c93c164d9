// Advice that was tried before it is given: what findings would change is played by what-if, and only what
// gains is advised. Who can play a run passes the player in; this part knows none.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/analysis/setting_search.h"
#include "app/analysis/summary.h"

namespace shardscope::analysis {

/// Plays a recorded run with these changes, with none as it was recorded; `refused` says why it could not.
using Player = std::function<PlayOutcome(const std::vector<Change>&)>;

/// [Note: advice that was tried]
/// Every option of every finding is played. Where the finding costs time the one with the shortest step is
/// advised, where it costs memory the one with the smallest peak; of those alike within 1 % the first. Memory
/// is short where ZeRO is used: what brings half of the most for at most a tenth more of the device's peak
/// goes before what brings it all. What gains less than 2 % (of a step also less than 0.1 ms) is not advised:
/// the finding then says what was tried, and is a note where nothing else can be done about it. What costs
/// communication that may be hidden is a gain already where no step gets longer. Settings that no run can
/// have are never advised; of those that were not played for another reason the first stays where none was
/// played, with that reason. Two findings never advise two values of a key: the one that gains less gives
/// way. Where nothing can be played the first option stays, and the finding says why its gain is not
/// predicted. What an earlier call chose is chosen anew.
void try_advice(std::vector<Finding>& findings, const Player& player);

/// "98.5 ms of a step (what-if: ...)", or why no gain is known; empty where no setting is advised or was
/// tried.
[[nodiscard]] std::string gain_text(const Finding& finding);

/// "12.0 MiB", of communication "12.0 MiB of communication in a step"; empty where it costs no bytes.
[[nodiscard]] std::string bytes_cost_text(const Finding& finding);

/// One more option; the first is what is advised until what-if was asked.
void advise(Finding& finding, Advice option);

}  // namespace shardscope::analysis
