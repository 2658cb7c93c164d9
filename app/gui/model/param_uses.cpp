#include "app/gui/model/param_uses.h"

#include <algorithm>
#include <utility>

#include "app/gui/model/format.h"
#include "app/gui/model/step_of.h"
#include "instrumentation/param_status.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::gui {
namespace {

/// Ranks read per frame.
constexpr int kRanksAFrame = 2;

}  // namespace

ParamUseAt param_use(const analysis::HeldLong& held, const ev::RunTables& tables, std::uint32_t param,
                     const store::ParamState& state, std::int64_t at_ns) {
  if (static_cast<plan::ParamStatus>(ev::status_of(state.status)) != plan::ParamStatus::available) return {};
  if (tables.params[param].persistent) return {.use = ParamUse::persistent};
  // Ordered by parameter, then time: the parameter's last stretch that has begun.
  const auto after = std::ranges::upper_bound(
      held.stretches, std::pair(param, at_ns), {},
      [](const analysis::HeldStretch& one) { return std::pair(one.param, one.begin_ns); });
  if (after == held.stretches.begin()) return {.use = ParamUse::wanted};
  const analysis::HeldStretch& one = *std::prev(after);
  if (one.param != param || one.end_ns <= at_ns) return {.use = ParamUse::wanted};
  return {.use = one.used_again ? ParamUse::kept : ParamUse::for_nothing,
          .unused_ns = at_ns - one.begin_ns,
          .left_ns = one.end_ns - at_ns};
}

std::int64_t unused_for_ns(const analysis::HeldLong* held, const ev::RunTables& tables, std::uint32_t param,
                           const store::ParamState& state, std::int64_t at_ns) {
  if (held != nullptr) {
    const ParamUseAt use = param_use(*held, tables, param, state, at_ns);
    if (use.use == ParamUse::wanted) return 0;
    if (use.use == ParamUse::kept || use.use == ParamUse::for_nothing) return use.unused_ns;
  }
  return at_ns - state.since_ns;
}

std::string text_of(const ParamUseAt& use) {
  if (use.use != ParamUse::kept && use.use != ParamUse::for_nothing) return {};
  return "last used " + duration(use.unused_ns).text() + " ago, " +
         (use.use == ParamUse::kept ? "used again in " : "not used again in this step, held for ") +
         duration(use.left_ns).text() + (use.use == ParamUse::kept ? "" : " more");
}

void ParamUses::look_at(std::uint64_t run, const store::Store& store, std::int64_t at_ns) {
  may_read_ = kRanksAFrame;
  reading_ = std::exchange(unread_, false);
  const auto steps = store.steps();
  const auto at = step_of(steps, at_ns);
  missing_.clear();
  if (!store.has_tables() || store.tables().stage != 3)
    missing_ = "parameters are gathered and released in stage 3";
  else if (!at)
    missing_ = "no step has begun";
  else if (steps[*at].end_ns == store::kOpen)
    missing_ = "known when the step has ended";
  else if (at_ns > steps[*at].end_ns)
    missing_ = "known within steps";
  if (!missing_.empty()) {
    step_.reset();
    return;
  }
  step_ = steps[*at];
  const Key key{run, step_->step, step_->end_ns};
  if (key_ != key) by_rank_.clear();
  key_ = key;
  for (const auto& [rank, held] : by_rank_) {
    if (!held.missing.empty()) missing_ = held.missing;
  }
}

const analysis::HeldLong* ParamUses::of(const store::Store& store, std::uint32_t rank) {
  if (!step_) return nullptr;
  auto found = by_rank_.find(rank);
  if (found == by_rank_.end()) {
    if (may_read_-- <= 0) {
      unread_ = true;
      return nullptr;
    }
    found = by_rank_.emplace(rank, analysis::held_long(store, rank, *step_)).first;
  }
  return found->second.missing.empty() ? &found->second : nullptr;
}

}  // namespace shardscope::gui
