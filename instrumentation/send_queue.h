// Bounded queue of unsent messages of a rank, or of a node's collector for it. At the limit the least
// important events are dropped first, oldest first, and counted at their place in time; tables and the end of
// the run are never shed. A rank's texts have a limit of their own: an eighth of the queue's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <variant>

#include "instrumentation/shedding.h"
#include "instrumentation/wire.h"

namespace shardscope::instrumentation {

class SendQueue {
 public:
  /// What to do with steps and memory watermarks when nothing else is left to shed.
  enum class Last : std::uint8_t {
    /// Shed them too, steps last: a training process must have bounded memory in all
    /// cases.
    shed,
    /// Keep them: the owner checks full() and stops pushing.
    keep,
  };
  explicit SendQueue(std::size_t limit_bytes, Last last = Last::shed) : limit_(limit_bytes), last_(last) {}
  void set_limit(std::size_t bytes);
  /// Over the limit, with nothing left that may be shed.
  [[nodiscard]] bool full() const noexcept { return bytes_ > limit_; }

  /// `batch.dropped_here` is counted; `dropped_total` is filled in by pop().
  void push(wire::Batch batch);
  /// Tables, texts, names, the end. With Last::shed texts beyond an eighth of the limit are dropped, oldest
  /// first, errors last, and a note replaces them with their number. `source_next`: of a relayed message
  /// (wire::Header), for front_source_next().
  void push(wire::Body body, std::uint64_t source_next = 0);
  /// Puts the body first: tables for a collector that has just requested them.
  void push_front(wire::Body body);
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  /// Tables are queued: a repeated request needs no further answer.
  [[nodiscard]] bool has_tables() const noexcept { return tables_ != 0; }
  [[nodiscard]] wire::Body pop();
  /// What pop() will return, except for `dropped_total`. The queue must not be empty.
  [[nodiscard]] const wire::Body& front() const noexcept { return entries_.front().body; }
  /// The value given to push(); 0: none. The queue must not be empty.
  [[nodiscard]] std::uint64_t front_source_next() const noexcept { return entries_.front().source_next; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t events() const noexcept;  ///< in the queue
  /// Events shed by this queue so far.
  [[nodiscard]] std::uint64_t shed() const noexcept { return shed_; }

 private:
  struct Entry {
    wire::Body body;
    std::array<std::uint32_t, kShedClasses> counts{};  ///< of a batch's events, if `counted`
    bool counted = false;
    std::size_t bytes = 0;
    std::uint64_t stands_for = 0;  ///< a note: number of shed texts that it replaces
    std::uint64_t source_next = 0;
  };
  [[nodiscard]] static std::size_t size_of(const wire::Body& body) noexcept;
  /// Fills `counts`; called only for batches that are about to be shed from.
  static void count(Entry& entry) noexcept;
  void shed_to(std::size_t target);
  void count_gone(Entry& entry, std::uint8_t victim, std::uint32_t gone, std::int64_t first_ns,
                  std::int64_t last_ns);
  void join_empty();
  void shed_texts();

  std::deque<Entry> entries_;
  std::size_t limit_;
  Last last_;
  std::size_t bytes_ = 0, text_bytes_ = 0;  ///< text_bytes_ is a part of bytes_
  std::size_t tables_ = 0;
  std::uint64_t shed_ = 0;
  std::uint64_t dropped_sent_ = 0;  ///< `dropped_total` of the last sent batch
};

}  // namespace shardscope::instrumentation
