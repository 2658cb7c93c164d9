// Requests that what lies around a moment be kept: of viewers, of the collector above, and of this one's
// owner for its nodes. Owns which moments were passed on to nodes; the owner takes the others from the board.
// Called by the collector's thread.
#pragma once

#include <string>

#include "app/collector/collector.h"
#include "app/collector/downstream_links.h"
#include "app/collector/passed_moments.h"
#include "app/collector/problems.h"
#include "app/collector/run_messages.h"
#include "app/collector/status_board.h"
#include "app/store/retention.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

class MomentRequests {
 public:
  /// All must outlive it.
  MomentRequests(const CollectorOptions& options, DownstreamLinks& down, StatusBoard& board,
                 RunMessages& messages, Problems& problems)
      : options_(options), down_(down), board_(board), messages_(messages), problems_(problems) {}

  /// Of a viewer; `by`: who that is. A moment later than now would keep nothing, and one without a time is
  /// now.
  void take_of_viewer(const wire::Text& request, const std::string& by);
  /// Of the collector above.
  void take_from_above(const wire::RankCommand& command);
  /// Of the owner, for the recorders of nodes.
  void take_node_requests();

 private:
  /// The recorders of nodes are asked to keep it too, and decide for themselves.
  void ask_nodes(const store::Moment& moment);

  const CollectorOptions& options_;
  DownstreamLinks& down_;
  StatusBoard& board_;
  RunMessages& messages_;
  Problems& problems_;
  PassedMoments passed_;
};

}  // namespace shardscope::collector
