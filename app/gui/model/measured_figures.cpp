#include "app/gui/model/measured_figures.h"

#include <algorithm>
#include <array>
#include <utility>

#include "app/gui/model/app_state.h"
#include "app/gui/model/format.h"
#include "app/gui/model/part_of_activity.h"
#include "app/store/span_time.h"

namespace shardscope::gui {
namespace {

constexpr std::size_t kKept = 4;  ///< steps cut by the two ends, now and before the last move

using ev::StreamId;

/// Number of spans on the lanes that the time partition reads.
std::uint64_t spans_of(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                       std::int64_t end_ns) {
  std::uint64_t sum = 0;
  for (const StreamId stream : {StreamId::compute, StreamId::gather, StreamId::reduce, StreamId::copy,
                                StreamId::nvme, StreamId::worker, StreamId::gpu_compute, StreamId::gpu_gather,
                                StreamId::gpu_reduce, StreamId::gpu_copy}) {
    const store::LaneId lane{rank, stream};
    for (std::uint8_t depth = 0; depth < store.depth_count(lane); ++depth)
      sum += store.span_count(lane, depth, begin_ns, end_ns);
  }
  return sum;
}

const analysis::TimePartition* time_on(const StepTimes& step, std::uint32_t rank) {
  const auto found = std::ranges::lower_bound(step.ranks, rank, {}, &StepTimes::Rank::rank);
  return found == step.ranks.end() || found->rank != rank ? nullptr : &found->time;
}

void add_waits(const AppState& app, const TimeRange& range, RangeFigures& out) {
  constexpr std::size_t kColumns = 512, kMostWaits = 4000;
  const RunIndex& index = app.run->index();
  if (index.covers(range.begin_ns, range.end_ns)) {
    const auto all = index.waits(out.rank);
    const auto [first, last] = RunIndex::overlapping(all, range.begin_ns, range.end_ns);
    if (last - first <= kMostWaits) {
      for (const store::Span& wait : all.subspan(first, last - first)) {
        const std::int64_t from = std::max(wait.begin_ns, range.begin_ns);
        const std::int64_t to = std::min(wait.end_ns, range.end_ns);
        if (to > from) out.waits_ns += to - from - store::paused_ns(app.store(), out.rank, from, to);
      }
      return;
    }
  }
  std::array<store::Density, kColumns> columns{};
  app.store().density({out.rank, StreamId::compute}, store::Store::kWaits, range.begin_ns, range.end_ns,
                      columns);
  double share = 0;
  for (const store::Density& column : columns) share += static_cast<double>(column.busy) / kColumns;
  out.waits_ns = static_cast<std::int64_t>(share * static_cast<double>(range.length()));
  out.about = true;
}

}  // namespace

std::string text_of(const RangeFigures& figures) {
  const analysis::TimePartition& t = figures.time;
  std::string out = "rank " + std::to_string(figures.rank) + ": ";
  const bool any = t.compute_ns + t.exposed_comm_ns + t.idle_ns + t.exposed_copy_ns > 0;
  if (any) {
    out +=
        "compute " + duration(t.compute_ns).text() + ", exposed " + duration(t.exposed_comm_ns).text() + ", ";
  }
  out += "waits " + std::string(figures.about ? "about " : "") + duration(figures.waits_ns).text();
  if (figures.left_out_ns > 0) out += "; without " + duration(figures.left_out_ns).text() + " not read";
  return out;
}

std::optional<std::uint32_t> rank_of_figures(const AppState& app) {
  const auto ranks = app.store().ranks();
  if (ranks.empty()) return std::nullopt;
  const auto known = [&](std::uint32_t rank) {
    return std::ranges::find(ranks, rank, &store::RankRow::rank) != ranks.end();
  };
  if (app.selection.kind != SelectionKind::none && known(app.selection.rank)) return app.selection.rank;
  return std::ranges::min(ranks, {}, &store::RankRow::rank).rank;
}

const analysis::RankActivity* MeasuredFigures::activity(const AppState& app, std::uint32_t rank,
                                                        std::int64_t begin_ns, std::int64_t end_ns) {
  const store::Store& store = app.store();
  // A live run's later events do not change a completed step.
  const bool over = !app.run->live() || end_ns < store.end_ns();
  const std::uint64_t revision = over ? 0 : store.revision();
  for (auto one = read_.begin(); one != read_.end(); ++one) {
    if (one->rank != rank || one->begin_ns != begin_ns || one->end_ns != end_ns || one->revision != revision)
      continue;
    read_.splice(read_.begin(), read_, one);
    return &read_.front().activity;
  }
  if (spans_of(store, rank, begin_ns, end_ns) > kMostSpans) return nullptr;
  if (!std::exchange(may_read_, false)) {
    incomplete_ = true;
    return nullptr;
  }
  read_.push_front({rank, begin_ns, end_ns, revision, analysis::activity_of(store, rank, begin_ns, end_ns)});
  if (read_.size() > kKept) read_.pop_back();
  return &read_.front().activity;
}

std::optional<RangeFigures> MeasuredFigures::of(const AppState& app, const TimeRange& range) {
  const auto rank = rank_of_figures(app);
  if (!rank || range.length() <= 0) return std::nullopt;
  const Made key{range, *rank, app.store().revision(), app.run->analysis()};
  if (made_ == key && !incomplete_) return figures_;
  made_ = key;
  may_read_ = true;
  incomplete_ = false;
  RangeFigures out;
  out.rank = *rank;
  const auto steps = app.store().steps();
  // Time before the first step, or all time without steps, is read as a separate window.
  const auto cut = [&](std::int64_t window_begin, std::int64_t window_end) {
    const std::int64_t from = std::max(window_begin, range.begin_ns);
    const std::int64_t to = std::min(window_end, range.end_ns);
    if (from >= to) return;
    if (const analysis::RankActivity* done = activity(app, *rank, window_begin, window_end))
      out.time.add(part_of(*done, from, to));
    else
      out.left_out_ns += to - from;
  };
  const std::int64_t run_end = app.store().end_ns();
  const std::int64_t first = steps.empty() ? run_end : steps.front().begin_ns;
  if (range.begin_ns < first) cut(std::max<std::int64_t>(0, std::min(range.begin_ns, first)), first);
  const auto after = [](std::int64_t at, const store::StepRow& step) { return at < step.begin_ns; };
  auto step = std::upper_bound(steps.begin(), steps.end(), range.begin_ns, after);
  if (step != steps.begin()) --step;
  for (; step != steps.end() && step->begin_ns < range.end_ns; ++step) {
    const std::int64_t until = step + 1 == steps.end() ? run_end : (step + 1)->begin_ns;
    const StepTimes* const times = app.run->step_times(step->step);
    const bool inside = step->begin_ns >= range.begin_ns && until <= range.end_ns;
    const analysis::TimePartition* whole = nullptr;
    if (inside && times != nullptr) whole = time_on(*times, *rank);
    if (whole != nullptr)
      out.time.add(*whole);
    else
      cut(step->begin_ns, until);
  }
  add_waits(app, range, out);
  figures_ = out;
  return out;
}

}  // namespace shardscope::gui
