// What a rank's streams did in a step, as kernels and copies: within a step the union of each class is the
// class that the partition of time is computed of (metrics.md 2.2), whatever was recorded of it.
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

/// One execution on a stream of the device.
struct DeviceWork {
  WorkClass kind{};
  instrumentation::StreamId stream{};  ///< where it ran
  std::int64_t begin_ns = 0, end_ns = 0;
  std::string name{};
  /// When the host launched it, not before the step; nothing where that was not recorded.
  std::optional<std::int64_t> launch_ns{};
  std::optional<std::size_t> within{};  ///< index in StepWork::ranges
  std::optional<store::Span> span{};    ///< that it is a part of, or all
};

/// A module or a part of the optimizer, as the compute stream ran it.
struct NamedRange {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::string name;
  std::uint8_t depth = 0;
  std::uint32_t module = instrumentation::kNoId;
};

struct StepWork {
  std::vector<DeviceWork> work;           ///< by class and stream, each in order of time
  std::vector<NamedRange> ranges;         ///< by begin, then depth
  analysis::IntervalSet paused, missing;  ///< by the user; events are
  bool known = false;  ///< whether what the rank computed was recorded: else there is no work
};

/// Where one computation follows another: as recorded, or for Holistic Trace Analysis, which rounds each.
enum class InnerEdges : std::uint8_t { exact, whole_microseconds };
[[nodiscard]] StepWork work_of_step(const store::Store& store, std::uint32_t rank,
                                    const analysis::StepWindow& window,
                                    InnerEdges edges = InnerEdges::whole_microseconds);

}  // namespace shardscope::exporter
