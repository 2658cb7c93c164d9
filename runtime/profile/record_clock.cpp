#include "runtime/profile/record_clock.h"

#include <algorithm>
#include <cstdlib>

namespace shardscope::profile {

void RecordClock::add(const ClockPair& cupti, const ClockPair& wall) {
  cupti_.add(cupti);
  wall_.add(wall);
  now_wall_ = wall;
}

std::int64_t RecordClock::to_host(std::uint64_t record_ns) noexcept {
  const auto ns = static_cast<std::int64_t>(record_ns);
  if (!given_) return cupti_.to_host(ns);
  if (std::llabs(ns - now_wall_.host_after_ns) <= std::llabs(ns - now_wall_.other_ns)) return ns;
  ++by_wall_clock_;
  return wall_.to_host(ns);
}

std::int64_t RecordClock::residual_ns() const noexcept {
  return by_wall_clock_ == 0 ? cupti_.residual_ns() : std::max(cupti_.residual_ns(), wall_.residual_ns());
}

}  // namespace shardscope::profile
