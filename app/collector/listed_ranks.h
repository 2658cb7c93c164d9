// The ranks that collectors of nodes list in their hellos (wire::RelayHello): which are present, which of
// them silent. Keeps what the rank sessions know by that up to date, and lists this collector's own ranks for
// the one above. It owns nothing; called by the collector's thread.
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

  /// Silences that a node's hello begins or ends. Each is called before the hello counts as a message of the
  /// rank: how long it was silent follows from its last one.
  struct OnSilence {
    std::function<void(RankSession&)> begins, ends;
  };
  /// A hello of the node's collector at `route`. Its ranks are gone over where it differs from the one
  /// before, or where something of them has changed here.
  void take(Nodes::Node& node, const std::string& route, const wire::RelayHello& hello, double now_s,
            const OnSilence& on_silence);
  /// The node does not list its ranks any more: each has a time again by which it is missed.
  void forget(Nodes::Node& node, double now_s);
  /// Something of a rank has changed that its node's next hello is to be compared with.
  void rank_changed(const RankSession& rank);
  /// For the collector above: ranks that are connected here, and which of them are silent.
  void add_to(wire::RelayHello& hello, double now_s) const;

 private:
  using Ranges = std::vector<wire::RelayHello::Range>;
  void take_list(Nodes::Node& node, const std::string& route, const wire::RelayHello& hello, double now_s,
                 const OnSilence& on_silence);
  /// No rank refers to the node's last list any more. Returns those that it had as present: some may be
  /// listed again before the others get a time.
  Ranges clear_listing(Nodes::Node& node);
  void reschedule_unlisted(const Ranges& before, double now_s);

  RankTable& ranks_;
  Nodes& nodes_;
};

}  // namespace shardscope::collector
