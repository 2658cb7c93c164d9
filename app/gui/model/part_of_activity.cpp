#include "app/gui/model/part_of_activity.h"

namespace shardscope::gui {

analysis::TimePartition part_of(const analysis::RankActivity& whole, std::int64_t begin_ns,
                                std::int64_t end_ns) {
  analysis::RankActivity part;
  part.rank = whole.rank;
  part.window = {begin_ns, end_ns};
  part.known = whole.known;
  for (const auto set : {&analysis::RankActivity::paused, &analysis::RankActivity::checkpoint,
                         &analysis::RankActivity::missing, &analysis::RankActivity::compute,
                         &analysis::RankActivity::comm, &analysis::RankActivity::copy})
    part.*set = (whole.*set).clip(begin_ns, end_ns);
  analysis::TimePartition out = analysis::partition_of(part);
  if (whole.known && !out.known()) {
    const analysis::IntervalSet elsewhere = part.paused.unite(part.checkpoint).unite(part.missing);
    out.unrecorded_ns = part.missing.length();
    out.comm_ns = out.exposed_comm_ns = part.comm.length();
    out.exposed_copy_ns = part.copy.subtract(part.comm).length();
    out.idle_ns =
        analysis::IntervalSet({part.window}).subtract(elsewhere.unite(part.comm).unite(part.copy)).length();
  }
  return out;
}

}  // namespace shardscope::gui
