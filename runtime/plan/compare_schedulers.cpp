#include "runtime/plan/compare_schedulers.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "runtime/plan/backward_ends.h"
#include "runtime/plan/returned_values.h"
#include "runtime/plan/visit_driver.h"

namespace shardscope::plan {
namespace {

/// What the scheduler did at one boundary.
// Ids in the order of the scheduler's plan: a different order counts as a difference.
struct BoundaryActions {
  ModuleId module{};
  Direction direction{};
  // A fetch fills `gathered` and `prefetched`, a release `released`.
  bool release = false;
  std::vector<ParamId> gathered{}, prefetched{}, released{};
};

struct Run {
  SchedulerTotals totals;
  std::vector<BoundaryActions> boundaries;
  std::vector<ParamId> after_step;  ///< persistent parameters gathered again
};

/// Records one scheduler's decision at each boundary, and the totals.
class Follower {
 public:
  Follower(const ModelPlan& model, std::uint32_t world, const SchedulerConfig& config)
      : scheduler_(model, world, config),
        driver_(scheduler_),
        ends_(config.compat),
        returned_(model, config.compat) {}

  Run iteration(const std::vector<Visit>& visits) {
    // The scheduler keeps its trace from one iteration to the next; only the totals start again.
    run_ = {};
    // The previous iteration ended in its backward.
    forward_ = Direction::forward;
    returned_.clear();
    (void)driver_.begin_iteration();
    // Parameters held at the start count to the peak: persistent ones, and those that the last step gathered.
    see_memory();
    for (std::size_t i = 0; i < visits.size(); ++i) {
      // Read only to be returned: such a read produces no gradient.
      const bool to_return = i + 1 < visits.size() && visits[i + 1].kind == VisitKind::return_param &&
                             visits[i + 1].param == visits[i].param;
      if (visits[i].kind == VisitKind::use_external && !to_return) returned_.read(visits[i].param);
      take(visits[i]);
    }
    const Gather persistent = driver_.end_step();
    // Gathered after all boundaries: compare_schedulers() reports it at the last one.
    count(persistent);
    run_.after_step = persistent.params;
    return std::move(run_);
  }

 private:
  void count(const Gather& gather) {
    if (gather.id == kNone<GatherId>) return;
    // One collective, whatever the number of parameters.
    ++run_.totals.gathers;
    run_.totals.gathered_elems += gather.elems;
  }
  void see_memory() {
    run_.totals.peak_elems = std::max(run_.totals.peak_elems, scheduler_.resident_elems());
  }

  /// One of the fetches that are made at the boundary.
  void add(const FetchPlan& plan, BoundaryActions& at) {
    count(plan.gather);
    count(plan.prefetch);
    // The module itself waits for it; a later module waits for a prefetch.
    run_.totals.on_demand += plan.gather.id != kNone<GatherId> ? 1 : 0;
    // Only after a fetch: a release can only lower the peak.
    see_memory();
    // Not all parameters that the plan waits for: some were prefetched, and counted, at an earlier boundary.
    at.gathered.insert(at.gathered.end(), plan.gather.params.begin(), plan.gather.params.end());
    at.prefetched.insert(at.prefetched.end(), plan.prefetch.params.begin(), plan.prefetch.params.end());
  }
  /// All fetches of a visit are one boundary, so that both sides have the same number.
  void fetch(const Visit& visit, std::size_t fetches) {
    BoundaryActions at{visit.module, forward_};
    for (; fetches > 0; --fetches) add(driver_.take(visit).fetch.value(), at);
    run_.boundaries.push_back(std::move(at));
  }
  void release(const Visit& visit, Direction direction) {
    BoundaryActions at{visit.module, direction, true};
    // DeepSpeed's hooks omit some ends. Both sides make a boundary of every visit, so that boundaries pair
    // up.
    const bool left_out = visit.kind == VisitKind::post_backward && !ends_.reports(visit.module);
    if (!left_out) at.released = driver_.take(visit).release.value().released;
    run_.boundaries.push_back(std::move(at));
  }

  void take(const Visit& visit) {
    switch (visit.kind) {
      // `ends_` restarts the count of a module's inputs at each forward.
      case VisitKind::pre_forward:
        ends_.forward(visit.module);
        returned_.entered();
        return fetch(visit, 1);
      // DeepSpeed fetches a module once more for each parameter that it returned.
      case VisitKind::pre_backward:
        forward_ = Direction::backward;  // a forward from here on is a recomputation
        return fetch(visit, 1 + returned_.further_fetches(visit.module));
      // Boundaries of the module that reads or returns the parameter.
      case VisitKind::use_external:
      case VisitKind::return_param:
        return fetch(visit, 1);
      case VisitKind::post_forward:
        returned_.left(visit.module);
        return release(visit, forward_);
      case VisitKind::post_backward:
        return release(visit, Direction::backward);
      case VisitKind::begin_recompute:
        returned_.recomputes(visit.module);
        [[fallthrough]];
      case VisitKind::end_recompute:
        (void)driver_.take(visit);
        return;
    }
  }

  FetchScheduler scheduler_;
  VisitDriver driver_;
  BackwardEnds ends_;
  ReturnedValues returned_;
  Run run_;
  Direction forward_ = Direction::forward;  ///< direction of the next pre-forward
};

/// "60 000": groups of three digits, so that large counts can be read.
std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t sign = value < 0 ? 1 : 0;
  // From the right, so that positions further left stay valid. The sign is no digit.
  for (std::size_t at = digits.size(); at > sign + 3;) {
    at -= 3;
    digits.insert(at, 1, ' ');
  }
  return digits;
}

std::string named(const ModelPlan& model, const std::vector<ParamId>& params) {
  if (params.empty()) return "nothing";
  constexpr std::size_t kShown = 3;
  std::string text;
  std::int64_t elems = 0;
  for (std::size_t i = 0; i < params.size(); ++i) {
    const ParamPlan& param = model.params[raw(params[i])];
    // The sum of all parameters, although only the first kShown are named.
    elems += param.elems;
    if (i < kShown) text += (i > 0 ? ", " : "") + param.name;
  }
  if (params.size() > kShown) text += ", ... " + std::to_string(params.size()) + " in all";
  return text + " (" + grouped(elems) + " elements)";
}

// "the root": its path is empty.
std::string boundary(const ModelPlan& model, const BoundaryActions& at) {
  const std::string& path = model.modules[raw(at.module)].path;
  return std::string(at.release ? "after " : "before ") + (path.empty() ? "the root" : path) +
         (at.direction == Direction::forward ? ", forward: " : ", backward: ");
}

/// Empty if the actions are equal.
std::string difference(const ModelPlan& model, const BoundaryActions& a, const BoundaryActions& b,
                       const char* a_name, const char* b_name) {
  std::string text;
  const auto part = [&](const char* verb, const std::vector<ParamId>& of_a,
                        const std::vector<ParamId>& of_b) {
    if (of_a == of_b) return;
    if (!text.empty()) text += "; ";
    text += std::string(a_name) + ' ' + verb + ' ' + named(model, of_a) + ", " + b_name + ' ' +
            named(model, of_b);
  };
  part("fetches", a.gathered, b.gathered);
  part("prefetches", a.prefetched, b.prefetched);
  part("releases", a.released, b.released);
  return text.empty() ? text : boundary(model, a) + text;
}

}  // namespace

const char* to_string(Compat compat) noexcept {
  switch (compat) {
    case Compat::shardscope:
      return "shardscope";
    case Compat::deepspeed:
      return "deepspeed";
    case Compat::notes:
      return "notes";
  }
  return "?";
}

std::string SchedulerComparison::summary(const char* first_name, const char* second_name) const {
  if (differences.empty()) return "";
  const auto pair = [](std::int64_t a, std::int64_t b) { return grouped(a) + " and " + grouped(b); };
  return std::string(first_name) + " and " + second_name + " differ at " +
         std::to_string(differences.size()) + " module boundaries: gathers " +
         pair(first.gathers, second.gathers) + ", of which waited for by their own module " +
         pair(first.on_demand, second.on_demand) + "; elements gathered " +
         pair(first.gathered_elems, second.gathered_elems) + "; most elements held at a time " +
         pair(first.peak_elems, second.peak_elems);
}

SchedulerComparison compare_schedulers(const ModelPlan& model, std::uint32_t world, SchedulerConfig config,
                                       const std::vector<Visit>& visits, Compat first, Compat second) {
  // Each side has its own scheduler: traces and persistent parameters must not be shared.
  const auto third = [&](Compat compat) {
    config.compat = compat;
    Follower follower(model, world, config);
    for (int iteration = 0; iteration < 2; ++iteration) (void)follower.iteration(visits);
    return follower.iteration(visits);
  };
  // The first iteration records the trace, the second follows it, the third begins after the step of such an
  // iteration.
  const Run a = third(first);
  const Run b = third(second);
  SchedulerComparison comparison{a.totals, b.totals, {}};
  // Both saw the same visits, so boundaries pair up.
  // The number of a boundary is its index: recompute marks made none.
  for (std::size_t i = 0; i < a.boundaries.size(); ++i) {
    std::string text =
        difference(model, a.boundaries[i], b.boundaries[i], to_string(first), to_string(second));
    if (text.empty()) continue;
    comparison.differences.push_back(
        {static_cast<std::int64_t>(i), a.boundaries[i].module, a.boundaries[i].direction, std::move(text)});
  }
  // Our scheduler keeps frozen parameters gathered.
  if (a.after_step != b.after_step && !a.boundaries.empty()) {
    const BoundaryActions& last = a.boundaries.back();
    comparison.differences.push_back(
        {static_cast<std::int64_t>(a.boundaries.size()) - 1, last.module, last.direction,
         std::string("after the optimizer step: ") + to_string(first) + " gathers " +
             named(model, a.after_step) + ", " + to_string(second) + ' ' + named(model, b.after_step)});
  }
  return comparison;
}

SchedulerComparison compare_schedulers(const ModelPlan& model, std::uint32_t world, SchedulerConfig config,
                                       Compat first, Compat second) {
  return compare_schedulers(model, world, std::move(config), visit_order(model), first, second);
}

}  // namespace shardscope::plan
