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
  /// Of a rank that was silent, or whose control thread was not running, for long enough to report it: before
  /// the message that ends it counts as received. The rest is reported by the node of a rank that is relayed.
  void end_silence(RankSession& rank, double now, store::Resumption how);
  /// A text of its node; `incarnation`: of the process that it is about. A node may report that a rank is not
  /// silent before the hello of the process that ended the silence gets here: until a text ends it as well,
  /// that hello does. Where the hello was here first, the text is of a process that has been replaced, and
  /// the silence ends with it.
  void note_silence_of_node(RankSession& rank, std::uint64_t incarnation, const std::string& text);
  /// How a silence ends where it is the same process that sends again.
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
