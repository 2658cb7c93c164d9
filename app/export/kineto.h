// Traces in the format of PyTorch's profiler (Kineto), one file per rank, for Holistic Trace Analysis and
// TraceLens. HTA computes the same overlap, computing time and exposed time from them as `summary`.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/export/part.h"
#include "app/store/store.h"

namespace shardscope::exporter {

struct KinetoOptions {
  std::vector<std::uint32_t> ranks;  ///< empty: all
  /// First and last step; of each rank those that have an end. Empty: the steps that `summary` measures,
  /// without the warm-up: the same ones on every rank, also where events were lost.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> steps;
  /// Restricts these to the steps that overlap it, each exported whole: a Kineto trace consists of steps.
  TimeRange range = {};
  /// Called before each rank's file with the fraction of files written so far.
  std::function<void(double)> progress = {};
};

/// Streams one rank's trace to `out`: kernels by stream, launches with correlations, modules as operators,
/// one ProfilerStep#N per step. Memory holds one step at a time. Times are microseconds relative to
/// `baseTimeNanoseconds`.
void write_kineto(std::ostream& out, const store::Store& store, std::uint32_t rank,
                  const KinetoOptions& options = {});

/// Writes rank_N.json into `folder`, which is created; each file whole or not at all. Returns the paths.
/// Throws std::runtime_error: path, reason; if a rank or all of the steps are not in the recording; or if the
/// folder contains other ranks of an earlier export.
std::vector<std::string> write_kineto(const std::string& folder, const store::Store& store,
                                      const KinetoOptions& options = {});

}  // namespace shardscope::exporter
