// what-if for findings: plays each finding's change, so that only changes with a gain are advised.
#pragma once

#include <cstddef>
#include <string>

#include "app/analysis/advice.h"
#include "app/store/store.h"

namespace shardscope::cli {

/// Most plays of one recording, each of four steps; none begins after kAdviceSeconds.
inline constexpr std::size_t kAdvicePlays = 40;
inline constexpr double kAdviceSeconds = 30;

/// Player for the recording at `path`, from which `store` was read and which must outlive it. The cost model
/// is fitted at the first play. An attached DeepSpeed run is replayed as `what-if` does, without a peak of
/// memory. Runs that cannot be played (another framework, too little detail, too large for the time) are
/// refused with the reason; so are runs whose recorded step the model misses by much. Throws UserError when
/// the user interrupts it.
[[nodiscard]] analysis::Player player_of(const std::string& path, const store::Store& store,
                                         std::size_t plays = kAdvicePlays);
/// Refuses each play: a live run is not played.
[[nodiscard]] analysis::Player player_of_live_run();

}  // namespace shardscope::cli
