#include "runtime/plan/trace.h"

#include <algorithm>

namespace shardscope::plan {

void Trace::clear() noexcept {
  modules_.clear();
  params_.clear();
  uses_.clear();
  elems_before_.clear();
}

// Time and memory are linear in the uses, once per recording. Afterwards next_use() takes O(log uses of the
// parameter) and elems_between() O(1): release asks both to decide whether a parameter is used again soon.
void Trace::freeze(const std::vector<std::vector<ParamId>>& params_of,
                   const std::vector<std::int64_t>& elems) {
  params_.clear();
  uses_.assign(elems.size(), {});  // each ascending, since steps are visited in order
  elems_before_.assign(1, 0);      // prefix sums: elems_between() is a difference
  for (std::size_t step = 0; step < modules_.size(); ++step) {
    // A module that is visited twice has two steps, each with all of its parameters.
    std::int64_t here = 0;
    for (const ParamId param : params_of[raw(modules_[step])]) {
      params_.push_back({param, static_cast<std::int64_t>(step)});
      uses_[raw(param)].push_back(static_cast<std::int64_t>(step));
      here += elems[raw(param)];
    }
    elems_before_.push_back(elems_before_.back() + here);
  }
}

std::int64_t Trace::next_use(ParamId param, std::int64_t step) const noexcept {
  if (raw(param) >= uses_.size()) return -1;
  const auto& uses = uses_[raw(param)];
  // The first use that is not before `step`: one at `step` itself counts.
  const auto found = std::lower_bound(uses.begin(), uses.end(), step);
  return found == uses.end() ? -1 : *found;
}

std::int64_t Trace::elems_between(std::int64_t from, std::int64_t to) const noexcept {
  // Steps beyond the trace are clamped: a use after its end adds nothing.
  const auto last = static_cast<std::int64_t>(elems_before_.size()) - 1;
  if (last < 0) return 0;
  const auto clamp = [last](std::int64_t step) {
    return static_cast<std::size_t>(std::clamp<std::int64_t>(step, 0, last));
  };
  return elems_before_[clamp(to)] - elems_before_[clamp(from)];
}

}  // namespace shardscope::plan
