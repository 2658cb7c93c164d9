// `watch FILE`: the lines that a watch of the live run would have printed, from its recording.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/analysis/watch.h"

namespace shardscope::cli {

/// A line at `time`, or one of JSON, and its triggers, on standard output.
void print_interval(const analysis::WatchInterval& interval, bool json, const std::string& time);
/// Of the triggers those of these names stay; empty: all.
void keep_named(std::vector<analysis::Trigger>& triggers, const std::vector<std::string>& names);

struct PlayOptions {
  std::string file;
  double interval_s = 10;  ///< of the run's time
  bool json = false;
  std::vector<std::string> triggers;
  std::int64_t memory_limit = 0;  ///< bytes; 0: none
};
/// 1: a rank failed. Throws UserError where the recording keeps a part of its run only.
[[nodiscard]] int play(const PlayOptions& options);

}  // namespace shardscope::cli
