// Kernels and copies on a rank's streams in a step, at any level of detail. The union of each class of work
// is the interval set from which the partition of time is computed (metrics.md 2.2).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/intervals.h"
#include "app/analysis/spans.h"
#include "app/store/store.h"

namespace shardscope::exporter {

enum class WorkClass : std::uint8_t { compute, collective, copy };

/// One kernel or copy on a stream of the device.
struct DeviceWork {
  WorkClass kind{};
  instrumentation::StreamId stream{};  ///< where it ran
  std::int64_t begin_ns = 0, end_ns = 0;
  std::string name{};
  /// When the host launched it, clamped to the step's begin; empty if the launch was not recorded.
  std::optional<std::int64_t> launch_ns{};
  std::optional<std::size_t> within{};  ///< index in StepWork::ranges
  std::optional<store::Span> span{};    ///< the span that this is all or a part of
};

/// A module or a part of the optimizer, as executed on the compute stream.
struct NamedRange {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::string name;
  std::uint8_t depth = 0;
  std::uint32_t module = instrumentation::kNoId;
};

struct StepWork {
  std::vector<DeviceWork> work;           ///< by class and stream, each in order of time
  std::vector<NamedRange> ranges;         ///< by begin, then depth
  analysis::IntervalSet paused, missing;  ///< by the user; of events
  bool known = false;  ///< false: the rank's computation was not recorded, and there is no work
};

/// Boundaries of adjacent computations: as recorded, or rounded before Holistic Trace Analysis rounds them.
enum class InnerEdges : std::uint8_t { exact, whole_microseconds };
[[nodiscard]] StepWork work_of_step(const store::Store& store, std::uint32_t rank,
                                    const analysis::StepWindow& window,
                                    InnerEdges edges = InnerEdges::whole_microseconds);

}  // namespace shardscope::exporter
