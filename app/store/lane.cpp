#include "app/store/lane.h"

#include <algorithm>
#include <tuple>

namespace shardscope::store {
namespace {

/// Kinds whose end repeats the begin's code (the code of a step's end is "skipped").
bool code_identifies(ev::EventKind begin) noexcept {
  return begin == ev::EventKind::phase_begin || begin == ev::EventKind::module_begin;
}

/// Whether a, b and code name one span of the whole run, so that an end after a gap belongs to the begin
/// before it. A module or a bucket comes again in every step: its end may be a later one's.
bool unique_in_run(ev::EventKind begin, std::uint32_t b) noexcept {
  switch (begin) {
    case ev::EventKind::step_begin:
    case ev::EventKind::micro_step_begin:
    case ev::EventKind::phase_begin:
    case ev::EventKind::collective_begin:
    case ev::EventKind::optimizer_begin:
    case ev::EventKind::paused_begin:
    case ev::EventKind::data_wait_begin:
      return true;
    case ev::EventKind::fetch_wait_begin:
      return b != ev::kNoId;
    default:
      return false;
  }
}

bool within(std::uint32_t module, std::uint32_t ancestor,
            const std::vector<std::uint32_t>& parents) noexcept {
  if (ancestor >= parents.size() || module >= parents.size()) return true;  // unknown: trust the order
  for (std::size_t steps = 0; steps < parents.size(); ++steps) {
    if (module == ancestor) return true;
    if (module >= parents.size()) return false;
    module = parents[module];
  }
  return false;
}

}  // namespace

Lane::Lane(const Keyframe& from, Detail detail)
    : missing_begins_(MissingBegins::none()),
      with_density_(detail == Detail::levels),
      last_ns_(from.last_ns),
      from_ns_(from.last_ns) {
  rows_.resize(from.open.size());
  for (std::size_t d = 0; d < from.open.size(); ++d) {
    const Open& open = from.open[d];
    rows_[d].spans.push_back(open.span);
    // open.span may have an end that only later blocks found; here the span is still open, or cut at a gap.
    rows_[d].spans.back().end_ns =
        open.certain_ns == kNever ? kOpen : std::max(open.certain_ns, open.span.begin_ns);
    rows_[d].carried = true;
    open_.push_back({.kind = open.span.kind,
                     .code = open.span.code,
                     .a = open.span.a,
                     .b = open.span.b,
                     .certain_ns = open.certain_ns});
  }
}

Lane::Keyframe Lane::keyframe() const {
  Keyframe out{.last_ns = last_ns_, .open = {}};
  for (std::size_t d = 0; d < open_.size(); ++d) {
    out.open.push_back({.span = rows_[d].spans.back(), .certain_ns = open_[d].certain_ns});
  }
  return out;
}

void Lane::add_density(Row& row, const Span& span, std::int64_t until_ns) {
  if (!with_density_) return;
  const bool carried = row.carried && row.spans.size() == 1;
  const std::int64_t from = carried ? std::max(span.begin_ns, from_ns_) : span.begin_ns;
  if (until_ns < from || (carried && until_ns == from)) return;
  row.pyramid.expect(expected_ns_);
  row.pyramid.append(from, until_ns, span.kind, span.code, !carried);
  if (!is_wait(span.kind)) return;
  waits_.expect(expected_ns_);
  waits_.append(from, until_ns, span.kind, span.code, !carried);
}

void Lane::close(std::int64_t end_ns) {
  const std::size_t depth = open_.size() - 1;
  Row& row = rows_[depth];
  Span& span = row.spans.back();
  span.end_ns = std::max(end_ns, span.begin_ns);
  row.last_end_ns = span.end_ns;
  add_density(row, span, span.end_ns);
  open_.pop_back();
}

void Lane::close_stretch() {
  for (std::size_t d = 0; d < open_.size(); ++d) {
    const std::int64_t known = open_[d].certain_ns == kNever ? last_ns_ : open_[d].certain_ns;
    add_density(rows_[d], rows_[d].spans.back(), known);
  }
  settle();
}

void Lane::cut_above(std::size_t depth) {
  while (open_.size() > depth) {
    const std::int64_t certain = open_.back().certain_ns;
    close(certain != kNever ? certain : last_ns_);
  }
}

void Lane::begin(const ev::Event& event, std::int64_t at_ns, const std::vector<std::uint32_t>& parents) {
  // Clock corrections between chunks may step back by nanoseconds; a lane's own order is certain.
  at_ns = std::max(at_ns, last_ns_);
  missing_begins_.begun(event.kind, at_ns);
  const int level = outer_level(event.kind);
  for (std::size_t d = 0; d < open_.size(); ++d) {
    const OpenRef& open = open_[d];
    const int its_level = outer_level(open.kind);
    const bool over = level != 0 ? its_level == 0 || its_level >= level
                      : event.kind == ev::EventKind::module_begin
                          ? open.kind == ev::EventKind::module_begin && open.certain_ns != kNever &&
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
    const OpenRef& open = open_[d];
    if (ev::end_of(open.kind) != event.kind || open.a != event.a) continue;
    if (code_identifies(open.kind) && open.code != event.code) continue;
    const bool over_gap = open.certain_ns != kNever;
    if (over_gap && open.b != event.b) continue;
    cut_above(d + 1);
    if (over_gap && !unique_in_run(open.kind, open.b)) {
      cut_above(d);
    } else {
      // Known at the end only: whether it failed, and whether a run that was over closed it.
      if (open.kind == ev::EventKind::collective_begin && event.c != ev::kNoId && open_span(d).c != ev::kNoId)
        open_span(d).c |= event.c & (ev::kEndedByError | ev::kEndIsBound);
      close(at_ns);
    }
    last_ns_ = at_ns;
    return &rows_[d].spans.back();
  }
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

bool Lane::explains(const ev::Event& end, std::int64_t at_ns) {
  const ev::EventKind begin = begin_of(end.kind);
  const bool inside = std::any_of(open_.begin(), open_.end(), [&](const OpenRef& open) {
    return open.kind == begin && open.certain_ns == kNever;
  });
  return missing_begins_.explains(begin, std::max(at_ns, last_ns_), inside);
}

void Lane::make_uncertain(std::size_t depth, std::int64_t from_ns) {
  if (open_[depth].certain_ns != kNever) return;
  open_[depth].certain_ns = std::max(last_ns_, from_ns);
  open_span(depth).end_ns = std::max(open_[depth].certain_ns, open_span(depth).begin_ns);
}

void Lane::gap(std::int64_t from_ns, std::int64_t until_ns) {
  for (std::size_t d = 0; d < open_.size(); ++d) make_uncertain(d, from_ns);
  missing_begins_.missing(std::max(until_ns, last_ns_));
}

void Lane::gap_of_detail(ev::Detail low, std::int64_t at_ns) {
  for (std::size_t d = 0; d < open_.size(); ++d) {
    if (ev::detail_of(open_[d].kind) > low) make_uncertain(d, at_ns);
  }
  missing_begins_.missing(low, at_ns);
}

void Lane::settle() {
  for (Row& row : rows_) row.pyramid.settle();
  waits_.settle();
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

void Lane::density(std::uint8_t depth, std::int64_t now_ns, const DensityColumns& columns) const {
  if (depth >= rows_.size() || columns.columns.empty() || columns.end_ns <= columns.begin_ns) return;
  const Row& row = rows_[depth];
  const bool has_open = depth < open_.size();
  std::size_t first = 0, last = row.spans.size();
  if (with_density_ && row.pyramid.covers(columns.bucket_ns())) {
    row.pyramid.add_to(columns);
    // The pyramid holds closed spans; an open one is added below.
    first = last - (has_open ? 1 : 0);
  } else {
    std::tie(first, last) = visible(depth, columns.begin_ns, columns.end_ns);
  }
  ColumnFiller filler(columns);
  for (std::size_t i = first; i < last; ++i) {
    const Span& span = row.spans[i];
    const bool carried = row.carried && i == 0;
    const std::int64_t from = carried ? std::max(span.begin_ns, from_ns_) : span.begin_ns;
    const std::int64_t to = span.end_ns == kOpen ? std::max(now_ns, from) : span.end_ns;
    if (to < from || (carried && to == from)) continue;
    filler.add(from, to, span.kind, span.code, !carried);
  }
}

void Lane::density_of_waits(std::int64_t now_ns, const DensityColumns& columns) const {
  if (columns.columns.empty() || columns.end_ns <= columns.begin_ns) return;
  const bool levels = with_density_ && waits_.covers(columns.bucket_ns());
  if (levels) waits_.add_to(columns);
  ColumnFiller filler(columns);
  for (std::size_t d = 0; d < rows_.size(); ++d) {
    const Row& row = rows_[d];
    auto [first, last] = visible(static_cast<std::uint8_t>(d), columns.begin_ns, columns.end_ns);
    if (levels) first = std::max(first, row.spans.size() - (d < open_.size() ? 1 : 0));
    for (std::size_t i = first; i < last; ++i) {
      const Span& span = row.spans[i];
      if (!is_wait(span.kind)) continue;
      const bool carried = row.carried && i == 0;
      const std::int64_t from = carried ? std::max(span.begin_ns, from_ns_) : span.begin_ns;
      const std::int64_t to = span.end_ns == kOpen ? std::max(now_ns, from) : span.end_ns;
      if (to < from || (carried && to == from)) continue;
      filler.add(from, to, span.kind, span.code, !carried);
    }
  }
}

std::size_t Lane::bytes() const noexcept {
  std::size_t bytes = waits_.bytes();
  for (const Row& row : rows_) {
    bytes += sizeof row + row.spans.capacity() * sizeof(Span) + row.pyramid.bytes();
  }
  return bytes;
}

}  // namespace shardscope::store
