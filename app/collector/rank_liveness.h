// Liveness of ranks: connected, silent or lost, and the messages of the run about it. Owns nothing: the state
// is in the rank's session. Called by the collector's thread.
#pragma once

#include <cstdint>
#include <string>

#include "app/collector/listed_ranks.h"
#include "app/collector/pause_coordinator.h"
#include "app/collector/rank_session.h"
#include "app/collector/rank_table.h"
#include "app/collector/run_messages.h"
#include "app/collector/run_record.h"
#include "app/collector/upstream_relay.h"
#include "app/store/silences.h"

namespace shardscope::collector {

class RankLiveness {
 public:
  /// All must outlive it.
  RankLiveness(RankTable& ranks, ListedRanks& listed, PauseCoordinator& pauses, RunRecord& record,
               UpstreamRelay& relay, RunMessages& messages)
      : ranks_(ranks),
        listed_(listed),
        pauses_(pauses),
        record_(record),
        relay_(relay),
        messages_(messages) {}

  /// The rank's process or connection is gone; `why`: a predicate. Flushes its pending events.
  void lost(RankSession& rank, const std::string& why);
  /// Checks whether the process of a connected rank has ended or is silent.
  void check(RankSession& rank, double now);
  /// The same where the process is not visible from this host.
  void check_silence(RankSession& rank, double now);
  void begin_silence(RankSession& rank, double now);
  /// Ends and reports the silence of a rank, also one too short for silent(). Call before the message that
  /// ends it counts as received. Of a relayed rank only a restart is reported: its node reports other ends.
  void end_silence(RankSession& rank, double now, store::Resumption how);
  /// Handles a text that a rank's node relays, where it reports the begin or end of a silence; `incarnation`:
  /// of the silent process. If that process is replaced, the new one's hello may arrive before or after the
  /// text. After it: the hello ends the silence, unless another text did before. Before it: the text is about
  /// a replaced process, and the silence ends here.
  void note_silence_of_node(RankSession& rank, std::uint64_t incarnation, const std::string& text);
  /// The kind of resumption where the same process sends again.
  [[nodiscard]] static store::Resumption as_before(const RankSession& rank) noexcept {
    return rank.pid_seen ? store::Resumption::on_this_host : store::Resumption::on_another_host;
  }

 private:
  RankTable& ranks_;
  ListedRanks& listed_;
  PauseCoordinator& pauses_;
  RunRecord& record_;
  UpstreamRelay& relay_;
  RunMessages& messages_;
};

}  // namespace shardscope::collector
