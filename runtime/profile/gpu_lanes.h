// Which lane of the timeline a piece of the GPU's work goes to.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "instrumentation/event.h"

namespace shardscope::profile {

/// [Note: lanes of the GPU]
/// What lies on a lane must not overlap, and comes in order of time. A CUDA stream runs its work in order, so
/// the runtime's streams have a lane each. Streams of libraries take the other lanes in the order in which
/// they are first seen. What overlaps (launches that may start before the one before has ended, graphs, more
/// streams than lanes, records that come too late) goes where there is room at its time, and names its
/// stream; if there is none, it is not placed, which is counted and shown. On a stream that is not known,
/// work that says itself what it is (a kernel of NCCL, a copy to or from the host) has the lane of such work:
/// PyTorch runs all-gathers and reduce-scatters on one stream. Nothing is cut or moved to make it fit, beyond
/// what the conversion of clocks may be wrong by.
class GpuLanes {
 public:
  /// Work on `stream` goes to `lane`, one of the first four.
  void know(std::uint32_t stream, instrumentation::StreamId lane);
  struct Place {
    instrumentation::StreamId lane{};
    std::int64_t begin_ns = 0;
  };
  /// For work in [begin, end]. A begin that lies before the end of the lane's last work by no more than
  /// `tolerance_ns` is taken to be that end. `usual`: the lane of such work on a stream that is not known,
  /// tried before the others.
  [[nodiscard]] std::optional<Place> place(std::uint32_t stream, std::int64_t begin_ns, std::int64_t end_ns,
                                           std::int64_t tolerance_ns,
                                           std::optional<instrumentation::StreamId> usual = std::nullopt);

 private:
  [[nodiscard]] std::optional<Place> on(instrumentation::StreamId lane, std::int64_t begin_ns,
                                        std::int64_t end_ns, std::int64_t tolerance_ns);
  std::map<std::uint32_t, instrumentation::StreamId> lanes_;  ///< by CUDA stream
  std::uint8_t others_ = 0;                                   ///< lanes given to streams not known
  std::array<std::int64_t, instrumentation::kStreamCount> end_ns_ = [] {
    std::array<std::int64_t, instrumentation::kStreamCount> ends{};
    ends.fill(INT64_MIN);
    return ends;
  }();
};

}  // namespace shardscope::profile
