// Selects the run that a collector receives, and refuses ranks of other runs ([Note: which run it is]).
#include <string>

#include "app/collector/collector_state.h"
#include "app/collector/now.h"

namespace shardscope::collector {

bool Collector::State::is_of_run(const wire::Header& from, RunIdentity::Proof proof) {
  const std::string supposed = identity.known() ? std::string() : identity.run_id();
  const RunIdentity::Verdict verdict = identity.judge(from.run_id, proof);
  if (header.run_id != identity.run_id()) header.run_id = identity.run_id();
  switch (verdict) {
    case RunIdentity::Verdict::ours:
      return true;
    case RunIdentity::Verdict::ours_instead:
      clear_hellos(supposed);
      return true;
    case RunIdentity::Verdict::undecided:
      return false;
    case RunIdentity::Verdict::other:
      break;
  }
  problems.reject("run", "rank " + std::to_string(from.rank), identity.refusal_of(from.run_id));
  return false;
}

/// Discards the hellos of a run that has published nothing while another has.
void Collector::State::clear_hellos(const std::string& run_id) {
  if (ranks.empty() && identity.world() == 0) return;
  problems.report("run", "run '" + run_id + "' has connected and published nothing: another is received");
  forget_unpublished();
  down.nodes().clear();
  identity.forget_world();
  if (Upstream* const above = relay.upstream()) above->clear_hellos();
}

/// Ranks of this run will send their hellos again.
void Collector::State::forget_unpublished() {
  ranks.forget_unpublished([this](const RankSession& rank) {
    if (rank.row.connected) pauses.rank_down(rank.row.rank, "has published nothing", now_s());
  });
  down.nodes().ranks_changed();
}

}  // namespace shardscope::collector
