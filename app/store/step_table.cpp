#include "app/store/step_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace shardscope::store {

namespace {
/// Most steps without a begin whose values are kept.
constexpr std::size_t kEarlySteps = 16;
/// Per step: some values of each of thousands of ranks.
constexpr std::size_t kEarlyValues = 1U << 16;
/// A run is not started again more often; beyond, attempts are added up.
constexpr std::size_t kMostRewinds = 1U << 10;

/// Every kind in this table has the step as first field.
std::uint32_t step_of(const ev::Event& event) noexcept {
  return ev::as<ev::EventKind::step_begin>(event).step;
}
}  // namespace

std::size_t StepTable::place_of(std::uint32_t step) const {
  if (!rows_.empty() && rows_.back().step == step) return rows_.size() - 1;
  const auto at = std::lower_bound(rows_.begin(), rows_.end(), step,
                                   [](const StepRow& row, std::uint32_t s) { return row.step < s; });
  return static_cast<std::size_t>(at - rows_.begin());
}

bool StepTable::has_row(std::size_t place, std::uint32_t step) const {
  return place < rows_.size() && rows_[place].step == step;
}

std::size_t StepTable::index_of(std::uint32_t step) {
  const std::size_t index = place_of(step);
  if (has_row(index, step)) return index;
  StepRow row;
  row.step = step;
  row.begin_ns = kOpen;
  rows_.insert(rows_.begin() + static_cast<std::ptrdiff_t>(index), row);
  sums_.insert(sums_.begin() + static_cast<std::ptrdiff_t>(index), Sums{});
  if (const auto early = early_.find(step); early != early_.end()) {
    for (const Early& value : early->second) {
      rows_[index].begin_ns = std::min(rows_[index].begin_ns, value.at_ns);
      set_value(index, value.event);
    }
    early_.erase(early);
  }
  return index;
}

void StepTable::keep_for_later(const ev::Event& event, std::int64_t at_ns) {
  std::vector<Early>& values = early_[step_of(event)];
  if (values.size() < kEarlyValues) values.push_back({event, at_ns});
  if (early_.size() > kEarlySteps) early_.erase(early_.begin());
}

void StepTable::end_of_rank(std::size_t index, std::optional<std::int64_t> at_ns) {
  Sums& sums = sums_[index];
  ++sums.ended;
  if (at_ns) {
    sums.latest_end_ns = std::max(sums.latest_end_ns, *at_ns);
    first_end_ns_ = std::min(first_end_ns_, *at_ns);
    if (!all_came_ && *at_ns - first_end_ns_ > kAwaited_ns) wait_no_longer();
  }
  judge_end(index);
}

std::uint32_t StepTable::awaited(std::uint32_t step) const {
  if (!all_came_) return world_;
  std::uint32_t came = 0;
  for (const auto& [first, ranks] : first_steps_) came += first <= step ? ranks : 0;
  return std::min(world_, came);
}

void StepTable::judge_end(std::size_t index) {
  const Sums& sums = sums_[index];
  if (sums.latest_end_ns == INT64_MIN) return;
  StepRow& row = rows_[index];
  // A rank whose begin was dropped is counted by its end.
  const bool over = sums.ended >= std::max(awaited(row.step), sums.begun);
  row.end_ns = over ? std::max(sums.latest_end_ns, row.begin_ns) : kOpen;
}

void StepTable::judge_ends(std::uint32_t from_step) {
  // Restored rows are final.
  for (std::size_t index = place_of(std::max(from_step, first_kept_)); index < rows_.size(); ++index)
    judge_end(index);
}

void StepTable::wait_no_longer() {
  if (std::exchange(all_came_, true)) return;
  if (ranks_.size() < world_ || first_steps_.size() > 1) judge_ends(0);
}

StepTable::RankStep& StepTable::current_of(std::uint32_t rank, std::uint32_t step) {
  RankStep& current = ranks_[rank];
  if (step < current.first_step) {
    if (const auto before = first_steps_.find(current.first_step);
        before != first_steps_.end() && current.first_step != UINT32_MAX && --before->second == 0)
      first_steps_.erase(before);
    current.first_step = step;
    ++first_steps_[step];
    if (all_came_) judge_ends(step);
  }
  return current;
}

void StepTable::evict_oldest() {
  const std::size_t gone = rows_.size() / 4;
  evicted_ += gone;
  first_kept_ = rows_[gone].step;
  rows_.erase(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(gone));
  sums_.erase(sums_.begin(), sums_.begin() + static_cast<std::ptrdiff_t>(gone));
}

void StepTable::add(std::uint32_t rank, const ev::Event& event, std::int64_t at_ns) {
  const std::uint32_t step = step_of(event);
  if (step < first_kept_ && event.kind == ev::EventKind::step_begin) begin_below(rank, step, at_ns);
  if (step < first_kept_) return;  // a very late event
  if (was_repeated(step, at_ns)) return;
  if (rows_.size() >= most_) evict_oldest();
  if (event.kind == ev::EventKind::step_begin) {
    RankStep& current = current_of(rank, step);
    if (current.last_ns != INT64_MIN && step <= current.step) {
      begin_again(step, current.last_ns, at_ns);
    } else if (current.open) {
      // Its row is gone where it was evicted, or where another rank has begun it again.
      if (const std::size_t before = place_of(current.step); has_row(before, current.step))
        end_of_rank(before, std::nullopt);
    }
    current = {.step = step, .open = true, .first_step = current.first_step, .last_ns = at_ns};
    const std::size_t index = index_of(step);
    // Earlier events of the step give its begin only until a step_begin arrives.
    std::int64_t& begin_ns = rows_[index].begin_ns;
    begin_ns = sums_[index].begun++ == 0 ? at_ns : std::min(begin_ns, at_ns);
    judge_end(index);  // ranks that have come earlier may have ended it
    return;
  }
  if (event.kind == ev::EventKind::step_end) {
    const std::size_t index = index_of(step);
    StepRow& row = rows_[index];
    Sums& sums = sums_[index];
    if (row.begin_ns == kOpen) row.begin_ns = at_ns;
    RankStep& current = current_of(rank, step);
    if (current.step == step) current.open = false;
    current.last_ns = std::max(current.last_ns, at_ns);
    const auto end = ev::as<ev::EventKind::step_end>(event);
    row.skipped = row.skipped || end.skipped;
    if (end.tokens > 0) {
      row.tokens = std::max(sums.has_total_tokens ? row.tokens : 0, end.tokens);
      sums.has_total_tokens = true;
    }
    end_of_rank(index, at_ns);
    return;
  }
  const std::size_t index = place_of(step);
  if (!has_row(index, step)) return keep_for_later(event, at_ns);
  // Where the begin was lost, the earliest event of the step is its begin.
  if (sums_[index].begun == 0) rows_[index].begin_ns = std::min(rows_[index].begin_ns, at_ns);
  set_value(index, event);
}

bool StepTable::was_repeated(std::uint32_t step, std::int64_t at_ns) const {
  return std::ranges::any_of(
      rewinds_, [&](const Rewind& rewind) { return rewind.step <= step && at_ns < rewind.at_ns; });
}

void StepTable::begin_below(std::uint32_t rank, std::uint32_t step, std::int64_t at_ns) {
  const auto known = ranks_.find(rank);
  if (known == ranks_.end()) return;
  RankStep& current = known->second;
  if (current.last_ns == INT64_MIN || step > current.step || was_repeated(step, at_ns)) return;
  // Restored rows below are final; those that were evicted leave room for the new attempt.
  const bool restored = !rows_.empty() && rows_.front().step < first_kept_;
  begin_again(restored ? first_kept_ : step, current.last_ns, at_ns);
  if (!restored && rows_.empty()) first_kept_ = step;
  current.step = step;
  current.open = false;
  current.last_ns = restored ? at_ns : INT64_MIN;  // its begin is added next
}

void StepTable::begin_again(std::uint32_t step, std::int64_t after_ns, std::int64_t at_ns) {
  Rewind rewind{step, after_ns + (at_ns - after_ns) / 2};
  std::uint32_t until = UINT32_MAX;  // rows from this step on are of the new attempt
  for (const Rewind& known : rewinds_) {
    // Each rank of the run notices the same start.
    if (known.at_ns <= after_ns || known.at_ns > at_ns) continue;
    if (known.step <= step) return;
    until = std::min(until, known.step);
    rewind.at_ns = known.at_ns;
  }
  if (rewinds_.size() >= kMostRewinds) return;
  rewinds_.push_back(rewind);
  const auto from = static_cast<std::ptrdiff_t>(place_of(step));
  const auto to = until == UINT32_MAX ? static_cast<std::ptrdiff_t>(rows_.size())
                                      : static_cast<std::ptrdiff_t>(place_of(until));
  rows_.erase(rows_.begin() + from, rows_.begin() + to);
  sums_.erase(sums_.begin() + from, sums_.begin() + to);
  std::erase_if(early_, [&](const auto& values) {
    return values.first >= step && values.first < until && values.second.front().at_ns < rewind.at_ns;
  });
}

void StepTable::set_value(std::size_t index, const ev::Event& event) {
  StepRow& row = rows_[index];
  Sums& sums = sums_[index];
  switch (event.kind) {
    case ev::EventKind::tokens:
      sums.rank_tokens += ev::as<ev::EventKind::tokens>(event).tokens;
      if (!sums.has_total_tokens) row.tokens = sums.rank_tokens;
      return;
    case ev::EventKind::loss: {
      const double loss = ev::as<ev::EventKind::loss>(event).value;
      sums.loss_sum += loss;
      ++sums.losses;
      row.loss = sums.loss_sum / sums.losses;
      row.loss_not_finite = row.loss_not_finite || !std::isfinite(loss);
      return;
    }
    case ev::EventKind::grad_norm:
      row.grad_norm = ev::as<ev::EventKind::grad_norm>(event).value;
      row.norm_not_finite = row.norm_not_finite || !std::isfinite(row.grad_norm);
      return;
    default:
      for (const StepValue& column : kStepValues) {
        if (column.kind == event.kind) row.*column.member = column.read(event);
      }
      return;
  }
}

void StepTable::paused(std::uint32_t rank, std::int64_t ns) {
  const auto known = ranks_.find(rank);
  if (known == ranks_.end() || !known->second.open || known->second.step < first_kept_) return;
  RankStep& current = known->second;
  current.paused_ns += ns;
  const std::size_t index = place_of(current.step);
  if (!has_row(index, current.step)) return;  // another rank has begun it again
  // Ranks pause together: the longest pause is the step's.
  StepRow& row = rows_[index];
  row.paused_ns = std::max(row.paused_ns, current.paused_ns);
}

void StepTable::restore(std::vector<StepRow> rows, std::uint32_t through) {
  rows_ = std::move(rows);
  sums_.assign(rows_.size(), Sums{});
  first_kept_ = through == UINT32_MAX ? through : through + 1;
}

void StepTable::shift(std::int64_t delta_ns) {
  for (StepRow& row : rows_) {
    if (row.begin_ns != kOpen) row.begin_ns += delta_ns;
    if (row.end_ns != kOpen) row.end_ns += delta_ns;
  }
  for (Sums& sums : sums_) {
    if (sums.latest_end_ns != INT64_MIN) sums.latest_end_ns += delta_ns;
  }
  if (first_end_ns_ != INT64_MAX) first_end_ns_ += delta_ns;
  for (Rewind& rewind : rewinds_) rewind.at_ns += delta_ns;
  for (auto& [rank, current] : ranks_) {
    if (current.last_ns != INT64_MIN) current.last_ns += delta_ns;
  }
  for (auto& [step, values] : early_) {
    for (Early& value : values) value.at_ns += delta_ns;
  }
}

}  // namespace shardscope::store
