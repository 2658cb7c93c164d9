// The sentences of a diagnosis: who waits for whom, what the others do, where ranks parted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/analysis/hang/hang.h"
#include "app/analysis/hang/issued_collectives.h"
#include "app/store/store.h"

namespace shardscope::analysis {

/// "Ranks 0, 1 wait in all-gather #12 for rank 2, since 1.2 s (at least 3 s). Rank 2 never entered it: it is
/// ..." `blocked`: of find_waits(); `oldest`: the one of these that lacks the culprit. `cut_off`: the
/// culprit's last events are lost. Sets the headline too.
[[nodiscard]] std::string who_waits(Hang& hang, const std::vector<const Issue*>& blocked, const Issue& oldest,
                                    std::int64_t now_ns, bool cut_off);
/// Where none waits in a recorded collective. `missed`: of without_waits().
[[nodiscard]] std::string no_rank_waits(const std::vector<RankState>& ranks, const RankState* missed);
/// " Ranks 0, 1, 2 failed with exit code 1.": of a run in which ranks differed and each failed by itself.
[[nodiscard]] std::string how_all_ended(const std::vector<RankState>& ranks);
/// "The ranks issued different collectives (size): rank 0 all-gather #3 ..., in layer.1; rank 1 ...": after
/// the rest. What a collective is for is in its own text.
void add_difference(const store::Store& store, Hang& out);
/// Why they issued different ones, or why one did not come: it ran other modules. Empty where they did not.
/// `failed_alike`: every rank failed by itself, which may be all that shows.
[[nodiscard]] std::string other_modules(const store::Store& store, std::int64_t from_ns, const Hang& hang,
                                        bool failed_alike);
/// Of a run that has just begun: who has sent nothing yet.
void add_absent(const store::Store& store, Watched watched, Hang& out);
/// "Rank 2 was frozen from 5.200 s to 26.400 s (21.2 s): none of its threads sent anything.": of the latest.
void add_stops(Hang& out);
/// " Rank 1 ended with RuntimeError: ...": the exception of the rank that the others differ from or wait for,
/// of an attached run. The others' are mostly of the connection that it had.
void add_exception(const store::Store& store, Hang& out);
/// What was done on purpose (--fault) must not pass for a failure.
void add_rehearsal(const store::Store& store, Hang& out);

}  // namespace shardscope::analysis
