// Sleeping on a word of shared memory. Not the private kind: the word is shared between processes.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

namespace shardscope::comm {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(std::atomic<std::uint32_t>) == 4);

/// Returns when woken, when `word` is not `seen`, after `longest`, or spuriously.
inline void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
                       std::chrono::milliseconds longest) {
  const timespec limit{static_cast<time_t>(longest.count() / 1000),
                       static_cast<long>(longest.count() % 1000 * 1'000'000)};
  // The result is ignored: callers load the word again in any case. The limit is relative
  // (CLOCK_MONOTONIC).
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

inline void futex_wake_all(const std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

}  // namespace shardscope::comm
