// A diagnosis as text, one line per rank: for terminal, clipboard and window.
#include <fmt/format.h>

#include <algorithm>

#include "app/analysis/hang/hang.h"
#include "app/store/rank_end.h"

namespace shardscope::analysis {

std::vector<std::uint32_t> named_ranks(const Hang& hang) {
  std::vector<std::uint32_t> out;
  if (hang.culprit != instrumentation::kNoId) out.push_back(hang.culprit);
  const auto waits = [&](const RankState& one) {
    return std::ranges::find(one.waits_for, hang.culprit) != one.waits_for.end();
  };
  const auto waiting = std::ranges::find_if(hang.ranks, waits);
  if (waiting != hang.ranks.end()) out.push_back(waiting->rank);
  if (out.empty() && !hang.ranks.empty()) out.push_back(hang.ranks.front().rank);
  return out;
}

std::string line_of(const RankState& one) {
  std::string out = one.collective ? "in " + one.collective->text() + (one.doing.empty() ? "" : ", ") : "";
  out += one.doing;
  if (!one.gate.empty()) out += ", after gate " + one.gate;
  return out + fmt::format("; last event at {}", store::seconds_text(one.last_event_ns));
}

std::string hang_text(const Hang& hang) {
  std::string out = hang.text + "\n";
  for (const RankState& one : hang.ranks) out += fmt::format("  rank {:<4} {}\n", one.rank, line_of(one));
  return out;
}

}  // namespace shardscope::analysis
