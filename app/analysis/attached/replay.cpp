#include "app/analysis/attached/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <map>
#include <utility>

#include "app/analysis/framework.h"
#include "app/analysis/statistics.h"
#include "app/analysis/zero_settings.h"
#include "app/store/model_states.h"
#include "instrumentation/bus_factor.h"
#include "runtime/plan/gradient_buckets.h"
#include "runtime/plan/memory_model.h"

namespace shardscope::analysis::attached {
namespace {

using ev::CollectiveOp;

double elems_of(const std::vector<GatherAction>& gathers) {
  double sum = 0;
  for (const GatherAction& one : gathers) sum += static_cast<double>(one.elems);
  return sum;
}

/// Replays one step on all ranks. Gathers run one after another, beside the hosts unless they were recorded
/// to block them. A reduction blocks every host until it ends; DDP's runs beside the backward.
class StepPlayer {
 public:
  struct Settings {
    const RecordedCosts& costs;
    const StepActions& recorded;
    const StepActions& played;
    std::uint32_t recorded_stage = 0, stage = 0;
  };
  StepPlayer(const Settings& settings, const RecordedStep& step)
      : of_(settings), step_(step), host_(step.ranks.size()), waited_(step.ranks.size()) {}

  /// Returns nanoseconds, mean over ranks.
  double play() {
    for (std::size_t r = 0; r < host_.size(); ++r) host_[r] = step_.ranks[r].before_ns;
    const std::size_t recorded = of_.recorded.micro_steps.size(), played = of_.played.micro_steps.size();
    for (std::size_t micro = 0; micro < played; ++micro) {
      // The last micro-step differs from the others: gradients are complete after it.
      const bool last = micro + 1 == played;
      const std::size_t like = last || recorded == 1 ? recorded - 1 : micro % (recorded - 1);
      play_micro_step(micro, like, last);
    }
    play_update();
    return mean(host_);
  }
  [[nodiscard]] double waited_ns() const { return mean(waited_); }

 private:
  static double mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  }
  [[nodiscard]] double gather_ns(double elems) const {
    const LinkPace& link = of_.costs.gather.gb_per_s > 0 ? of_.costs.gather : of_.costs.reduce;
    return transfer_ns(link, elems * of_.costs.gather_elem_bytes *
                                 ev::bus_factor(CollectiveOp::all_gather, of_.costs.world));
  }
  [[nodiscard]] double reduce_ns(double elems) const {
    const LinkPace& link = of_.costs.reduce.gb_per_s > 0 ? of_.costs.reduce : of_.costs.gather;
    const CollectiveOp op = of_.stage == 3 ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce;
    return transfer_ns(link, elems * of_.costs.reduce_elem_bytes * ev::bus_factor(op, of_.costs.world));
  }
  [[nodiscard]] double transfer_ns(const LinkPace& link, double bytes) const {
    if (link.gb_per_s <= 0 || of_.costs.world < 2) return 0;
    return hops_of(of_.costs.world) * link.latency_us * 1e3 + bytes / link.gb_per_s;
  }

  /// Host time of the hooks and their work, without waiting.
  [[nodiscard]] double fetch_cost(const FetchAction& fetch) const {
    const auto gathers = static_cast<double>(fetch.issued_first.size() + fetch.prefetched.size());
    return of_.costs.issue.ns(gathers, elems_of(fetch.issued_first) + elems_of(fetch.prefetched)) +
           of_.costs.unpack.ns(static_cast<double>(fetch.waited.size()), elems_of(fetch.waited));
  }
  [[nodiscard]] double cost(const PieceActions& actions) const {
    double sum = 0;
    for (const FetchAction& fetch : actions.fetches) sum += fetch_cost(fetch);
    for (const std::int64_t elems : actions.flushed_elems)
      sum += of_.costs.flush.ns(1, static_cast<double>(elems));
    return sum;
  }
  /// Host time of stage 3's hooks at a boundary, which lower stages do not have.
  [[nodiscard]] double hooks_ns(const Piece& piece) const {
    if (of_.recorded_stage != 3 || of_.stage == 3) return 0;
    switch (piece.gate) {
      case ev::GateKind::pre_forward:
      case ev::GateKind::pre_backward:
        return of_.costs.fetch_ns;
      case ev::GateKind::post_forward:
      case ev::GateKind::post_backward:
        return of_.costs.release_ns;
      default:
        return 0;
    }
  }

  /// DistributedDataParallel reduces beside the backward, and the host waits at its end.
  [[nodiscard]] bool beside() const noexcept { return !of_.costs.reduced.empty(); }
  double latest() const { return *std::ranges::max_element(host_); }
  void all_go_on_at(double ns) {
    for (std::size_t r = 0; r < host_.size(); ++r) {
      waited_[r] += std::max(0.0, ns - host_[r]);
      host_[r] = std::max(host_[r], ns);
    }
  }
  void issue(const std::vector<GatherAction>& gathers) {
    for (const GatherAction& one : gathers) {
      lane_free_ = std::max(lane_free_, latest()) + gather_ns(static_cast<double>(one.elems));
      ended_[one.id] = lane_free_;
      if (of_.costs.gathers_block) all_go_on_at(lane_free_);
    }
  }
  void fetch(const FetchAction& one) {
    for (double& host : host_)
      host += of_.costs.issue.ns(static_cast<double>(one.issued_first.size()), elems_of(one.issued_first));
    issue(one.issued_first);
    for (const GatherAction& gather : one.waited) {
      all_go_on_at(ended_[gather.id]);
      for (double& host : host_) host += of_.costs.unpack.ns(1, static_cast<double>(gather.elems));
    }
    for (double& host : host_)
      host += of_.costs.issue.ns(static_cast<double>(one.prefetched.size()), elems_of(one.prefetched));
    issue(one.prefetched);
  }

  void play_micro_step(std::size_t micro, std::size_t like, bool last) {
    for (std::size_t i = 0; i < of_.costs.pieces.size(); ++i) {
      const PieceActions& actions = of_.played.micro_steps[micro][i];
      const double before = cost(of_.recorded.micro_steps[like][i]) + hooks_ns(of_.costs.pieces[i]);
      for (const FetchAction& one : actions.fetches) fetch(one);
      double other = std::numeric_limits<double>::max();
      for (std::size_t r = 0; r < host_.size(); ++r) {
        const MicroStepTime& time = step_.ranks[r].micro_steps[like];
        // own_ns includes the recorded actions; the replayed ones are added separately.
        host_[r] += std::max(0.0, time.own_ns[i] - before);
        other = std::min(other, time.other_ns[i]);
      }
      for (const std::int64_t elems : actions.flushed_elems) {
        for (double& host : host_) host += of_.costs.flush.ns(1, static_cast<double>(elems));
        if (beside()) {
          lane_free_ = std::max(lane_free_, latest()) + reduce_ns(static_cast<double>(elems));
        } else {
          all_go_on_at(latest() + reduce_ns(static_cast<double>(elems)));
        }
      }
      // Stage 0 reduces once per step, when gradients are complete.
      const bool once = of_.stage == 0 && !beside() && !last && like + 1 == of_.recorded.micro_steps.size();
      if (other > 0 && !once) all_go_on_at(latest() + other);
    }
    if (beside()) all_go_on_at(lane_free_);
  }

  void play_update() {
    const bool stage3 = of_.stage == 3, was_stage3 = of_.recorded_stage == 3;
    const bool as_recorded = stage3 == was_stage3 && of_.played.after_elems == of_.recorded.after_elems;
    double collectives = std::numeric_limits<double>::max(), after = collectives;
    for (std::size_t r = 0; r < host_.size(); ++r) {
      const UpdateTime& time = step_.ranks[r].update;
      host_[r] += time.own_ns;
      collectives = std::min(collectives, time.collectives_ns);
      after = std::min(after, time.after_collectives_ns);
    }
    if (collectives > 0) all_go_on_at(latest() + collectives);
    if (!as_recorded) {
      after = 0;
      for (const std::int64_t elems : of_.played.after_elems) after += gather_ns(static_cast<double>(elems));
    }
    // In stage 3 the host's work after the update differs from that of other stages, and only the recorded
    // stage's is known.
    const double scale = as_recorded ? 1
                         : stage3 != was_stage3 || of_.recorded.after_elems.empty()
                             ? 0
                             : static_cast<double>(of_.played.after_elems.size()) /
                                   static_cast<double>(of_.recorded.after_elems.size());
    for (std::size_t r = 0; r < host_.size(); ++r) host_[r] += scale * step_.ranks[r].update.after_ns;
    if (after > 0) all_go_on_at(latest() + after);
  }

  const Settings& of_;
  const RecordedStep& step_;
  std::vector<double> host_, waited_;  ///< by rank
  double lane_free_ = 0;
  std::map<std::uint32_t, double> ended_;
};

}  // namespace

AttachedRun::AttachedRun(const store::Store& store) : costs_(recorded_costs(store)) {
  missing_ = costs_.missing;
  no_times_ = costs_.no_times;
  if (!missing_.empty()) return;
  tables_ = store.tables();
  if (in_groups() || is_ddp()) {
    settings_.zero.stage = in_groups() ? 3 : 0;
  } else if (names_zero_settings(tables_.config_json)) {
    settings_.zero = zero_of(tables_);
  } else {
    missing_ = "the recording names no zero_optimization settings";
    return;
  }
  // As executed: a script may differ from its configuration.
  settings_.zero.gradient_accumulation_steps =
      static_cast<std::int64_t>(costs_.steps.front().ranks.front().micro_steps.size());
  for (const store::RankRow& rank : store.ranks()) {
    if (const auto peak = store.model_state_peak(rank.rank, ev::MemoryPool::device))
      recorded_state_bytes_ = std::max(recorded_state_bytes_, peak->total());
  }
  try {
    if (in_groups()) recorded_groups_ = group_plan(settings_);
    recorded_ = actions_of(settings_);
    modelled_ = play(settings_);
  } catch (const std::exception& error) {
    // Limits that no scheduler accepts, or visits with which DeepSpeed would have ended the run.
    missing_ = error.what();
    return;
  }
  missing_ = why_it_differs();
  if (no_times_.empty() && !(std::abs(model_error_pct()) <= kMostErrorPct)) {
    no_times_ = fmt::format(
        "a replay of the recorded settings takes {:.4g} ms a step and the run took {:.4g}, {:+.1f} %: more "
        "than "
        "the {:.0f} % within which a replay is taken for the run",
        modelled_.step_ms, costs_.step_ms, model_error_pct(), kMostErrorPct);
    modelled_.step_ms = modelled_.waited_ms = std::numeric_limits<double>::quiet_NaN();
  }
}

std::string AttachedRun::why_it_differs() const {
  const auto other = [](const char* what, std::int64_t played, std::int64_t recorded) {
    return fmt::format(
        "a replay of the recorded settings has {} {} in a step and the run had {}: the replay's decisions "
        "are not those of the run",
        played, what, recorded);
  };
  const plan::ZeroConfig& zero = settings_.zero;
  // Of FSDP2 each gather of a group is compared instead.
  const bool by_number = zero.stage == 3 && !in_groups();
  if (recorded_.gathers != costs_.gathers && by_number)
    return other("gathers", recorded_.gathers, costs_.gathers);
  if (recorded_.gathered_elems != costs_.gathered_elems && by_number)
    return other("gathered elements", recorded_.gathered_elems, costs_.gathered_elems);
  if (recorded_.flushes != costs_.flushes && zero.stage > 0)
    return other("reduced buckets", recorded_.flushes, costs_.flushes);
  if (is_ddp() && !reduces_as_recorded(costs_, recorded_))
    return "buckets were reduced at other module boundaries than in a replay of the recorded settings";
  if (in_groups() && recorded_groups_.decisions != costs_.decisions)
    return "groups were gathered or reduced at other module boundaries than in a replay of the recorded "
           "settings";
  return {};
}

double AttachedRun::model_error_pct() const noexcept {
  return 100 * (modelled_.step_ms / costs_.step_ms - 1);
}

double AttachedRun::predicted_ms(const ReplayOutcome& played) const noexcept {
  return costs_.step_ms + played.step_ms - modelled_.step_ms;
}

std::int64_t AttachedRun::gathered_bytes(const ReplayOutcome& played) const noexcept {
  return std::llround(static_cast<double>(played.actions.peak_gathered_elems) * costs_.gather_elem_bytes);
}

StepActions AttachedRun::actions_of(const ReplaySettings& settings) const {
  const plan::ZeroConfig& zero = settings.zero;
  if (in_groups()) return group_plan(settings).actions;
  if (is_ddp())
    return planned_bucket_actions(costs_, settings.buckets, zero.gradient_accumulation_steps,
                                  tables_.grad_bytes);
  return planned_actions(costs_, zero);
}

GroupPlan AttachedRun::group_plan(const ReplaySettings& settings) const {
  return planned_group_actions(costs_, settings.groups, settings.zero.gradient_accumulation_steps,
                               tables_.grad_bytes);
}

ReplayOutcome AttachedRun::play(const ReplaySettings& settings) const {
  const plan::ZeroConfig& zero = settings.zero;
  ReplayOutcome out;
  if (is_ddp()) {
    // Its gradients and buckets are whole on each rank, whatever the buckets' size.
    out.actions = actions_of(settings);
    out.model_state_bytes = recorded_state_bytes_;
  } else if (in_groups()) {
    const GroupPlan plan = group_plan(settings);
    out.actions = plan.actions;
    out.model_state_bytes =
        recorded_state_bytes_ + plan.peak_gradient_bytes - recorded_groups_.peak_gradient_bytes;
  } else {
    out.actions = planned_actions(costs_, zero);
    out.model_state_bytes = state_bytes(zero);
    if (zero.stage > 0 && zero.contiguous_gradients)
      out.bucket_bytes = zero.reduce_bucket_size * plan::allocated_bucket_buffers(zero) * tables_.grad_bytes;
  }
  if (!no_times_.empty()) {
    out.step_ms = out.waited_ms = std::numeric_limits<double>::quiet_NaN();
    return out;
  }
  const StepPlayer::Settings of{costs_, recorded_, out.actions, settings_.zero.stage, zero.stage};
  std::vector<double> step_ms;
  for (const RecordedStep& step : costs_.steps) {
    StepPlayer player(of, step);
    step_ms.push_back(player.play() * 1e-6);
    out.waited_ms += player.waited_ns() * 1e-6 / static_cast<double>(costs_.steps.size());
  }
  out.step_ms = quantile(step_ms, 0.5);
  return out;
}

/// The recorded peak, adjusted by the difference of the stages' formulas. During its update stage 3 holds
/// owned gradients twice, as reduced and as optimizer input, for one sub-group at a time. Stage 1 keeps whole
/// gradients only between micro-steps.
std::int64_t AttachedRun::state_bytes(const plan::ZeroConfig& zero) const {
  const plan::StateBytes bytes = state_bytes_of(tables_);
  const auto elems = static_cast<double>(plan::trainable_elems(costs_.model));
  const double ranks = costs_.world;
  const auto states = [&](const plan::ZeroConfig& of) {
    const double twice =
        of.stage == 3 ? 4 * std::min(elems / ranks, static_cast<double>(of.sub_group_size)) : 0;
    const std::uint32_t stage = of.stage == 1 && of.gradient_accumulation_steps == 1 ? 2 : of.stage;
    return plan::state_expression(stage, bytes).bytes(elems, ranks) + twice;
  };
  return recorded_state_bytes_ + std::llround(states(zero) - states(settings_.zero));
}

std::vector<std::string> AttachedRun::caveats(const ReplaySettings& settings) const {
  std::vector<std::string> out;
  if (in_groups() || is_ddp()) {
    const bool one = costs_.steps.front().ranks.front().micro_steps.size() == 1;
    const bool said = settings.groups.reduce_last_only || settings.buckets.reduce_last_only;
    if (one && settings.zero.gradient_accumulation_steps > 1 && !said)
      out.emplace_back(
          "The recording has one micro-step a step: each of the others is assumed to reduce its gradients as "
          "well.");
    return out;
  }
  const plan::ZeroConfig &zero = settings.zero, &recorded = settings_.zero;
  if (zero.stage == 3 && recorded.stage < 3) {
    out.emplace_back(
        "What stage 3's hooks cost at each module boundary, a gather beside its transfer, and which "
        "parameters a module "
        "reads from others, is in no recording of a stage below: the prediction has none of it, and a run "
        "will rather "
        "take longer.");
  }
  if (zero.overlap() != recorded.overlap() && no_times_.empty()) {
    out.emplace_back(
        "On a CPU overlap_comm changes no time: there are no streams, a bucket's reduction holds the host "
        "either way.");
  }
  return out;
}

}  // namespace shardscope::analysis::attached
