#include "app/collector/upstream_relay.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "app/collector/now.h"

namespace shardscope::collector {

void UpstreamRelay::start(zmq::context_t& context, UpstreamOptions options, Send send) {
  send_ = std::move(send);
  options.command = [this](std::uint32_t rank, const wire::RankCommand& command) {
    pass_command(rank, command);
  };
  upstream_.emplace(context, std::move(options));
}

bool UpstreamRelay::forward() {
  const double own_s = pacing_.pace().iteration_s;
  upstream_->pump(now_s(), pacing_.watched() == Watch::idle ? std::max(own_s, upstream_->pack_s()) : own_s);
  const bool sheds_more = board_.shed_upstream(upstream_->shed());
  const bool all_ended = !ranks_.empty() && ranks_.size() >= identity_.local_world() &&
                         ranks_.counts().finished() == ranks_.size();
  board_.set_finished(progress_.over(all_ended, upstream_->sent(), upstream_->connected(),
                                     upstream_->drained(), now_s(), linger_s_));
  return sheds_more;
}

void UpstreamRelay::pass_command(std::uint32_t rank, wire::RankCommand command) {
  RankSession* const known = ranks_.known(rank);
  if (known == nullptr) return;
  // Ranks know this collector's numbers only; the answer is relayed with the upper collector's number.
  const std::uint64_t theirs = std::exchange(command.id, 0);
  command = pauses_.numbered(command);
  if (command.kind == wire::RankCommand::Kind::prepare_pause)
    progress_.pause_passed_on(rank, command.id, theirs);
  send_(*known, command);
}

void UpstreamRelay::pass_control(const wire::Message& message) {
  wire::Body body = message.body;
  if (auto* prepared = std::get_if<wire::Prepared>(&body)) {
    const auto theirs = progress_.pause_answered(message.header.rank, prepared->command);
    if (!theirs) return;
    prepared->command = *theirs;
  }
  upstream_->control(message.header, std::move(body), now_s());
}

}  // namespace shardscope::collector
