#include "instrumentation/sent_window.h"

#include <algorithm>

namespace shardscope::instrumentation {

/// Entries are in order of sequence, sent ones first: [0, size - unsent_) are sent, the rest are not. Not
/// thread-safe.
void SentWindow::add(std::uint64_t sequence, zmq::message_t& message, std::uint64_t events) {
  Entry& entry = entries_.emplace_back();
  entry.sequence = sequence;
  entry.events = events;
  // Shares the reference-counted buffer; no byte is copied. It exists until confirm(), even after libzmq has
  // released it.
  entry.message.copy(message);
  // Entries count too: many small messages would otherwise exceed the limit unnoticed.
  bytes_ += message.size() + sizeof(Entry);
  events_ += events;
  ++unsent_;
}

/// Confirmations are cumulative: `next` covers everything before it, so a lost or repeated one is harmless,
/// and an older one removes nothing.
void SentWindow::confirm(std::uint64_t next) {
  while (!entries_.empty() && entries_.front().sequence < next) {
    bytes_ -= entries_.front().message.size() + sizeof(Entry);
    events_ -= entries_.front().events;
    entries_.pop_front();
  }
  // After rewind() the collector may confirm messages that are still to be resent: they need not be.
  unsent_ = std::min(unsent_, entries_.size());
}

/// The entry stays until it is confirmed: if the socket refuses a message, the same one is sent again, and
/// sent() advances only after a successful send.
std::optional<zmq::message_t> SentWindow::next() {
  if (unsent_ == 0) return std::nullopt;
  std::optional<zmq::message_t> message(std::in_place);
  message->copy(entries_[entries_.size() - unsent_].message);
  return message;
}

}  // namespace shardscope::instrumentation
