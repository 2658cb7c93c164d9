// Assigns GPU work to lanes of the timeline.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "instrumentation/event.h"

namespace shardscope::profile {

/// [Note: lanes of the GPU]
/// Spans of a lane must not overlap and must be in order of time. A CUDA stream runs its work in order, so
/// each of the runtime's streams has a lane. Streams of libraries get the other lanes in the order in which
/// they are first seen. Overlapping work (launches that may start before the previous one has ended, graphs,
/// more streams than lanes, late records) is placed on any lane free at its time, with its stream's number;
/// if there is none, it is not placed, which is counted and shown. On an unknown stream, work that identifies
/// itself (an NCCL kernel, a copy to or from the host) has the lane of its kind: PyTorch runs all-gathers and
/// reduce-scatters on one stream. No span is cut or moved, except by the error of the clock conversion.
class GpuLanes {
 public:
  /// Work on `stream` goes to `lane`, one of the first four.
  void know(std::uint32_t stream, instrumentation::StreamId lane);
  struct Place {
    instrumentation::StreamId lane{};
    std::int64_t begin_ns = 0;
  };
  /// For work in [begin, end]. A begin before the end of the lane's last work by at most `tolerance_ns` is
  /// set to that end. `usual`: the lane of this kind of work on an unknown stream, tried before the others.
  [[nodiscard]] std::optional<Place> place(std::uint32_t stream, std::int64_t begin_ns, std::int64_t end_ns,
                                           std::int64_t tolerance_ns,
                                           std::optional<instrumentation::StreamId> usual = std::nullopt);

 private:
  [[nodiscard]] std::optional<Place> on(instrumentation::StreamId lane, std::int64_t begin_ns,
                                        std::int64_t end_ns, std::int64_t tolerance_ns);
  std::map<std::uint32_t, instrumentation::StreamId> lanes_;  ///< by CUDA stream
  std::uint8_t others_ = 0;                                   ///< number of lanes assigned to unknown streams
  std::array<std::int64_t, instrumentation::kStreamCount> end_ns_ = [] {
    std::array<std::int64_t, instrumentation::kStreamCount> ends{};
    ends.fill(INT64_MIN);
    return ends;
  }();
};

}  // namespace shardscope::profile
