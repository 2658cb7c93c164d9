// Progress of a CPU stream: the number of its work items that have run. An event is a stream and a position
// in it, so recording one costs nothing and re-recording it cannot disturb waiters.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>

namespace shardscope::device {

class StreamProgress {
 public:
  [[nodiscard]] bool reached(std::uint64_t position) const noexcept { return completed_.load() >= position; }

  /// Blocks until the stream has reached `position`; returns a failure before it, or null.
  [[nodiscard]] std::exception_ptr wait(std::uint64_t position) {
    if (!reached(position)) {
      std::unique_lock lock(mutex_);
      while (!reached(position)) {
        // Published before the second check, so that either this thread sees the progress or advance() sees
        // `wanted_`.
        if (position < wanted_.load()) wanted_.store(position);
        if (reached(position)) break;
        moved_.wait(lock);
      }
    }
    return failure_before(position);
  }

  /// From now on the number of completed items is also stored in `word`, which must outlive this object: a
  /// device can wait for memory, not for a condition variable. Only the first word is used; returns the one
  /// in use.
  std::atomic<std::uint64_t>* mirror_to(std::atomic<std::uint64_t>& word) noexcept {
    std::atomic<std::uint64_t>* none = nullptr;
    if (!mirror_.compare_exchange_strong(none, &word)) return none;
    raise(word, completed_.load());
    return &word;
  }
  [[nodiscard]] std::atomic<std::uint64_t>* mirror() const noexcept { return mirror_.load(); }

  /// Called by the worker after item number `position` (from 1).
  void advance(std::uint64_t position) noexcept {
    completed_.store(position);
    if (auto* word = mirror_.load()) raise(*word, position);
    // Only a position that is waited for wakes a waiter: a host that waits for the last of a thousand
    // items is woken once.
    if (position < wanted_.load()) return;
    {
      const std::lock_guard lock(mutex_);
      wanted_.store(kNone);
    }
    // After unlocking the mutex: with few cores the woken thread preempts this one at once, and would find
    // the mutex locked and sleep again.
    moved_.notify_all();
  }

  /// Only the first failure is kept; `position` is the item that failed and is not yet completed.
  void fail(std::uint64_t position, std::exception_ptr failure) noexcept {
    const std::lock_guard lock(mutex_);
    if (failed_at_.load() != kNone) return;
    failure_ = std::move(failure);
    failed_at_.store(position);
  }
  [[nodiscard]] bool failed() const noexcept { return failed_at_.load(std::memory_order_relaxed) != kNone; }

  /// The failure at or before `position`, or null; never waits.
  [[nodiscard]] std::exception_ptr failure_until(std::uint64_t position) { return failure_before(position); }

 private:
  /// The worker and mirror_to() may write concurrently: keeps the larger number.
  static void raise(std::atomic<std::uint64_t>& word, std::uint64_t to) noexcept {
    std::uint64_t now = word.load();
    while (now < to && !word.compare_exchange_weak(now, to)) {
    }
  }
  [[nodiscard]] std::exception_ptr failure_before(std::uint64_t position) {
    if (failed_at_.load() > position) return nullptr;
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  std::atomic<std::uint64_t> completed_{0};
  std::atomic<std::atomic<std::uint64_t>*> mirror_{nullptr};
  std::atomic<std::uint64_t> wanted_{kNone};  ///< lowest position that is waited for
  std::atomic<std::uint64_t> failed_at_{kNone};
  std::mutex mutex_;
  std::condition_variable moved_;
  std::exception_ptr failure_;
};

}  // namespace shardscope::device
