#include "app/analysis/attached/group_actions.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

namespace shardscope::analysis::attached {
namespace {

enum class Held : std::uint8_t { sharded, in_flight, gathered };

struct GroupState {
  Held held = Held::sharded;
  std::uint32_t gather = 0;
  bool in_backward = false;           ///< its backward has begun and its gradients are not reduced
  bool has_gradient = false;          ///< whole, at the end of its backward
  bool keeps_gradient = false;        ///< whole, for a later micro-step that reduces
  bool has_shard = false;             ///< a reduced gradient, of this rank's shard
  std::vector<std::size_t> forwards;  ///< its places in the order of forwards, last one last
};

/// Passes the boundaries of one step.
class GroupPlanner {
 public:
  GroupPlanner(const RecordedCosts& costs, const GroupSettings& settings, std::int64_t grad_bytes)
      : costs_(costs), settings_(settings), grad_bytes_(grad_bytes), states_(costs.groups.size()) {
    for (std::size_t i = 0; i < costs.groups.size(); ++i) of_module_[costs.groups[i].module] = i;
    for (const Piece& piece : costs.pieces) {
      if (piece.gate != ev::GateKind::pre_forward) continue;
      if (const auto found = of_module_.find(piece.module); found != of_module_.end())
        forward_order_.push_back(found->second);
    }
  }

  void micro_step(bool reduces, std::vector<PieceActions>& actions, std::vector<GroupDecisions>& decisions,
                  StepActions& sums) {
    sums_ = &sums;
    for (std::size_t i = 0; i < costs_.pieces.size(); ++i) {
      const Piece& piece = costs_.pieces[i];
      const auto found = of_module_.find(piece.module);
      if (found == of_module_.end()) continue;
      const std::size_t group = found->second;
      switch (piece.gate) {
        case ev::GateKind::pre_forward:
          fetch(group, explicit_forward(group), actions[i], decisions[i]);
          break;
        case ev::GateKind::post_forward:
          if (reshards(costs_.groups[group])) states_[group].held = Held::sharded;
          states_[group].forwards.push_back(order_.size());
          order_.push_back(group);
          break;
        case ev::GateKind::pre_backward:
          states_[group].in_backward = true;
          fetch(group, backward_prefetch(group), actions[i], decisions[i]);
          break;
        case ev::GateKind::post_backward:
          // Its gate follows the reduction.
          if (i > 0) end_backward(group, reduces, actions[i - 1], decisions[i - 1]);
          break;
        default:
          break;
      }
    }
    // A gather that nothing has waited for is dropped with the backward.
    for (GroupState& state : states_) {
      if (state.held == Held::in_flight) state.held = Held::sharded;
      state.forwards.clear();
    }
    order_.clear();
  }
  [[nodiscard]] std::int64_t peak_gradient_bytes() const noexcept { return peak_gradient_bytes_; }

 private:
  [[nodiscard]] bool reshards(const ParamGroup& group) const {
    const auto& changed = group.root ? settings_.root_reshard_after_forward : settings_.reshard_after_forward;
    return changed.value_or(group.resharded);
  }

  [[nodiscard]] std::vector<std::size_t> explicit_forward(std::size_t group) const {
    if (!settings_.groups_to_forward_prefetch) return costs_.groups[group].prefetched_in_forward;
    std::vector<std::size_t> out;
    const auto at = std::ranges::find(forward_order_, group);
    for (auto next = at; next != forward_order_.end() && ++next != forward_order_.end() &&
                         std::cmp_less(out.size(), *settings_.groups_to_forward_prefetch);)
      out.push_back(*next);
    return out;
  }
  /// The groups before it in the order of forwards, nearest first.
  [[nodiscard]] std::vector<std::size_t> backward_prefetch(std::size_t group) {
    std::vector<std::size_t>& forwards = states_[group].forwards;
    if (forwards.empty()) return {};
    std::size_t at = forwards.back();
    forwards.pop_back();
    if (costs_.explicit_backward && !settings_.groups_to_backward_prefetch)
      return costs_.groups[group].prefetched_in_backward;
    std::vector<std::size_t> out;
    const std::int64_t most = settings_.groups_to_backward_prefetch.value_or(1);
    for (; at > 0 && std::cmp_less(out.size(), most); --at) out.push_back(order_[at - 1]);
    return out;
  }

  [[nodiscard]] GatherAction issue(std::size_t group) {
    GroupState& state = states_[group];
    state.held = Held::in_flight;
    state.gather = next_gather_++;
    const std::int64_t elems = costs_.groups[group].elems;
    ++sums_->gathers;
    sums_->gathered_elems += elems;
    return {state.gather, elems};
  }
  void fetch(std::size_t group, const std::vector<std::size_t>& prefetch, PieceActions& actions,
             GroupDecisions& decisions) {
    FetchAction fetch;
    GroupState& state = states_[group];
    if (state.held == Held::sharded) {
      fetch.issued_first.push_back(issue(group));
      decisions.fetched.push_back(group);
    }
    if (state.held == Held::in_flight) {
      fetch.waited.push_back({state.gather, costs_.groups[group].elems});
      state.held = Held::gathered;
    }
    for (const std::size_t one : prefetch) {
      if (states_[one].held != Held::sharded) continue;
      fetch.prefetched.push_back(issue(one));
      decisions.prefetched.push_back(one);
    }
    if (!fetch.issued_first.empty() || !fetch.waited.empty() || !fetch.prefetched.empty())
      actions.fetches.push_back(std::move(fetch));
    note_peak();
  }
  void end_backward(std::size_t group, bool reduces, PieceActions& actions, GroupDecisions& decisions) {
    GroupState& state = states_[group];
    if (!std::exchange(state.in_backward, false)) return;
    state.held = Held::sharded;
    const std::int64_t elems = costs_.groups[group].trained_elems;
    if (elems <= 0) return;
    // As recorded: the hooks count a group's whole gradients at the end of its backward.
    state.has_gradient = true;
    note_peak();
    state.keeps_gradient = !reduces;
    if (!reduces) return;
    actions.flushed_elems.push_back(elems);
    decisions.reduced.push_back(group);
    ++sums_->flushes;
    state.has_gradient = false;
    state.has_shard = true;
  }
  /// Bytes of an element of a whole gradient, which has the type of the gathered parameter. A gather of
  /// several types is one of bytes.
  [[nodiscard]] double whole_bytes() const {
    return costs_.gather_elem_bytes >= 2 ? costs_.gather_elem_bytes : static_cast<double>(grad_bytes_);
  }
  void note_peak() {
    double bytes = 0;
    std::int64_t gathered = 0;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const ParamGroup& group = costs_.groups[i];
      const auto gradients = static_cast<double>(group.trained_elems);
      if (states_[i].held != Held::sharded) gathered += group.elems;
      if (states_[i].keeps_gradient)
        bytes += gradients * std::max(whole_bytes(), costs_.reduce_elem_bytes);
      else if (states_[i].has_gradient)
        bytes += gradients * whole_bytes();
      if (states_[i].has_shard) bytes += gradients / costs_.world * static_cast<double>(grad_bytes_);
    }
    sums_->peak_gathered_elems = std::max(sums_->peak_gathered_elems, gathered);
    peak_gradient_bytes_ = std::max(peak_gradient_bytes_, static_cast<std::int64_t>(std::llround(bytes)));
  }

  const RecordedCosts& costs_;
  const GroupSettings& settings_;
  std::int64_t grad_bytes_;
  std::vector<GroupState> states_;
  std::map<std::uint32_t, std::size_t> of_module_;
  std::vector<std::size_t> forward_order_;  ///< of groups, by their boundaries
  std::vector<std::size_t> order_;          ///< of forwards in the current micro-step
  std::uint32_t next_gather_ = 0;
  StepActions* sums_ = nullptr;  ///< of the step
  std::int64_t peak_gradient_bytes_ = 0;
};

/// Whether micro-step `micro` of `micro_steps` reduces its gradients; as recorded, of which the last stands
/// for the last and the first for the others.
bool reduces(const RecordedCosts& costs, const GroupSettings& settings, std::size_t micro,
             std::size_t micro_steps) {
  if (micro + 1 == micro_steps) return true;
  if (settings.reduce_last_only) return !*settings.reduce_last_only;
  return costs.decisions.size() < 2 ||
         std::ranges::any_of(costs.decisions.front(),
                             [](const GroupDecisions& piece) { return !piece.reduced.empty(); });
}

/// Of the script's own lists for the backward only those groups are known that had to be gathered.
void refuse_unknown_prefetch(const RecordedCosts& costs, const GroupSettings& settings) {
  if (!costs.explicit_backward || settings.groups_to_backward_prefetch) return;
  if (settings.reshard_after_forward || settings.root_reshard_after_forward)
    throw std::invalid_argument(
        "reshard_after_forward: the script names groups to prefetch in the backward, and the recording shows "
        "only those that had to be gathered; give fully_shard.groups_to_backward_prefetch too");
}

}  // namespace

GroupPlan planned_group_actions(const RecordedCosts& costs, const GroupSettings& settings,
                                std::int64_t micro_steps, std::int64_t grad_bytes) {
  refuse_unknown_prefetch(costs, settings);
  if (settings.reduce_last_only && micro_steps <= 1)
    throw std::invalid_argument(
        "fully_shard.reduce_in_last_micro_step_only: it does nothing with one micro-step; give "
        "gradient_accumulation_steps too");
  const std::size_t count = checked_micro_steps(costs, micro_steps);
  GroupPlan out;
  out.actions.micro_steps.assign(count, std::vector<PieceActions>(costs.pieces.size()));
  out.decisions.assign(count, std::vector<GroupDecisions>(costs.pieces.size()));
  GroupPlanner planner(costs, settings, grad_bytes);
  for (std::size_t micro = 0; micro < count; ++micro)
    planner.micro_step(reduces(costs, settings, micro, count), out.actions.micro_steps[micro],
                       out.decisions[micro], out.actions);
  out.peak_gradient_bytes = planner.peak_gradient_bytes();
  return out;
}

}  // namespace shardscope::analysis::attached
