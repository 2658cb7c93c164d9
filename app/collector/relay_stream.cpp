#include "app/collector/relay_stream.h"

#include <variant>

#include "app/collector/batch_joining.h"

namespace shardscope::collector {

namespace {
zmq::message_t to_message(const wire::Frame& frame) { return {frame.data(), frame.size()}; }
}  // namespace

// [Note: joined batches]
// A batch costs the collector above as much as its events, or more: while that one only records, a rank's
// waiting batches are joined into one. Not batches that another collector of this node may have relayed
// before it ended: the rank sends them again, and the collector above recognizes them by the rank's message
// numbers, of which a joined batch has only the first and last. And a batch has one offset of the rank's
// clock, that of its last event: only for a rank that reads this node's own clock that loses no accuracy.
wire::Body RelayStream::take_next() {
  wire::Body body = queue.pop();
  auto* const batch = std::get_if<wire::Batch>(&body);
  if (batch == nullptr || batch->events.empty() || !clock().is_same_clock() ||
      static_cast<std::int64_t>(batch->events.front().ticks) <= began_ns)
    return body;
  while (!queue.empty()) {
    const auto* const behind = std::get_if<wire::Batch>(&queue.front());
    if (behind == nullptr || !may_join(*batch, *behind)) break;
    join(*batch, std::get<wire::Batch>(queue.pop()));
  }
  return body;
}

void RelayStream::encode_next() {
  wire::Message message;
  message.header = header;
  if (const std::uint64_t source_next = queue.front_source_next(); source_next != 0) {
    message.header.source = source;
    message.header.source_next = source_next;
  }
  message.body = take_next();
  ++header.sequence;
  std::uint64_t events = 0;
  if (auto* batch = std::get_if<wire::Batch>(&message.body); batch != nullptr) {
    events = batch->events.size();
    if (batch->relay) {
      const std::int64_t at =
          batch->events.empty() ? batch->end_ns : static_cast<std::int64_t>(batch->events.back().ticks);
      batch->relay->offset_ns = clock().offset_ns(at);
      batch->relay->residual_ns = clock().residual_ns(at);
      const Totals& before = totals_sent.empty() ? confirmed : totals_sent.back();
      const wire::Relay& relay = *batch->relay;
      if (before.dropped != relay.source_dropped_total || before.lost != relay.lost_total)
        totals_sent.push_back({message.header.sequence, relay.source_dropped_total, relay.lost_total});
    }
  }
  zmq::message_t encoded = to_message(wire::encode(message));
  window.add(message.header.sequence, encoded, events);
}

void RelayStream::confirm(std::uint64_t next_message) {
  window.confirm(next_message);
  for (; !totals_sent.empty() && totals_sent.front().sequence < next_message; totals_sent.pop_front())
    confirmed = totals_sent.front();
}

}  // namespace shardscope::collector
