// The table of all findings: their ids and the panels that show their evidence.
#pragma once

#include <string>
#include <vector>

namespace shardscope::analysis {

struct FindingKind {
  std::string id;     ///< "straggler"; its page is docs/findings/straggler.md
  std::string panel;  ///< of the dashboard: "timeline"
  /// Why it may have no time to look at: what it reports has none. Empty: it always has one, if any step was
  /// completed.
  std::string whole_run{};
};
[[nodiscard]] std::vector<FindingKind> finding_kinds();

}  // namespace shardscope::analysis
