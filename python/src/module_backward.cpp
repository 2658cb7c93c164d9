#include "module_backward.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "gate.h"
#include "shardscope/shardscope.h"

namespace shardscope::python {

void ModuleBackward::begin(const std::shared_ptr<const ModuleCall>& call) {
  if (session_.phase != SHARDSCOPE_PHASE_BACKWARD) return open_.clear();
  if (!session_.spans.any(SHARDSCOPE_PASS_BACKWARD)) open_.clear();
  if (std::find(open_.begin(), open_.end(), call) != open_.end()) return;
  const Calls path = ModuleCall::path(call);
  std::size_t same = 0;
  while (same < std::min(open_.size(), path.size()) && open_[same] == path[same]) ++same;
  close(same);
  for (; same < path.size(); ++same) {
    const std::shared_ptr<const ModuleCall>& outer = path[same];
    const bool of_group = outer->how == Watched::group;
    if (!of_group || !session_.spans.holds(SHARDSCOPE_PASS_BACKWARD, outer->module)) {
      if (of_group && call->how != Watched::group) return early_.push_back(call);
      if (outer->how == Watched::gated) pass_gate(SHARDSCOPE_GATE_PRE_BACKWARD, outer->module);
      session_.begin_span(SHARDSCOPE_PASS_BACKWARD, outer->module);
    }
    open_.push_back(outer);
  }
}

void ModuleBackward::end(const std::shared_ptr<const ModuleCall>& call) {
  const auto found = std::find(open_.begin(), open_.end(), call);
  if (found != open_.end() && session_.phase == SHARDSCOPE_PHASE_BACKWARD)
    close(static_cast<std::size_t>(found - open_.begin()));
}

void ModuleBackward::group_begun(std::uint32_t module) {
  const Calls early = std::exchange(early_, {});
  const auto found = groups_.find(module);
  // A copy: a gate may let another thread change the table.
  if (const auto call = found == groups_.end() ? nullptr : found->second; call != nullptr) begin(call);
  if (!session_.spans.holds(SHARDSCOPE_PASS_BACKWARD, module))
    session_.begin_span(SHARDSCOPE_PASS_BACKWARD, module);
  for (const std::shared_ptr<const ModuleCall>& each : early) begin(each);
}

void ModuleBackward::forget() {
  open_.clear();
  early_.clear();
  groups_.clear();
}

void ModuleBackward::close(std::size_t count) {
  while (open_.size() > count) {
    const std::shared_ptr<const ModuleCall> call = std::move(open_.back());
    open_.pop_back();
    if (call->how != Watched::group) session_.end_span(call->module);
  }
}

}  // namespace shardscope::python
