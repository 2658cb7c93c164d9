// Where the threads of running ranks are, on request: `why --stacks`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/collector/viewer.h"
#include "app/store/store.h"

namespace shardscope::cli {

struct RankStacks {
  std::uint32_t rank = 0;
  bool answered = false;
  std::string text;  ///< lines; or why there are none
};

/// Asks the run, of which every rank is asked, and waits some seconds for the answers of `ranks`. Throws
/// UserError where the collector refuses: the key may only view, or it passes its ranks on.
[[nodiscard]] std::vector<RankStacks> ask_for_stacks(collector::Viewer& viewer, store::Store& store,
                                                     const std::vector<std::uint32_t>& ranks);
/// The JSON of a diagnosis with "stacks": of each the rank, whether it answered, and its text.
[[nodiscard]] std::string with_stacks(const std::string& hang_json, const std::vector<RankStacks>& stacks);

}  // namespace shardscope::cli
