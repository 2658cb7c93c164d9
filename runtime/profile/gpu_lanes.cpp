#include "runtime/profile/gpu_lanes.h"

#include <algorithm>

namespace shardscope::profile {
namespace {

using instrumentation::StreamId;

constexpr std::uint8_t kOthers = 3;

StreamId other(std::uint8_t i) noexcept {
  return static_cast<StreamId>(static_cast<std::uint8_t>(StreamId::gpu_other_1) + i);
}

}  // namespace

void GpuLanes::know(std::uint32_t stream, StreamId lane) { lanes_[stream] = lane; }

std::optional<GpuLanes::Place> GpuLanes::on(StreamId lane, std::int64_t begin_ns, std::int64_t end_ns,
                                            std::int64_t tolerance_ns) {
  std::int64_t& last = end_ns_[static_cast<std::size_t>(lane)];
  if (begin_ns < last && (last - begin_ns > tolerance_ns || end_ns < last)) return std::nullopt;
  const Place place{lane, std::max(begin_ns, last)};
  last = std::max(end_ns, last);
  return place;
}

std::optional<GpuLanes::Place> GpuLanes::place(std::uint32_t stream, std::int64_t begin_ns,
                                               std::int64_t end_ns, std::int64_t tolerance_ns,
                                               std::optional<StreamId> usual) {
  auto home = lanes_.find(stream);
  if (home == lanes_.end() && usual) {
    if (const auto found = on(*usual, begin_ns, end_ns, tolerance_ns)) return found;
  } else if (home == lanes_.end() && others_ < kOthers) {
    home = lanes_.emplace(stream, other(others_++)).first;
  }
  if (home != lanes_.end()) {
    if (const auto found = on(home->second, begin_ns, end_ns, tolerance_ns)) return found;
  }
  for (std::uint8_t i = kOthers; i-- > 0;) {
    if (home != lanes_.end() && other(i) == home->second) continue;
    if (const auto found = on(other(i), begin_ns, end_ns, 0)) return found;
  }
  return std::nullopt;
}

}  // namespace shardscope::profile
