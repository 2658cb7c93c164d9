// The table of all findings: their ids and the panels that show their evidence.
#pragma once

#include <string>
#include <vector>

namespace shardscope::analysis {

struct FindingKind {
  std::string id;     ///< "straggler"; its page is docs/findings/straggler.md
  std::string panel;  ///< of the dashboard: "timeline"
};
[[nodiscard]] std::vector<FindingKind> finding_kinds();

}  // namespace shardscope::analysis
