// How long a compute stream is idle because its host has not queued the next work: the time that a step loses
// to its host. Separate from Playback, which reports the host's waits and the stream's idle times.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>

namespace shardscope::simulate {

class HostLateness {
 public:
  /// The host thread waited in [begin_ns, end_ns) for a stream or for other ranks; in order of time.
  void host_waited(std::int64_t begin_ns, std::int64_t end_ns) {
    if (end_ns > begin_ns) waits_.emplace_back(begin_ns, end_ns);
  }
  /// The stream has finished all work at `free_ns`; its next work was queued at `queued_ns`. In order of
  /// time, after all waits of the host before `queued_ns`.
  void queued(std::int64_t free_ns, std::int64_t queued_ns) {
    while (!waits_.empty() && waits_.front().second <= free_ns) waits_.pop_front();
    if (queued_ns <= free_ns) return;
    late_ns_ += queued_ns - free_ns;
    for (const auto& [begin, end] : waits_) {
      if (begin >= queued_ns) break;
      late_ns_ -= std::min(end, queued_ns) - std::max(begin, free_ns);
    }
  }
  /// Returns the idle time since the last call.
  [[nodiscard]] std::int64_t take() noexcept { return std::exchange(late_ns_, 0); }

 private:
  std::deque<std::pair<std::int64_t, std::int64_t>> waits_;
  std::int64_t late_ns_ = 0;
};

}  // namespace shardscope::simulate
