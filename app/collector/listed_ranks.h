// The ranks that nodes' collectors list in their hellos (wire::RelayHello): present ones, and which of them
// are silent. Updates the rank sessions from these lists, and lists this collector's own ranks for the
// collector above. Owns nothing; called by the collector's thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/collector/nodes.h"
#include "app/collector/rank_session.h"
#include "app/collector/rank_table.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

class ListedRanks {
 public:
  /// Both must outlive it.
  ListedRanks(RankTable& ranks, Nodes& nodes) : ranks_(ranks), nodes_(nodes) {}

  /// Callbacks for silences that a node's hello begins or ends. Called before the hello counts as a message
  /// of the rank: the silence's duration is computed from the rank's last message.
  struct OnSilence {
    std::function<void(RankSession&)> begins, ends;
  };
  /// Handles a hello of the node's collector at `route`. Iterates over its ranks unless the hello is equal to
  /// the stored one and none of its ranks has changed here (RankListing::settled).
  void take(Nodes::Node& node, const std::string& route, const wire::RelayHello& hello, double now_s,
            const OnSilence& on_silence);
  /// The node lists its ranks no longer: each gets its own deadline for silence again.
  void forget(Nodes::Node& node, double now_s);
  /// A rank has changed here: its node's next hello is compared rank by rank.
  void rank_changed(const RankSession& rank);
  /// Adds the ranks connected here, and which of them are silent, to a hello for the collector above.
  void add_to(wire::RelayHello& hello, double now_s) const;

 private:
  using Ranges = std::vector<wire::RelayHello::Range>;
  void take_list(Nodes::Node& node, const std::string& route, const wire::RelayHello& hello, double now_s,
                 const OnSilence& on_silence);
  /// Detaches all ranks from the node's last list. Returns the ranges that it listed as present: some may be
  /// listed again before the others get their own deadlines.
  Ranges clear_listing(Nodes::Node& node);
  void reschedule_unlisted(const Ranges& before, double now_s);

  RankTable& ranks_;
  Nodes& nodes_;
};

}  // namespace shardscope::collector
