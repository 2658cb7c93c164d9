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
  if (at_ns) sums.latest_end_ns = std::max(sums.latest_end_ns, *at_ns);
  // A step has ended when every rank has ended it; a rank whose begin was dropped is counted by its end.
  if (sums.ended >= std::max(world_, sums.begun) && sums.latest_end_ns != INT64_MIN) {
    rows_[index].end_ns = std::max(sums.latest_end_ns, rows_[index].begin_ns);
  }
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
  if (step < first_kept_) return;  // a very late event
  if (rows_.size() >= most_) evict_oldest();
  if (event.kind == ev::EventKind::step_begin) {
    RankStep& current = ranks_[rank];
    if (current.open && current.step != step && current.step >= first_kept_)
      end_of_rank(index_of(current.step), std::nullopt);
    current = {.step = step, .open = true};
    const std::size_t index = index_of(step);
    // Earlier events of the step give its begin only until a step_begin arrives.
    std::int64_t& begin_ns = rows_[index].begin_ns;
    begin_ns = sums_[index].begun++ == 0 ? at_ns : std::min(begin_ns, at_ns);
    return;
  }
  if (event.kind == ev::EventKind::step_end) {
    const std::size_t index = index_of(step);
    StepRow& row = rows_[index];
    Sums& sums = sums_[index];
    if (row.begin_ns == kOpen) row.begin_ns = at_ns;
    RankStep& current = ranks_[rank];
    if (current.step == step) current.open = false;
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
  RankStep& current = ranks_[rank];
  if (!current.open || current.step < first_kept_) return;
  current.paused_ns += ns;
  // Ranks pause together: the longest pause is the step's.
  StepRow& row = rows_[index_of(current.step)];
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
  for (auto& [step, values] : early_) {
    for (Early& value : values) value.at_ns += delta_ns;
  }
}

}  // namespace shardscope::store
