// `what-if --search`: the fastest settings within a memory limit according to the fitted model, and how sure
// that is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/cli/replayed_run.h"

namespace shardscope::cli {

struct SearchOptions {
  ReplayOptions replay;
  std::vector<std::string> over;  ///< KEY=V1,V2,...; empty: the usual settings
  std::int64_t memory_limit = 0;  ///< bytes of a rank's device; 0: none
  std::uint32_t plays = 150;
  std::uint32_t show = 5;
  bool json = false;
};

/// Prints the outcome and returns the exit code. Throws UserError and config::ConfigError.
int search_settings_of(const SearchOptions& options);

}  // namespace shardscope::cli
