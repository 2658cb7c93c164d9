// The recorded order of module visits of one iteration, the queue of parameters to prefetch derived from it,
// and the next use of a parameter (docs/zero.md C3, C10).
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan/ids.h"

namespace shardscope::plan {

/// One use of a parameter in the trace.
struct TracedParam {
  ParamId param{};
  std::int64_t step = 0;
};

class Trace {
 public:
  void clear() noexcept;
  void record(ModuleId module) { modules_.push_back(module); }

  /// Ends the recording: `params_of` gives the parameters of each module, ascending; `elems` their sizes.
  void freeze(const std::vector<std::vector<ParamId>>& params_of, const std::vector<std::int64_t>& elems);

  [[nodiscard]] const std::vector<ModuleId>& modules() const noexcept { return modules_; }
  /// Every use in order; empty until frozen.
  [[nodiscard]] const std::vector<TracedParam>& params() const noexcept { return params_; }

  /// The first step at or after `step` that uses the parameter, or -1.
  [[nodiscard]] std::int64_t next_use(ParamId param, std::int64_t step) const noexcept;
  /// Elements of all parameters used at the steps [from, to).
  [[nodiscard]] std::int64_t elems_between(std::int64_t from, std::int64_t to) const noexcept;

 private:
  std::vector<ModuleId> modules_;
  std::vector<TracedParam> params_;
  std::vector<std::vector<std::int64_t>> uses_;  ///< by ParamId: steps, ascending
  std::vector<std::int64_t> elems_before_;       ///< by step: elements of all earlier steps
};

}  // namespace shardscope::plan
