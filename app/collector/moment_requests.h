// Requests to keep the interval around a moment: from viewers, from the collector above, and from this
// collector's owner for its nodes. Stores the moments already passed on to nodes; the owner takes the others
// from the board. Called by the collector's thread.
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

  /// Handles a viewer's request; `by`: its name. A moment later than now would keep nothing; one without a
  /// time is now.
  void take_of_viewer(const wire::Text& request, const std::string& by);
  /// Handles a request of the collector above.
  void take_from_above(const wire::RankCommand& command);
  /// Handles the owner's requests for the recorders of nodes.
  void take_node_requests();

 private:
  /// Asks the recorders of nodes to keep it too; each decides for itself.
  void ask_nodes(const store::Moment& moment);

  const CollectorOptions& options_;
  DownstreamLinks& down_;
  StatusBoard& board_;
  RunMessages& messages_;
  Problems& problems_;
  PassedMoments passed_;
};

}  // namespace shardscope::collector
