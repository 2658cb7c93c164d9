// Traces as PyTorch's profiler (Kineto) writes them, one file a rank: Holistic Trace Analysis and TraceLens
// read a folder of them, and HTA's overlap, computing time and exposed time are those of `summary`.
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
  /// First and last step, of which a rank's file has those that it recorded to their end; nothing: those that
  /// `summary` measures, without the warm-up, the same on every rank also where events were lost.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> steps;
  /// Of these only steps that overlap it, each whole: a trace of this kind is made of steps.
  TimeRange range = {};
  /// Called before each rank's file with the share of them written so far.
  std::function<void(double)> progress = {};
};

/// Streams one rank's trace to `out`: kernels by stream, launches with correlations, modules as operators, a
/// ProfilerStep#N for each step. Memory holds one step. Times are microseconds relative to
/// `baseTimeNanoseconds`.
void write_kineto(std::ostream& out, const store::Store& store, std::uint32_t rank,
                  const KinetoOptions& options = {});

/// Writes rank_N.json into `folder`, which it makes; each whole or not at all. Returns the paths. Throws
/// std::runtime_error: path, reason; that no such rank or none of the steps was recorded; or that the folder
/// holds other ranks of an earlier export.
std::vector<std::string> write_kineto(const std::string& folder, const store::Store& store,
                                      const KinetoOptions& options = {});

}  // namespace shardscope::exporter
