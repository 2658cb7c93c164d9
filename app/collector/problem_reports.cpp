#include "app/collector/problem_reports.h"

#include <utility>

namespace shardscope::collector {

std::optional<std::string> ProblemReports::add(const std::string& kind, const std::string& text,
                                               double now_s) {
  const auto [it, first] = kinds_.try_emplace(kind);
  Kind& of_kind = it->second;
  if (!first && now_s - of_kind.reported_s < kInterval_s) {
    ++of_kind.pending;
    of_kind.text = text;
    return std::nullopt;
  }
  of_kind.reported_s = now_s;
  return text;
}

std::vector<std::string> ProblemReports::take(double now_s, Take take) {
  std::vector<std::string> texts;
  for (auto& [name, kind] : kinds_) {
    if (kind.pending == 0 || (take == Take::due && now_s - kind.reported_s < kInterval_s)) continue;
    kind.reported_s = now_s;
    const std::uint64_t count = std::exchange(kind.pending, 0);
    texts.push_back(count == 1
                        ? kind.text
                        : kind.text + ", the last of " + std::to_string(count) + " since the last report");
  }
  return texts;
}

}  // namespace shardscope::collector
