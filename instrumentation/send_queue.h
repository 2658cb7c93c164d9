// What a rank, or a node's collector for it, has not been able to send yet, within a bound. When the bound is
// reached the least important events go first, oldest first, and each one is counted where it was; tables and
// the end of the run are never shed. Texts of a rank have an eighth of the bound for themselves.
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
  /// What happens to steps and watermarks of memory when there is nothing else left to shed.
  enum class Last : std::uint8_t {
    /// They go as well, steps after all else: a process that trains has a bound on its memory whatever
    /// happens.
    shed,
    /// They stay: the owner looks at full() and takes no more in.
    keep,
  };
  explicit SendQueue(std::size_t limit_bytes, Last last = Last::shed) : limit_(limit_bytes), last_(last) {}
  void set_limit(std::size_t bytes);
  /// Over its limit, with nothing left that may be shed.
  [[nodiscard]] bool full() const noexcept { return bytes_ > limit_; }

  /// `batch.dropped_here` is counted; `dropped_total` is filled in by pop().
  void push(wire::Batch batch);
  /// Tables, texts, names, the end. Where nothing is kept at any price (Last::shed) texts beyond an eighth of
  /// the limit go, the oldest first, errors last, and one in their place says how many.
  /// `source_next`: of a message that is passed on (wire::Header), for front_source_next().
  void push(wire::Body body, std::uint64_t source_next = 0);
  /// Before everything else: tables for a collector that has just asked for them.
  void push_front(wire::Body body);
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  /// Tables wait in it: a repeated request for them needs no answer of its own.
  [[nodiscard]] bool has_tables() const noexcept { return tables_ != 0; }
  [[nodiscard]] wire::Body pop();
  /// What pop() will return, but for `dropped_total`. Not of an empty one.
  [[nodiscard]] const wire::Body& front() const noexcept { return entries_.front().body; }
  /// As it was pushed with; 0: with none. Not of an empty one.
  [[nodiscard]] std::uint64_t front_source_next() const noexcept { return entries_.front().source_next; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t events() const noexcept;  ///< that wait in it
  /// Events shed here since the beginning.
  [[nodiscard]] std::uint64_t shed() const noexcept { return shed_; }

 private:
  struct Entry {
    wire::Body body;
    std::array<std::uint32_t, kShedClasses> counts{};  ///< of a batch's events, once `counted`
    bool counted = false;
    std::size_t bytes = 0;
    std::uint64_t stands_for = 0;  ///< a text: number of shed texts that it replaces
    std::uint64_t source_next = 0;
  };
  [[nodiscard]] static std::size_t size_of(const wire::Body& body) noexcept;
  /// Fills `counts`: only what is about to be shed from pays for it.
  static void count(Entry& entry) noexcept;
  void shed_to(std::size_t target);
  void count_gone(Entry& entry, std::uint8_t victim, std::uint32_t gone, std::int64_t first_ns,
                  std::int64_t last_ns);
  void join_empty();
  void shed_texts();

  std::deque<Entry> entries_;
  std::size_t limit_;
  Last last_;
  std::size_t bytes_ = 0, text_bytes_ = 0;  ///< the latter: part of the former
  std::size_t tables_ = 0;
  std::uint64_t shed_ = 0;
  std::uint64_t dropped_sent_ = 0;  ///< `dropped_total` of the last batch that left
};

}  // namespace shardscope::instrumentation
