// Messages that were sent but not yet confirmed by the collector. A cut connection loses what libzmq and the
// kernel had buffered; messages in this window are resent over the next one, in order. The bytes are shared
// with libzmq while it holds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <zmq.hpp>

namespace shardscope::instrumentation {

class SentWindow {
 public:
  /// The window's part of a queue of `queue_bytes`: enough for a link that is confirmed once per megabyte,
  /// and a small part of the queue.
  [[nodiscard]] static constexpr std::size_t part_of(std::size_t queue_bytes) noexcept {
    constexpr std::size_t kMost = std::size_t{8} << 20;
    return queue_bytes / 4 < kMost ? queue_bytes / 4 : kMost;
  }
  explicit SentWindow(std::size_t bytes) noexcept : limit_(bytes) {}
  void set_limit(std::size_t bytes) noexcept { limit_ = bytes; }

  /// Send nothing more before a confirmation. One message always fits.
  [[nodiscard]] bool full() const noexcept { return bytes_ >= limit_ && !entries_.empty(); }
  /// Call before `message` is sent for the first time; `sequence`: one more than the previous.
  void add(std::uint64_t sequence, zmq::message_t& message, std::uint64_t events);
  /// The collector has received every message before `next`.
  void confirm(std::uint64_t next);
  void clear() { confirm(UINT64_MAX); }

  /// The connection was cut: all messages must be resent.
  void rewind() noexcept { unsent_ = entries_.size(); }
  /// The next message to send or resend; nullopt: all are sent.
  [[nodiscard]] std::optional<zmq::message_t> next();
  void sent() noexcept { --unsent_; }

  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] bool all_sent() const noexcept { return unsent_ == 0; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }

 private:
  struct Entry {
    std::uint64_t sequence = 0, events = 0;
    zmq::message_t message;
  };
  std::size_t limit_;
  std::deque<Entry> entries_;
  std::size_t unsent_ = 0;  ///< number of entries at the end of `entries_`
  std::size_t bytes_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace shardscope::instrumentation
