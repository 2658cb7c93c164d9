#include "app/collector/run_messages.h"

namespace shardscope::collector {

void RunMessages::report_rank(const RankSession& rank, Severity severity, const std::string& text) {
  const std::int64_t now_ns = clock_now();
  record_at(rank.row.rank, now_ns, severity, text);
  Upstream* const upstream = relay_.upstream();
  if (upstream == nullptr || !rank.has_published() || !rank.is_current(rank.control_incarnation)) return;
  wire::Message message;
  message.header = header_;
  message.header.rank = rank.row.rank;
  message.header.incarnation = rank.control_incarnation;
  message.header.sequence = rank.next_sequence() - 1;  // as its last one
  message.body = wire::Text{now_ns - rank.clock.offset_ns(now_ns), severity, text};
  upstream->published(rank, message, 0);
}

}  // namespace shardscope::collector
