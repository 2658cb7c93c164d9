#include "app/store/lane.h"

#include <algorithm>
#include <tuple>

namespace shardscope::store {
namespace {

constexpr std::size_t kMaxDepth = 64;

/// Kinds whose end repeats the begin's code (a step's end says "skipped" there instead).
bool code_identifies(ev::EventKind begin) noexcept {
  return begin == ev::EventKind::phase_begin || begin == ev::EventKind::module_begin;
}

/// Whether a, b and code name one span of the whole run, so that an end heard after a gap belongs to the
/// begin heard before it. A module or a bucket comes again in every step: its end may be a later one's.
bool unique_in_run(ev::EventKind begin, std::uint32_t b) noexcept {
  switch (begin) {
    case ev::EventKind::step_begin:
    case ev::EventKind::micro_step_begin:
    case ev::EventKind::phase_begin:
    case ev::EventKind::collective_begin:
    case ev::EventKind::optimizer_begin:
    case ev::EventKind::paused_begin:
      return true;
    case ev::EventKind::fetch_wait_begin:
      return b != ev::kNoId;
    default:
      return false;
  }
}

/// How far out a kind lies: a begin proves that open spans of its own level or deeper inside are over.
/// 0 says that the kind may lie in anything.
int outer_level(ev::EventKind begin) noexcept {
  if (begin == ev::EventKind::step_begin) return 1;
  if (begin == ev::EventKind::micro_step_begin) return 2;
  if (begin == ev::EventKind::phase_begin) return 3;
  return 0;
}

bool within(std::uint32_t module, std::uint32_t ancestor,
            const std::vector<std::uint32_t>& parents) noexcept {
  if (ancestor >= parents.size() || module >= parents.size()) return true;  // unknown: believe the order
  for (std::size_t steps = 0; steps < parents.size(); ++steps) {
    if (module == ancestor) return true;
    if (module >= parents.size()) return false;
    module = parents[module];
  }
  return false;
}

}  // namespace

void Lane::close(std::int64_t end_ns) {
  const std::size_t depth = open_.size() - 1;
  Row& row = rows_[depth];
  Span& span = row.spans.back();
  span.end_ns = std::max(end_ns, span.begin_ns);
  row.last_end_ns = span.end_ns;
  if (with_density_) row.pyramid.append(span.begin_ns, span.end_ns, span.kind, span.code);
  open_.pop_back();
}

void Lane::cut_above(std::size_t depth) {
  while (open_.size() > depth) {
    const std::int64_t certain = open_.back().certain_ns;
    ++cut_;
    close(certain >= 0 ? certain : last_ns_);
  }
}

void Lane::begin(const ev::Event& event, std::int64_t at_ns, const std::vector<std::uint32_t>& parents) {
  // Clock corrections between chunks may step back by nanoseconds; a lane's own order is certain.
  at_ns = std::max(at_ns, last_ns_);
  const int level = outer_level(event.kind);
  for (std::size_t d = 0; d < open_.size(); ++d) {
    const Open& open = open_[d];
    const int its_level = outer_level(open.kind);
    const bool over = level != 0 ? its_level == 0 || its_level >= level
                      : event.kind == ev::EventKind::module_begin
                          ? open.kind == ev::EventKind::module_begin && open.certain_ns >= 0 &&
                                (open.code != event.code || !within(event.a, open.a, parents))
                          : event.kind != ev::EventKind::kernel_begin && open.kind == event.kind;
    if (over) {
      cut_above(d);
      break;
    }
  }
  if (open_.size() >= kMaxDepth) cut_above(0);
  const std::size_t depth = open_.size();
  if (rows_.size() <= depth) rows_.resize(depth + 1);
  Row& row = rows_[depth];
  Span span;
  span.begin_ns = std::max(at_ns, row.last_end_ns);
  span.kind = event.kind;
  span.code = event.code;
  span.depth = static_cast<std::uint8_t>(depth);
  span.a = event.a;
  span.b = event.b;
  span.c = event.c;
  span.v0 = event.v0;
  span.v1 = event.v1;
  row.spans.push_back(span);
  open_.push_back({.kind = event.kind, .code = event.code, .a = event.a, .b = event.b});
  last_ns_ = span.begin_ns;
}

const Span* Lane::end(const ev::Event& event, std::int64_t at_ns) {
  at_ns = std::max(at_ns, last_ns_);
  for (std::size_t d = open_.size(); d-- > 0;) {
    const Open& open = open_[d];
    if (ev::end_of(open.kind) != event.kind || open.a != event.a) continue;
    if (code_identifies(open.kind) && open.code != event.code) continue;
    const bool over_gap = open.certain_ns >= 0;
    if (over_gap && open.b != event.b) continue;
    cut_above(d + 1);
    if (over_gap && !unique_in_run(open.kind, open.b)) {
      cut_above(d);
    } else {
      close(at_ns);
    }
    last_ns_ = at_ns;
    return &rows_[d].spans.back();
  }
  ++unmatched_;
  return nullptr;
}

void Lane::mark(const ev::Event& event, std::int64_t at_ns) {
  for (std::size_t d = open_.size(); d-- > 0;) {
    if (open_[d].kind != ev::EventKind::collective_begin || open_[d].a != event.a) continue;
    open_span(d).mark_ns = std::max(at_ns, last_ns_);
    last_ns_ = std::max(at_ns, last_ns_);
    return;
  }
}

void Lane::gap() {
  for (std::size_t d = 0; d < open_.size(); ++d) {
    if (open_[d].certain_ns >= 0) continue;
    open_[d].certain_ns = last_ns_;
    open_span(d).end_ns = std::max(last_ns_, open_span(d).begin_ns);
  }
}

void Lane::settle() {
  for (Row& row : rows_) row.pyramid.settle();
}

void Lane::shift(std::int64_t delta_ns) {
  if (rows_.empty()) return;  // nothing has a time yet: the first event may be earlier than what was known
  last_ns_ += delta_ns;
  for (Open& open : open_) {
    if (open.certain_ns >= 0) open.certain_ns += delta_ns;
  }
  for (std::size_t d = 0; d < rows_.size(); ++d) {
    Row& row = rows_[d];
    row.last_end_ns += delta_ns;
    row.pyramid.clear();
    const std::size_t closed = row.spans.size() - (d < open_.size() ? 1 : 0);
    for (std::size_t i = 0; i < row.spans.size(); ++i) {
      Span& span = row.spans[i];
      span.begin_ns += delta_ns;
      if (span.end_ns != kOpen) span.end_ns += delta_ns;
      if (span.mark_ns != 0) span.mark_ns += delta_ns;
      if (i < closed && with_density_) row.pyramid.append(span.begin_ns, span.end_ns, span.kind, span.code);
    }
    row.pyramid.settle();
  }
}

std::span<const Span> Lane::spans(std::uint8_t depth) const {
  if (depth >= rows_.size()) return {};
  return rows_[depth].spans;
}

std::pair<std::size_t, std::size_t> Lane::visible(std::uint8_t depth, std::int64_t begin_ns,
                                                  std::int64_t end_ns) const {
  const std::span<const Span> row = spans(depth);
  const auto first = std::partition_point(row.begin(), row.end(), [&](const Span& s) {
    return s.end_ns < begin_ns || (s.end_ns == begin_ns && s.begin_ns < begin_ns);
  });
  const auto last =
      std::partition_point(first, row.end(), [&](const Span& s) { return s.begin_ns < end_ns; });
  return {static_cast<std::size_t>(first - row.begin()), static_cast<std::size_t>(last - row.begin())};
}

void Lane::density(std::uint8_t depth, std::int64_t begin_ns, std::int64_t end_ns, std::int64_t now_ns,
                   std::span<Density> columns) const {
  std::fill(columns.begin(), columns.end(), Density{});
  if (depth >= rows_.size() || columns.empty() || end_ns <= begin_ns) return;
  const Row& row = rows_[depth];
  const double width = static_cast<double>(end_ns - begin_ns) / static_cast<double>(columns.size());
  auto [first, last] = std::pair<std::size_t, std::size_t>{};
  if (row.pyramid.covers(width)) {
    row.pyramid.columns(begin_ns, end_ns, columns);
    // The pyramid holds closed spans; an open one is added below.
    last = row.spans.size();
    first = last - (depth < open_.size() ? 1 : 0);
  } else {
    std::tie(first, last) = visible(depth, begin_ns, end_ns);
  }
  // Busy time by the kind that leads a column so far; a span shorter than a column touches one or two.
  std::size_t votes_column = SIZE_MAX;
  float votes = 0;
  for (std::size_t i = first; i < last; ++i) {
    const Span& span = row.spans[i];
    const std::int64_t from = std::max(span.begin_ns, begin_ns);
    const std::int64_t to =
        std::min(span.end_ns == kOpen ? std::max(now_ns, span.begin_ns) : span.end_ns, end_ns);
    if (to < from || from >= end_ns) continue;
    auto c = static_cast<std::size_t>(static_cast<double>(from - begin_ns) / width);
    for (; c < columns.size(); ++c) {
      const double left = static_cast<double>(begin_ns) + width * static_cast<double>(c);
      const double overlap =
          std::min(static_cast<double>(to), left + width) - std::max(static_cast<double>(from), left);
      if (overlap < 0 || (overlap <= 0 && to != from)) break;
      Density& column = columns[c];
      const auto share = static_cast<float>(overlap / width);
      if (votes_column != c) {
        votes_column = c;
        votes = column.busy;
      }
      if (column.count == 0 || (column.dominant == span.kind && column.dominant_code == span.code)) {
        votes += share;
        column.dominant = span.kind;
        column.dominant_code = span.code;
      } else if (share > votes) {
        votes = share - votes;
        column.dominant = span.kind;
        column.dominant_code = span.code;
      } else {
        votes -= share;
      }
      column.busy = std::min(1.0F, column.busy + share);
      ++column.count;
      if (to == from) break;
    }
  }
}

}  // namespace shardscope::store
