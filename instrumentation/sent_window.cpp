#include "instrumentation/sent_window.h"

#include <algorithm>

namespace shardscope::instrumentation {

void SentWindow::add(std::uint64_t sequence, zmq::message_t& message, std::uint64_t events) {
  Entry& entry = entries_.emplace_back();
  entry.sequence = sequence;
  entry.events = events;
  entry.message.copy(message);
  bytes_ += message.size() + sizeof(Entry);
  events_ += events;
  ++unsent_;
}

void SentWindow::confirm(std::uint64_t next) {
  while (!entries_.empty() && entries_.front().sequence < next) {
    bytes_ -= entries_.front().message.size() + sizeof(Entry);
    events_ -= entries_.front().events;
    entries_.pop_front();
  }
  unsent_ = std::min(unsent_, entries_.size());
}

std::optional<zmq::message_t> SentWindow::next() {
  if (unsent_ == 0) return std::nullopt;
  std::optional<zmq::message_t> message(std::in_place);
  message->copy(entries_[entries_.size() - unsent_].message);
  return message;
}

}  // namespace shardscope::instrumentation
