#include "app/store/step_table.h"

#include <algorithm>
#include <bit>

namespace shardscope::store {

std::size_t StepTable::index_of(std::uint32_t step) {
  if (!rows_.empty() && rows_.back().step == step) return rows_.size() - 1;
  const auto at = std::lower_bound(rows_.begin(), rows_.end(), step,
                                   [](const StepRow& row, std::uint32_t s) { return row.step < s; });
  const auto index = static_cast<std::size_t>(at - rows_.begin());
  if (at == rows_.end() || at->step != step) {
    StepRow row;
    row.step = step;
    row.begin_ns = kOpen;
    rows_.insert(at, row);
    sums_.insert(sums_.begin() + static_cast<std::ptrdiff_t>(index), Sums{});
  }
  return index;
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

void StepTable::add(std::uint32_t rank, const ev::Event& event, std::int64_t at_ns) {
  const std::size_t index = index_of(event.a);
  StepRow& row = rows_[index];
  Sums& sums = sums_[index];
  const double value = std::bit_cast<double>(event.v0);
  // Where the begin was lost, the earliest thing heard of the step is the best that is known.
  if (event.kind != ev::EventKind::step_end || row.begin_ns == kOpen)
    row.begin_ns = std::min(row.begin_ns, at_ns);
  switch (event.kind) {
    case ev::EventKind::step_begin: {
      RankStep& current = ranks_[rank];
      if (current.open && current.step != event.a) end_of_rank(index_of(current.step), std::nullopt);
      current = {.step = event.a, .open = true};
      ++sums_[index_of(event.a)].begun;
      return;
    }
    case ev::EventKind::step_end: {
      RankStep& current = ranks_[rank];
      if (current.step == event.a) current.open = false;
      row.skipped = row.skipped || (event.code & 1U) != 0;
      if (event.v0 > 0) {
        row.tokens = std::max(sums.has_total_tokens ? row.tokens : 0, event.v0);
        sums.has_total_tokens = true;
      }
      end_of_rank(index, at_ns);
      return;
    }
    case ev::EventKind::tokens:
      sums.rank_tokens += event.v0;
      if (!sums.has_total_tokens) row.tokens = sums.rank_tokens;
      return;
    case ev::EventKind::loss:
      sums.loss_sum += value;
      ++sums.losses;
      row.loss = sums.loss_sum / sums.losses;
      return;
    case ev::EventKind::grad_norm:
      row.grad_norm = value;
      return;
    case ev::EventKind::loss_scale:
      row.loss_scale = value;
      return;
    case ev::EventKind::learning_rate:
      row.learning_rate = value;
      return;
    default:
      return;
  }
}

void StepTable::paused(std::uint32_t rank, std::int64_t ns) {
  RankStep& current = ranks_[rank];
  if (!current.open) return;
  current.paused_ns += ns;
  // Ranks pause together: the longest pause is the step's.
  StepRow& row = rows_[index_of(current.step)];
  row.paused_ns = std::max(row.paused_ns, current.paused_ns);
}

void StepTable::shift(std::int64_t delta_ns) {
  for (StepRow& row : rows_) {
    if (row.begin_ns != kOpen) row.begin_ns += delta_ns;
    if (row.end_ns != kOpen) row.end_ns += delta_ns;
  }
  for (Sums& sums : sums_) {
    if (sums.latest_end_ns != INT64_MIN) sums.latest_end_ns += delta_ns;
  }
}

}  // namespace shardscope::store
