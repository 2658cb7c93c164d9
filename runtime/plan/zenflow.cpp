#include "runtime/plan/zenflow.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "runtime/plan/rounding.h"

namespace shardscope::plan {

ZenFlowSettings resolve_zenflow(const ZenFlowConfig& config) {
  ZenFlowSettings settings;
  settings.topk_ratio = config.topk_ratio;
  settings.auto_ratio = config.auto_ratio;
  settings.warm_up_steps = config.full_warm_up_rounds;
  settings.overlap_step = config.overlap_step;
  settings.offload_chosen = config.offload;
  // From here on 0 means auto: an interval of 0 steps is impossible.
  settings.update_interval = config.update_interval == ZenFlowConfig::kAuto ? 0 : config.update_interval;
  const bool has_interval = config.select_interval != ZenFlowConfig::kAuto;
  if (config.select_strategy == "auto") {
    if (has_interval) {
      throw std::invalid_argument("select_interval " + std::to_string(config.select_interval) +
                                  ": select_strategy auto chooses once per epoch; leave it out, or set "
                                  "select_strategy to step or epoch");
    }
    // 0 where the length of an epoch is unknown: columns are then chosen once, after the warm-up.
    settings.select_interval = config.steps_per_epoch;
  } else {
    if (!has_interval) {
      throw std::invalid_argument("select_interval: select_strategy " + config.select_strategy +
                                  " needs it as a number");
    }
    settings.select_interval = config.select_interval;
    // Epochs to steps; 0 if the length of an epoch is unknown.
    if (config.select_strategy == "epoch") settings.select_interval *= config.steps_per_epoch;
  }
  // begin_step() updates before each selection: with selections more frequent than the fixed interval, the
  // selections would determine the updates.
  if (settings.update_interval > 0 && settings.select_interval > 0 &&
      settings.select_interval < settings.update_interval) {
    throw std::invalid_argument("select_interval of " + std::to_string(settings.select_interval) +
                                " steps: must not be shorter than update_interval, which is " +
                                std::to_string(settings.update_interval));
  }
  return settings;
}

std::vector<std::int32_t> select_columns(std::span<const float> scores, double ratio) {
  // Truncated, as int(ratio * columns) in Python; the order among equal scores is fixed so that runs repeat.
  const auto count = static_cast<std::size_t>(ratio * static_cast<double>(scores.size()));
  std::vector<std::int32_t> columns(scores.size());
  std::iota(columns.begin(), columns.end(), 0);
  // partial_sort: only the few largest of many columns are needed.
  const auto end = columns.begin() + static_cast<std::ptrdiff_t>(std::min(count, columns.size()));
  std::partial_sort(columns.begin(), end, columns.end(), [&](std::int32_t a, std::int32_t b) {
    const float x = scores[static_cast<std::size_t>(a)];
    const float y = scores[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  });
  columns.erase(end, columns.end());
  std::sort(columns.begin(), columns.end());
  return columns;
}

std::int64_t ColumnSlice::capacity() const noexcept {
  if (columns == 0) return elems;
  // The slice is a run of a row-major matrix [rows, columns] that may begin and end inside a row. Rows that
  // the slice touches, counted from the beginning of its first row. Each has at most `choose` elements in
  // chosen columns.
  const std::int64_t rows = ceil_div(first_column + elems, columns);
  return std::min(elems, choose * rows);
}

std::vector<ColumnSlice> column_slices(const ModelPlan& model, const Ownership& ownership, std::uint32_t rank,
                                       double topk_ratio) {
  std::vector<ColumnSlice> slices;
  for (const ParamPlan& param : model.params) {
    if (!param.trainable) continue;
    for (const OwnedSlice& owned : ownership.slices(param.id, rank)) {
      // In stage 3 a rank past the end of a small parameter owns padding only.
      if (owned.elems == 0) continue;
      ColumnSlice slice{param.id, owned.owned_offset, owned.elems, 0, 0, 0};
      if (param.shape.size() == 2) {
        slice.columns = param.shape[1];
        // Row-major, so the column is the offset within the row.
        slice.first_column = owned.param_offset % slice.columns;
        // A slice shorter than a row touches only its own columns.
        const std::int64_t touched = std::min(slice.columns, slice.elems);
        slice.choose = static_cast<std::int64_t>(topk_ratio * static_cast<double>(touched));
      }
      slices.push_back(slice);
    }
  }
  std::sort(slices.begin(), slices.end(),
            [](const ColumnSlice& a, const ColumnSlice& b) { return a.owned_offset < b.owned_offset; });
  return slices;
}

ZenFlowSchedule::ZenFlowSchedule(const ZenFlowSettings& settings, std::size_t matrices)
    : settings_(settings), average_selected_(matrices, 0.0), waiting_(matrices, 0.0) {}

namespace {

bool every(std::int64_t interval, std::int64_t count) noexcept {
  return interval != 0 && count % interval == 0;
}

}  // namespace

// votes_ is left out: the next begin_step() sets it to 0.
ZenFlowProgress ZenFlowSchedule::save() const {
  ZenFlowProgress progress;
  progress.step = step_;
  progress.in_sum = in_sum_;
  progress.since_decision = since_decision_;
  progress.decided = decided_;
  progress.average_selected = average_selected_;
  progress.waiting = waiting_;
  return progress;
}

void ZenFlowSchedule::restore(const ZenFlowProgress& progress) {
  if (progress.average_selected.size() != waiting_.size() || progress.waiting.size() != waiting_.size()) {
    throw std::invalid_argument("zenflow: votes of " + std::to_string(progress.waiting.size()) +
                                " matrices, but the model has " + std::to_string(waiting_.size()));
  }
  step_ = progress.step;
  in_sum_ = progress.in_sum;
  since_decision_ = progress.since_decision;
  decided_ = progress.decided;
  average_selected_ = progress.average_selected;
  waiting_ = progress.waiting;
}

bool ZenFlowSchedule::selects_next() const noexcept {
  const std::int64_t beyond = step_ - settings_.warm_up_steps;
  // The first step after the warm-up always chooses: until then there are no columns. Later selections count
  // from step 0, not from the end of the warm-up.
  return beyond >= 0 && (beyond == 0 || every(settings_.select_interval, step_));
}

/// If several causes apply, the first is reported.
ZenFlowSchedule::Step ZenFlowSchedule::begin_step() {
  // Before step_ moves: selects_next() is about the step that begins here.
  const bool select = selects_next();
  const std::int64_t step = step_++;
  const std::int64_t beyond = step - settings_.warm_up_steps;
  Step now;
  now.warm_up = beyond < 0;
  now.select = select;
  if (select) now.select_cause = beyond == 0 ? SelectionCause::first : SelectionCause::interval;
  const auto update = [&](bool holds, UpdateCause cause) {
    if (!holds || now.update) return;
    now.update = true;
    now.update_cause = cause;
  };
  // In the order of UpdateCause: the lambda keeps the first that applies. `beyond + 1` counts the steps up to
  // and with this one.
  update(beyond + 1 <= 0, UpdateCause::warm_up);
  update(every(settings_.update_interval, beyond + 1), UpdateCause::interval);
  update(observes() && decided_, UpdateCause::votes);
  // Before a new selection no gradients of the old one may be left in the sum.
  update(every(settings_.select_interval, step + 1), UpdateCause::before_selection);
  // The votes of the previous step are consumed, even if this step updates for another cause.
  if (observes()) {
    votes_ = 0;
    if (decided_) {
      // The update consumed the sums that voted. average_selected_ stays: with u = 1 next, its factor (u
      // - 1) drops it.
      since_decision_ = 0;
      std::fill(waiting_.begin(), waiting_.end(), 0.0);
    }
    ++since_decision_;
    // A step without observe() makes no decision for the next.
    decided_ = false;
  }
  now.steps_in_sum = ++in_sum_;  // this step's gradient is part of the sum that an update takes
  if (now.update) in_sum_ = 0;
  return now;
}

void ZenFlowSchedule::observe(std::span<const GradientMass> masses) {
  if (masses.size() != waiting_.size()) {
    throw std::invalid_argument("zenflow: " + std::to_string(masses.size()) + " masses of " +
                                std::to_string(waiting_.size()) + " matrices");
  }
  // At least 1: begin_step() counted this step.
  const auto u = static_cast<double>(since_decision_);
  // DeepSpeed's weights of the two sides (O5): each mass is divided by its share of the columns, so that both
  // are per column.
  const double chosen = 10 * settings_.topk_ratio;
  const double rest = 10 * (1 - settings_.topk_ratio);
  votes_ = 0;
  for (std::size_t i = 0; i < masses.size(); ++i) {
    // With all or no columns chosen one side is empty; its sum is 0, whatever it would be divided by.
    const double selected =
        chosen > 0 ? (average_selected_[i] * (u - 1) + masses[i].selected) / u / chosen : 0;
    average_selected_[i] = selected;
    if (rest > 0) waiting_[i] += (masses[i].all - masses[i].selected) / rest;
    if (waiting_[i] >= selected) ++votes_;
  }
  // The masses are sums over all ranks, so that every rank comes to the same decision without another
  // collective.
  decided_ = votes_ >= votes_needed();
}

std::int64_t ZenFlowSchedule::votes_needed() const noexcept {
  return static_cast<std::int64_t>(settings_.auto_ratio * static_cast<double>(waiting_.size()));
}

bool needs_columns(const ZenFlowSettings& settings, const ZenFlowProgress& progress) {
  if (!progress.chosen) return false;
  // Computed by the schedule itself, so that it always agrees with begin_step().
  ZenFlowSchedule schedule(settings, progress.waiting.size());
  schedule.restore(progress);
  return !schedule.selects_next();
}

std::string why_not_continue(const std::optional<ZenFlowSettings>& settings, const ZenFlowProgress& progress,
                             bool same_layout) {
  const std::string sum = "the gradients of " + std::to_string(progress.in_sum) +
                          (progress.in_sum == 1 ? " step" : " steps") + " wait for ZenFlow's next update";
  // Without ZenFlow the sum is never applied: its gradients would be lost silently.
  if (!settings) {
    if (progress.in_sum == 0) return {};
    return sum +
           "; continue with \"zenflow\", or from a checkpoint made after an update (each update_interval)";
  }
  // The next step uses the columns of the checkpoint, which are valid only for a rank that owns the same
  // rows.
  if (needs_columns(*settings, progress)) {
    if (same_layout) return {};
    return "ZenFlow's chosen columns are those of the rows each rank owned; continue with the same ranks, "
           "stage "
           "and layout, or from a checkpoint after which columns are chosen anew (each select_interval)";
  }
  // The settings changed so that the next step selects: with the old ones an update would have come first,
  // and the sum would now be split by columns other than those it was accumulated with.
  if (progress.chosen && progress.in_sum > 0) {
    return sum +
           ", but with these settings columns are chosen anew before it; continue with the settings the "
           "run had";
  }
  return {};
}

// Rounded up: pieces start with the first step, and none is left after the last.
std::int64_t pieces_due(std::int64_t pieces, std::int64_t step, std::int64_t steps) noexcept {
  if (step >= steps) return pieces;
  return ceil_div(pieces * step, steps);
}

}  // namespace shardscope::plan
