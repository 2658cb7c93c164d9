#include "app/analysis/step_figures.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "app/analysis/memory.h"

namespace shardscope::analysis {
namespace {

ValuesByStep times_of_steps(const store::Store& store, const Digest&) {
  ValuesByStep out;
  bool warm_up = store.steps().size() > 1;
  for (const store::StepRow& row : store.steps()) {
    if (row.end_ns == store::kOpen) continue;
    if (!warm_up) out[row.step] = static_cast<double>(row.end_ns - row.begin_ns - row.paused_ns) * 1e-6;
    warm_up = false;
  }
  return out;
}

ValuesByStep token_rates(const store::Store& store, const Digest& digest) {
  ValuesByStep out = times_of_steps(store, digest);
  for (const store::StepRow& row : store.steps()) {
    const auto at = out.find(row.step);
    if (at == out.end()) continue;
    if (row.tokens > 0 && at->second > 0) {
      at->second = static_cast<double>(row.tokens) / at->second * 1e3;
    } else {
      out.erase(at);
    }
  }
  return out;
}

/// Mean over ranks, for steps in which every rank is known.
ValuesByStep mean_over_ranks(const Digest& digest, std::int64_t TimePartition::*part) {
  ValuesByStep out;
  for (std::size_t i = digest.first_measured(); i < digest.steps().size(); ++i) {
    const StepDigest& step = digest.steps()[i];
    double sum = 0;
    bool known = !step.ranks.empty();
    for (const RankStep& rank : step.ranks) {
      known = known && rank.time.known() && rank.time.unrecorded_ns == 0;
      sum += static_cast<double>(rank.time.*part) * 1e-6;
    }
    if (known) out[step.step] = sum / static_cast<double>(step.ranks.size());
  }
  return out;
}

ValuesByStep exposed_times(const store::Store&, const Digest& digest) {
  return mean_over_ranks(digest, &TimePartition::exposed_comm_ns);
}
ValuesByStep idle_times(const store::Store&, const Digest& digest) {
  return mean_over_ranks(digest, &TimePartition::idle_ns);
}

std::optional<double> elements_of_step(const Summary& summary) { return summary.elements_per_step; }

constexpr std::array kFigures{
    StepFigure{"step_ms", "step time", "ms", true, times_of_steps, nullptr},
    StepFigure{"tokens_per_s", "tokens per second", "tokens/s", false, token_rates, nullptr},
    StepFigure{"exposed_comm_ms", "exposed communication", "ms", true, exposed_times, nullptr},
    StepFigure{"idle_ms", "idle", "ms", true, idle_times, nullptr},
    StepFigure{"peak", "peak memory", "MiB", true, nullptr, device_peak_mib},
    StepFigure{"elements", "elements communicated", "elements", true, nullptr, elements_of_step},
};

}  // namespace

std::span<const StepFigure> step_figures() { return kFigures; }

}  // namespace shardscope::analysis
