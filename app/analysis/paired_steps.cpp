#include "app/analysis/paired_steps.h"

#include <algorithm>
#include <utility>

#include "app/analysis/statistics.h"

namespace shardscope::analysis {

PairedSteps paired_steps(const std::vector<ValuesByStep>& base, const std::vector<ValuesByStep>& side,
                         double confidence) {
  PairedSteps out;
  std::vector<double> of_base, by_repeat, series;
  for (std::size_t i = 0; i < std::min(base.size(), side.size()); ++i) {
    std::vector<double> differences;
    for (const auto& [step, value] : base[i]) {
      const auto other = side[i].find(step);
      if (other == side[i].end()) continue;
      of_base.push_back(value);
      differences.push_back(other->second - value);
    }
    if (!differences.empty()) by_repeat.push_back(quantile(differences, 0.5));
    if (i == 0) series = std::move(differences);
  }
  out.pairs = of_base.size();
  out.repeats = by_repeat.size();
  if (of_base.empty()) return out;
  out.base = quantile(of_base, 0.5);
  const bool repeated = base.size() > 1 && base.size() == side.size() && by_repeat.size() == base.size();
  out.interval = repeated ? mean_interval(by_repeat, confidence) : block_interval(series, confidence);
  out.difference = out.interval ? out.interval->middle : quantile(by_repeat, 0.5);
  return out;
}

}  // namespace shardscope::analysis
