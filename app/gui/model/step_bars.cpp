#include "app/gui/model/step_bars.h"

#include <algorithm>

#include "app/gui/model/format.h"
#include "app/store/span_time.h"

namespace shardscope::gui {
namespace {

void take_times(StepBar& bar, const StepTimes* times) {
  if (times == nullptr) return;
  bar.known = true;
  const auto consider = [&](std::int64_t ns, Meaning meaning) {
    if (ns <= bar.worst_ns) return;
    bar.worst_ns = ns;
    bar.worst = meaning;
  };
  for (const auto& [rank, time] : times->ranks) {
    if (!time.known()) continue;
    consider(time.exposed_comm_ns, kExposedComm);
    consider(time.exposed_copy_ns, kExposedCopy);
    consider(time.idle_ns, Meaning::neutral);
  }
}

const char* part_name(Meaning worst) {
  return worst == kExposedComm ? "exposed communication" : worst == kExposedCopy ? "exposed copies" : "idle";
}

}  // namespace

const std::vector<StepBar>& StepBars::of(const Session& run, std::size_t columns, std::int64_t target_ns) {
  const store::Store& store = run.store();
  if (run_ == &run && revision_ == store.revision() && analysis_ == run.analysis() && columns_ == columns &&
      target_ns_ == target_ns)
    return bars_;
  run_ = &run;
  revision_ = store.revision();
  analysis_ = run.analysis();
  columns_ = columns;
  target_ns_ = target_ns;
  beyond_ = 0;
  median_ns_ = 0;
  bars_.clear();
  const auto steps = store.steps();
  const std::size_t count = std::min(steps.size(), columns);
  std::vector<std::int64_t> lengths;
  lengths.reserve(steps.size());
  for (std::size_t c = 0; c < count; ++c) {
    StepBar bar{.first = c * steps.size() / count, .last = (c + 1) * steps.size() / count};
    for (std::size_t i = bar.first; i < bar.last; ++i) {
      lengths.push_back(store::time_of(store, steps[i]).running_ns);
      if (target_ns > 0 && lengths.back() > target_ns) ++beyond_;
      bar.skipped = bar.skipped || steps[i].skipped;
      if (i != bar.first && lengths.back() <= bar.length_ns) continue;
      bar.longest = i;
      bar.length_ns = lengths.back();
    }
    take_times(bar, run.step_times(steps[bar.longest].step));
    bars_.push_back(bar);
  }
  full_ns_ = 1;
  if (lengths.empty()) return bars_;
  const std::int64_t longest = *std::ranges::max_element(lengths);
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::ranges::nth_element(lengths, middle);
  median_ns_ = *middle;
  // Leaves room for the line of a target above all steps.
  const std::int64_t highest = std::max(longest, target_ns + target_ns / 20);
  full_ns_ = static_cast<double>(
      std::max<std::int64_t>(1, std::min(highest, 3 * std::max<std::int64_t>(1, median_ns_))));
  return bars_;
}

std::string text_of(const StepBar& bar, const Session& run, std::int64_t target_ns) {
  const auto steps = run.store().steps();
  const store::StepRow& step = steps[bar.longest];
  std::string text = "Step " + std::to_string(step.step) + ": " + duration(bar.length_ns).text();
  if (bar.worst_ns > 0) text += ", worst part " + duration(bar.worst_ns).text() + " " + part_name(bar.worst);
  if (!bar.known && step.end_ns != store::kOpen) text += ", not analysed yet";
  if (target_ns > 0 && bar.length_ns > target_ns)
    text += "\n" + duration(bar.length_ns - target_ns).text() + " over the target of " +
            duration(target_ns).text();
  if (bar.last - bar.first > 1)
    text += "\nthe longest of steps " + std::to_string(steps[bar.first].step) + " to " +
            std::to_string(steps[bar.last - 1].step);
  return text;
}

}  // namespace shardscope::gui
