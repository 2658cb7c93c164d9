#include "app/store/span_time.h"

#include <algorithm>

#include "app/store/rank_end.h"

namespace shardscope::store {
namespace {

const RankRow* row_of(const StoreQuery& store, std::uint32_t rank) {
  const std::span<const RankRow> rows = store.ranks();
  const auto at = std::lower_bound(rows.begin(), rows.end(), rank,
                                   [](const RankRow& row, std::uint32_t value) { return row.rank < value; });
  return at == rows.end() || at->rank != rank ? nullptr : &*at;
}

}  // namespace

std::int64_t known_until(const StoreQuery& store, std::uint32_t rank) {
  const RankRow* row = row_of(store, rank);
  if (row == nullptr || (row->connected && !row->finished)) return store.end_ns();
  return std::min(row->last_ns, store.end_ns());
}

std::int64_t paused_ns(const Store& store, std::uint32_t rank, std::int64_t begin_ns, std::int64_t end_ns) {
  std::int64_t sum = 0;
  if (end_ns <= begin_ns) return 0;
  store.for_each_span({rank, ev::StreamId::host}, kPauses, begin_ns, end_ns, [&](const Span& pause) {
    sum += std::max<std::int64_t>(std::min(pause.end_ns, end_ns) - std::max(pause.begin_ns, begin_ns), 0);
  });
  return sum;
}

SpanTime time_within(const Store& store, std::uint32_t rank, const Span& span, std::int64_t begin_ns,
                     std::int64_t end_ns) {
  SpanTime out;
  out.ended = span.end_ns != kOpen;
  out.still_running = !out.ended && still_running(store, rank);
  out.until_ns = out.ended ? span.end_ns : std::max(known_until(store, rank), span.begin_ns);
  const std::int64_t from = std::max(span.begin_ns, begin_ns);
  const std::int64_t to = std::max(std::min(out.until_ns, end_ns), from);
  if (stretched_by_pauses(span.kind)) out.paused_ns = paused_ns(store, rank, from, to);
  out.running_ns = to - from - out.paused_ns;
  return out;
}

SpanTime time_of(const Store& store, std::uint32_t rank, const Span& span) {
  return time_within(store, rank, span, Store::kBegin, Store::kEnd);
}

SpanTime time_of(const Store& store, const StepRow& step) {
  SpanTime out{.ended = step.end_ns != kOpen, .until_ns = step.end_ns, .paused_ns = step.paused_ns};
  if (!out.ended) {
    out.until_ns = std::max(store.end_ns(), step.begin_ns);
    // The row only has pauses that have ended.
    out.still_running = store.ranks().empty();
    for (const RankRow& rank : store.ranks()) {
      out.still_running = out.still_running || still_running(store, rank.rank);
      out.paused_ns =
          std::max(out.paused_ns, store::paused_ns(store, rank.rank, step.begin_ns, out.until_ns));
    }
  }
  out.running_ns = std::max<std::int64_t>(out.until_ns - step.begin_ns - out.paused_ns, 0);
  return out;
}

SpanTime time_between(const Store& store, std::int64_t begin_ns, std::int64_t end_ns) {
  SpanTime out{.until_ns = end_ns};
  for (const RankRow& rank : store.ranks())
    out.paused_ns = std::max(out.paused_ns, paused_ns(store, rank.rank, begin_ns, end_ns));
  out.running_ns = std::max<std::int64_t>(end_ns - begin_ns, 0) - out.paused_ns;
  return out;
}

bool still_running(const Store& store, std::uint32_t rank) {
  const RankRow* row = row_of(store, rank);
  if (row == nullptr) return true;
  const RankEnd::How how = rank_end(store, *row).how;
  return how == RankEnd::How::running || (how == RankEnd::How::stopped && row->connected);
}

std::string why_open(const Store& store, std::uint32_t rank) {
  const RankRow* row = row_of(store, rank);
  if (row == nullptr) return "still open";
  const RankEnd end = rank_end(store, *row);
  return end.how == RankEnd::How::running ? "still open" : text_of(end) + " at " + seconds_text(end.at_ns);
}

}  // namespace shardscope::store
