// The sentences of a diagnosis: which rank waits for which, what the others do, where ranks diverged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/analysis/hang/hang.h"
#include "app/analysis/hang/issued_collectives.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// "Ranks 0, 1 wait in all-gather #12 for rank 2, since 1.2 s (at least 3 s). Rank 2 never entered it: it is
/// ..." `blocked`: from find_waits(); `oldest`: the oldest of these that lacks the culprit. `cut_off`: the
/// culprit's last events are lost. Sets hang.headline as well.
[[nodiscard]] std::string who_waits(Hang& hang, const std::vector<const Issue*>& blocked, const Issue& oldest,
                                    std::int64_t now_ns, bool cut_off);
/// For a run in which no rank waits in a recorded collective. `missed`: from without_waits().
[[nodiscard]] std::string no_rank_waits(const std::vector<RankState>& ranks, const RankState* missed);
/// " Ranks 0, 1, 2 failed with exit code 1.": for a run in which ranks differed and each failed by itself.
[[nodiscard]] std::string how_all_ended(const std::vector<RankState>& ranks);
/// Appends "The ranks issued different collectives (size): rank 0 all-gather #3 ..., in layer.1; rank 1 ...".
/// A collective's own text has its module.
void add_difference(const store::Store& store, Hang& out);
/// Why ranks issued different collectives, or one is missing: a rank ran other modules. Empty if not.
/// `failed_alike`: every rank failed by itself, possibly without other evidence.
[[nodiscard]] std::string other_modules(const store::Store& store, std::int64_t from_ns, const Hang& hang,
                                        bool failed_alike);
/// For a run that has just begun: names the ranks that have sent nothing yet.
void add_absent(const store::Store& store, Watched watched, Hang& out);
/// "Rank 2 was frozen from 5.200 s to 26.400 s (21.2 s): none of its threads sent anything.", for the latest.
void add_stops(Hang& out);
/// " Rank 1 ended with RuntimeError: ...": the exception of the rank that differs or is waited for, of an
/// attached run. Exceptions of the other ranks are mostly about their connection to it.
void add_exception(const store::Store& store, Hang& out);
/// States an injected fault (--fault), which must not be mistaken for a failure.
void add_rehearsal(const store::Store& store, Hang& out);

}  // namespace shardscope::analysis
