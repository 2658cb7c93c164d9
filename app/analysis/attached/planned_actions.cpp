#include "app/analysis/attached/planned_actions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "runtime/plan/bucket.h"
#include "runtime/plan/gradient_buckets.h"
#include "runtime/plan/scheduler.h"
#include "runtime/plan/scheduler_config.h"
#include "runtime/plan/visit_driver.h"

namespace shardscope::analysis::attached {
namespace {

using plan::Visit;
using plan::VisitKind;

/// Limit per step: some 100 MB.
constexpr std::int64_t kMostActions = 1'000'000;

/// Runs the scheduler over steps and keeps the actions of the last one.
class FetchPlanner {
 public:
  FetchPlanner(const RecordedCosts& costs, const plan::ZeroConfig& zero)
      : model_(costs.model),
        pieces_(with_backward_ends(costs.pieces, costs.model)),
        scheduler_(costs.model, costs.world, plan::make_scheduler_config(zero)),
        driver_(scheduler_) {
    // As in DeepSpeed after the first access: the module fetches them with its own.
    for (const ExternalUse& use : costs.external) scheduler_.register_external(use.param, use.module);
  }

  void step(StepActions& actions) {
    actions.peak_gathered_elems = scheduler_.resident_elems();
    actions.gathers = actions.gathered_elems = 0;
    for (std::vector<PieceActions>& micro_step : actions.micro_steps) {
      (void)driver_.begin_iteration();
      for (std::size_t i = 0; i < pieces_.size(); ++i) {
        micro_step[i].fetches.clear();
        for (const Visit& visit : pieces_[i].visits) take(visit, micro_step[i], actions);
      }
      // DeepSpeed does so at the end of each backward, for modules whose input needs no gradient.
      (void)scheduler_.release_leftovers();
    }
    const plan::Gather persistent = driver_.end_step();
    actions.after_elems.clear();
    // DeepSpeed gathers each separately.
    for (const plan::ParamId param : persistent.params) actions.after_elems.push_back(elems_of(param));
  }

 private:
  [[nodiscard]] std::int64_t elems_of(plan::ParamId param) const {
    return model_.params[plan::raw(param)].elems;
  }

  void take(const Visit& visit, PieceActions& piece, StepActions& actions) {
    if (visit.kind == VisitKind::use_external) return;
    const plan::VisitDecision decision = driver_.take(visit);
    if (!decision.fetch) return;
    FetchAction fetch;
    const auto issue = [&](const plan::Gather& gather, std::vector<GatherAction>& into) {
      if (gather.id == plan::kNone<plan::GatherId>) return;
      into.push_back({plan::raw(gather.id), gather.elems});
      elems_[gather.id] = gather.elems;
      ++actions.gathers;
      actions.gathered_elems += gather.elems;
    };
    issue(decision.fetch->gather, fetch.issued_first);
    for (const plan::GatherId id : decision.fetch->wait_for)
      fetch.waited.push_back({plan::raw(id), elems_[id]});
    issue(decision.fetch->prefetch, fetch.prefetched);
    actions.peak_gathered_elems = std::max(actions.peak_gathered_elems, scheduler_.resident_elems());
    if (!fetch.issued_first.empty() || !fetch.waited.empty() || !fetch.prefetched.empty())
      piece.fetches.push_back(std::move(fetch));
  }

  const plan::ModelPlan& model_;
  std::vector<Piece> pieces_;
  plan::FetchScheduler scheduler_;
  plan::VisitDriver driver_;
  std::map<plan::GatherId, std::int64_t> elems_;
};

/// Buckets of each micro-step that reduces. Stage 1 reduces only in the last micro-step of a step, when its
/// gradients are complete.
void plan_buckets(const RecordedCosts& costs, const plan::ZeroConfig& zero, StepActions& actions) {
  if (zero.stage == 0) return;  // one reduction of all gradients, at the end of the step
  for (std::size_t micro = 0; micro < actions.micro_steps.size(); ++micro) {
    if (zero.stage == 1 && micro + 1 < actions.micro_steps.size()) continue;
    plan::BucketPlanner planner({zero.reduce_bucket_size, plan::allocated_bucket_buffers(zero), false});
    const auto flush = [&](std::size_t piece, const plan::Flush& one) {
      if (one.elems <= 0) return;
      actions.micro_steps[micro][piece].flushed_elems.push_back(one.elems);
      ++actions.flushes;
    };
    for (std::size_t i = 0; i < costs.pieces.size(); ++i) {
      for (const plan::ParamId param : costs.pieces[i].gradients) {
        for (const plan::Flush& one : planner.add(param, costs.model.params[plan::raw(param)].elems))
          flush(i, one);
      }
    }
    if (const auto last = planner.finish()) flush(costs.pieces.size() - 1, *last);
  }
}

/// Stages 1 and 2 gather updated parameters, at most allgather_bucket_size elements at a time over all ranks.
std::vector<std::int64_t> closing_gathers(const RecordedCosts& costs, const plan::ZeroConfig& zero) {
  const std::int64_t all = plan::trainable_elems(costs.model);
  const std::int64_t share = (all + costs.world - 1) / costs.world;
  const std::int64_t shards =
      std::max<std::int64_t>(1, share * costs.world / std::max<std::int64_t>(zero.allgather_bucket_size, 1));
  if (shards > kMostActions) {
    throw std::invalid_argument(
        fmt::format("allgather_bucket_size = {}: {} gathers in a step; a replay takes up to {}",
                    zero.allgather_bucket_size, shards, kMostActions));
  }
  const std::int64_t each = share / shards;
  std::vector<std::int64_t> out(static_cast<std::size_t>(shards), each * costs.world);
  out.back() += (share - each * shards) * costs.world;
  return out;
}

}  // namespace

std::vector<Piece> with_backward_ends(const std::vector<Piece>& pieces, const plan::ModelPlan& model) {
  for (const Piece& piece : pieces)
    if (piece.gate == ev::GateKind::post_backward) return pieces;
  std::vector<Piece> out = pieces;
  std::vector<plan::ModuleId> open;
  const auto is_below = [&](plan::ModuleId module, plan::ModuleId above) {
    for (; module != plan::kNone<plan::ModuleId>; module = model.modules[plan::raw(module)].parent)
      if (module == above) return true;
    return false;
  };
  for (Piece& piece : out) {
    if (piece.gate != ev::GateKind::pre_backward) continue;
    std::vector<Visit> ends;
    while (!open.empty() && !is_below(plan::ModuleId{piece.module}, open.back())) {
      ends.push_back({VisitKind::post_backward, open.back(), plan::kNone<plan::ParamId>});
      open.pop_back();
    }
    piece.visits.insert(piece.visits.begin(), ends.begin(), ends.end());
    open.push_back(plan::ModuleId{piece.module});
  }
  for (; !open.empty() && !out.empty(); open.pop_back())
    out.back().visits.push_back({VisitKind::post_backward, open.back(), plan::kNone<plan::ParamId>});
  return out;
}

std::size_t checked_micro_steps(const RecordedCosts& costs, std::int64_t micro_steps) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(micro_steps, 1));
  if (count * costs.pieces.size() > kMostActions) {
    throw std::invalid_argument(fmt::format(
        "gradient_accumulation_steps = {}: {} module boundaries in a step; a replay takes up to {}", count,
        count * costs.pieces.size(), kMostActions));
  }
  return count;
}

StepActions planned_actions(const RecordedCosts& costs, const plan::ZeroConfig& zero) {
  StepActions actions;
  const std::size_t micro_steps = checked_micro_steps(costs, zero.gradient_accumulation_steps);
  actions.micro_steps.assign(micro_steps, std::vector<PieceActions>(costs.pieces.size()));
  plan_buckets(costs, zero, actions);
  if (zero.stage < 3) {
    if (zero.stage > 0) actions.after_elems = closing_gathers(costs, zero);
    return actions;
  }
  FetchPlanner planner(costs, zero);
  // The first step records the trace, the second begins to follow it, the third follows a step that did.
  for (int step = 0; step < 3; ++step) planner.step(actions);
  return actions;
}

}  // namespace shardscope::analysis::attached
