// `watch FILE`: prints, from a recording, the lines of a watch of the live run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/analysis/watch.h"

namespace shardscope::cli {

/// Prints a line with `time`, or one of JSON, and its triggers, on standard output.
void print_interval(const analysis::WatchInterval& interval, bool json, const std::string& time);
/// Removes triggers with other names; empty: keeps all.
void keep_named(std::vector<analysis::Trigger>& triggers, const std::vector<std::string>& names);

struct PlayOptions {
  std::string file;
  double interval_s = 10;  ///< of the run's time
  bool json = false;
  std::vector<std::string> triggers;
  std::int64_t memory_limit = 0;  ///< bytes; 0: none
};
/// Returns 1 where a rank failed. Throws UserError where the recording keeps only a part of its run.
[[nodiscard]] int play(const PlayOptions& options);

}  // namespace shardscope::cli
