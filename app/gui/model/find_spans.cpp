#include "app/gui/model/find_spans.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "app/gui/model/match.h"
#include "app/gui/model/moved_params.h"
#include "app/gui/model/names.h"
#include "app/gui/model/step_of.h"
#include "app/store/lane.h"
#include "app/store/span_label.h"
#include "app/store/span_time.h"
#include "instrumentation/event_fields.h"

namespace shardscope::gui {
namespace {

/// Approximate number of spans per part, the work between two checks of the clock.
constexpr std::uint64_t kPart = 4096;

bool is_of_a_module(ev::GpuOwner owner) noexcept {
  return owner == ev::GpuOwner::forward || owner == ev::GpuOwner::backward ||
         owner == ev::GpuOwner::recompute;
}

bool is_quoted(std::string_view typed) {
  return typed.size() >= 2 && typed.front() == '"' && typed.back() == '"';
}

/// Adds `id` to the set.
void insert(std::vector<bool>& set, std::uint32_t id) {
  if (set.size() <= id) set.resize(id + 1);
  set[id] = true;
}

bool contains(const std::vector<bool>& set, std::uint32_t id) { return id < set.size() && set[id]; }

bool same_name(std::string_view name, std::string_view typed) {
  return name.size() == typed.size() && matches(name, typed);
}

}  // namespace

std::uint32_t module_of(const store::Span& span) noexcept {
  switch (span.kind) {
    case ev::EventKind::module_begin:
      return ev::as<ev::EventKind::module_begin>(span).module;
    case ev::EventKind::fetch_wait_begin:
      return ev::as<ev::EventKind::fetch_wait_begin>(span).module;
    case ev::EventKind::gpu_begin: {
      const auto fields = ev::as<ev::EventKind::gpu_begin>(span);
      return is_of_a_module(fields.owner_kind) ? fields.owner : ev::kNoId;
    }
    default:
      return ev::kNoId;
  }
}

std::string shared_name(const store::Store& store, std::uint32_t rank, const store::Span& span) {
  switch (span.kind) {
    case ev::EventKind::step_begin:
      return "step";
    case ev::EventKind::micro_step_begin:
      return "micro-step";
    case ev::EventKind::fetch_wait_begin:
    case ev::EventKind::reduce_wait_begin:
      return store::kind_label(store, span.kind);
    case ev::EventKind::collective_begin:
      return word(ev::as<ev::EventKind::collective_begin>(span).op);
    case ev::EventKind::module_begin: {
      const auto fields = ev::as<ev::EventKind::module_begin>(span);
      return module_name(store, fields.module) + " " + word(fields.pass);
    }
    default:
      return label_of(store, rank, span);
  }
}

std::size_t SpanSearch::KeyHash::operator()(const Key& key) const noexcept {
  std::uint64_t x = key.kind * 0x9E3779B97F4A7C15U ^ (std::uint64_t{key.a} << 32U | key.b);
  x ^= x >> 31U;
  return static_cast<std::size_t>(x * 0xBF58476D1CE4E5B9U);
}

std::optional<std::uint64_t> SpanSearch::total() const noexcept {
  if (state_ == State::done) return searched_;
  return state_ == State::searching ? std::optional(std::max(total_, searched_)) : std::nullopt;
}

const SpanSearch::Lane* SpanSearch::lane(store::LaneId id) const noexcept {
  const auto found = std::ranges::find(lanes_, id, &Lane::id);
  return found == lanes_.end() ? nullptr : &*found;
}

bool SpanSearch::outdated(const store::Store& store) const {
  return !lanes_.empty() && store.origin_ns() != origin_ns_;
}

void SpanSearch::start(SpanQuery query) {
  *this = {};
  query_ = std::move(query);
  state_ = State::planning;
}

void SpanSearch::read_words(const store::Store& store) {
  if (is_quoted(query_.words)) return;
  std::string_view typed = query_.words;
  while (!typed.empty()) {
    const std::size_t end = std::min(typed.find(' '), typed.size());
    Word word{std::string(typed.substr(0, end)), false, {}, {}};
    typed.remove_prefix(std::min(end + 1, typed.size()));
    if (word.text.empty()) continue;
    word.number = word.text.find_first_not_of("0123456789") == std::string::npos;
    // A number is that of a collective; in the names of parameters it is in nearly all.
    if (store.has_tables() && !word.number) {
      for (const ev::ParamInfo& param : store.tables().params) {
        if (matches(param_name(store, param.id), word.text)) insert(word.params, param.id);
      }
      for (const ev::ModuleInfo& module : store.tables().modules) {
        if (matches(module_name(store, module.id), word.text)) insert(word.modules, module.id);
      }
    }
    words_.push_back(std::move(word));
  }
}

bool SpanSearch::advance(const store::Store& store, std::chrono::nanoseconds time, const RunIndex* index) {
  if (state_ == State::idle || state_ == State::done) return false;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  if (state_ == State::planning && lanes_.empty()) {
    origin_ns_ = store.origin_ns();
    until_ns_ = store.end_ns() + 1;
    read_words(store);
    for (const store::LaneId& id : store.lanes()) lanes_.push_back({id, {}, 0});
  }
  do {
    if (state_ == State::planning) {
      if (cursors_.size() == lanes_.size())
        state_ = State::searching;
      else
        plan(store, lanes_[cursors_.size()].id);
    } else if (Cursor* const cursor = next_cursor(); cursor != nullptr && hits_ < query_.most) {
      search_part(store, *cursor, index);
    } else {
      cut_short_ = cursor != nullptr;
      for (Lane& lane : lanes_) lane.settled = lane.hits.size();
      cursors_.clear();
      state_ = State::done;
    }
  } while (state_ != State::done && Clock::now() - began < time);
  return true;
}

/// Splits a lane into parts. A span across a border of the range has children outside, which count for its
/// self time: those parts are searched too.
void SpanSearch::plan(const store::Store& store, store::LaneId id) {
  Cursor& cursor = cursors_.emplace_back();
  cursor.lane = cursors_.size() - 1;
  const std::uint8_t depths = store.depth_count(id);
  cursor.carried.resize(depths);
  std::int64_t from = std::max<std::int64_t>(query_.begin_ns, -1);
  std::int64_t to = std::min(query_.end_ns, until_ns_);
  if (from >= to) return;
  const auto widen = [&](std::int64_t at_ns) {
    for (std::uint8_t depth = 0; depth < depths; ++depth) {
      store.for_each_span(id, depth, at_ns, at_ns + 1, [&](const store::Span& span) {
        from = std::min(from, span.begin_ns);
        to = std::max(to, std::min(span.end_ns, until_ns_));
      });
    }
  };
  if (query_.begin_ns > 0) widen(query_.begin_ns);
  if (query_.end_ns < until_ns_) widen(query_.end_ns - 1);
  std::uint64_t spans = 0;
  for (std::uint8_t depth = 0; depth < depths; ++depth) spans += store.span_count(id, depth, from, to);
  total_ += spans;
  std::vector<std::int64_t> cuts{from};
  for (const std::int64_t cut : store.cuts(id)) {
    if (cut > cuts.back() && cut < to) cuts.push_back(cut);
  }
  const auto pieces = static_cast<std::int64_t>(1 + spans / cuts.size() / kPart);
  cuts.push_back(to);
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const std::int64_t length = cuts[i + 1] - cuts[i];
    const std::int64_t parts = std::clamp<std::int64_t>(pieces, 1, length);
    for (std::int64_t part = 0; part < parts; ++part)
      cursor.bounds.push_back(cuts[i] + length / parts * part);
  }
  cursor.bounds.push_back(to);
}

/// In order of rank, then time: a block read once serves all lanes of its rank.
SpanSearch::Cursor* SpanSearch::next_cursor() {
  while (first_cursor_ < cursors_.size() && cursors_[first_cursor_].done()) ++first_cursor_;
  Cursor* best = nullptr;
  for (std::size_t i = first_cursor_; i < cursors_.size(); ++i) {
    Cursor& cursor = cursors_[i];
    if (lanes_[cursor.lane].id.rank != lanes_[cursors_[first_cursor_].lane].id.rank) break;
    if (cursor.done()) continue;
    if (best == nullptr || cursor.bounds[cursor.next] < best->bounds[best->next]) best = &cursor;
  }
  return best;
}

const SpanSearch::Known& SpanSearch::known(const store::Store& store, store::LaneId lane,
                                           const store::Span& span) {
  Key key{static_cast<std::uint64_t>(span.kind) << 48U | std::uint64_t{span.code} << 40U |
              static_cast<std::uint64_t>(lane.stream) << 32U,
          0, 0};
  bool own = false;
  switch (span.kind) {
    case ev::EventKind::step_begin:
    case ev::EventKind::micro_step_begin:
    case ev::EventKind::collective_begin:
    case ev::EventKind::reduce_wait_begin:
      own = true;
      break;
    case ev::EventKind::kernel_begin:
      key.kind |= lane.rank;
      key.a = ev::as<ev::EventKind::kernel_begin>(span).name;
      break;
    case ev::EventKind::gpu_begin:
      key.kind |= lane.rank;
      key.a = ev::as<ev::EventKind::gpu_begin>(span).name;
      key.b = module_of(span);
      break;
    case ev::EventKind::span_begin:
      key.kind |= lane.rank;
      key.a = ev::as<ev::EventKind::span_begin>(span).name;
      break;
    case ev::EventKind::optimizer_begin:
      key.a = ev::as<ev::EventKind::optimizer_begin>(span).sub_group;
      break;
    default:
      key.a = module_of(span);
      break;
  }
  const auto [found, made] = known_.try_emplace(key);
  if (!made) return found->second;
  Known& out = found->second;
  const std::string name = shared_name(store, lane.rank, span);
  const auto [id, is_new] = name_ids_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
  if (is_new) names_.push_back(name);
  out.name = id->second;
  out.module = module_of(span);
  out.own = own;
  const std::string_view typed = query_.words;
  if (is_quoted(typed)) {
    out.matches = same_name(name, typed.substr(1, typed.size() - 2));
    out.own = false;
  } else {
    std::string text = name + " " + word(lane.stream);
    if (out.module != ev::kNoId) text += " " + module_name(store, out.module);
    // Includes all waits for this module.
    if (span.kind == ev::EventKind::fetch_wait_begin) text += " " + label_of(store, lane.rank, span);
    for (const Word& one : words_) out.words.push_back(matches(text, one.text));
    out.matches = std::ranges::find(out.words, false) == out.words.end();
    // A search for all spans asks where the time went: pauses are excluded from every sum.
    if (span.kind == ev::EventKind::paused_begin && matches(word(lane.stream), typed)) out.matches = false;
  }
  return out;
}

/// A number in the words must match a whole number: "12" does not match "all-gather 112".
bool SpanSearch::matches_itself(const store::Store& store, store::LaneId lane, const store::Span& span,
                                const Known& known, const RunIndex* index) const {
  const std::string text = " " + label_of(store, lane.rank, span) + " ";
  std::span<const std::uint32_t> params;
  std::uint32_t module = ev::kNoId;
  if (index != nullptr && span.kind == ev::EventKind::collective_begin) {
    params = moved_params(*index, lane, span);
    module = moved_for(store, *index, lane, span);
  }
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const Word& one = words_[i];
    const bool named = one.number ? text.find(" " + one.text + " ") != std::string::npos
                                  : known.words[i] || matches(text, one.text);
    const auto moved = [&](std::uint32_t param) { return contains(one.params, param); };
    if (!named && !contains(one.modules, module) && std::ranges::none_of(params, moved)) return false;
  }
  return true;
}

void SpanSearch::search_part(const store::Store& store, Cursor& cursor, const RunIndex* index) {
  Lane& lane = lanes_[cursor.lane];
  const std::int64_t from = cursor.bounds[cursor.next];
  const std::int64_t to = cursor.bounds[cursor.next + 1];
  ++cursor.next;
  rows_.resize(cursor.carried.size());
  for (std::size_t depth = 0; depth < rows_.size(); ++depth) {
    rows_[depth].spans.clear();
    store.for_each_span(lane.id, static_cast<std::uint8_t>(depth), from, to, [&](const store::Span& span) {
      if (span.begin_ns >= from && span.begin_ns < to) rows_[depth].spans.push_back(span);
    });
    rows_[depth].hit.assign(rows_[depth].spans.size(), SIZE_MAX);
    searched_ += rows_[depth].spans.size();
  }
  collect_hits(store, lane, index);
  relate_to_parents(store, lane, cursor);
  lane.settled = lane.hits.size();
  if (cursor.done()) return;
  for (const Carried& open : cursor.carried) {
    if (open.hit != SIZE_MAX && open.end_ns > to) lane.settled = std::min(lane.settled, open.hit);
  }
}

/// Hits of all depths of the part, in order of begin.
void SpanSearch::collect_hits(const store::Store& store, Lane& lane, const RunIndex* index) {
  struct Found {
    std::int64_t begin_ns;
    std::size_t depth, index;
    std::uint32_t name, module;
  };
  std::vector<Found> found;
  for (std::size_t depth = 0; depth < rows_.size(); ++depth) {
    const std::vector<store::Span>& spans = rows_[depth].spans;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const store::Span& span = spans[i];
      const bool overlaps = span.begin_ns < query_.end_ns &&
                            (span.end_ns > query_.begin_ns || span.begin_ns >= query_.begin_ns);
      if (!overlaps) continue;
      const Known& known = this->known(store, lane.id, span);
      if (!known.matches && !(known.own && matches_itself(store, lane.id, span, known, index))) continue;
      const bool collective = span.kind == ev::EventKind::collective_begin && index != nullptr;
      found.push_back({span.begin_ns, depth, i, known.name,
                       collective ? moved_for(store, *index, lane.id, span) : known.module});
    }
  }
  std::ranges::sort(found, [](const Found& x, const Found& y) {
    return std::tie(x.begin_ns, x.depth) < std::tie(y.begin_ns, y.depth);
  });
  const auto steps = store.steps();
  for (const Found& one : found) {
    const store::Span& span = rows_[one.depth].spans[one.index];
    rows_[one.depth].hit[one.index] = lane.hits.size();
    SpanHit& hit = lane.hits.emplace_back();
    hit.begin_ns = span.begin_ns;
    hit.time_ns = hit.self_ns = store::time_of(store, lane.id.rank, span).running_ns;
    hit.name = one.name;
    hit.module = one.module;
    if (const auto step = step_of(steps, span.begin_ns)) hit.step = steps[*step].step;
    hit.depth = static_cast<std::uint8_t>(one.depth);
    hit.wait = store::is_wait(span.kind);
  }
  hits_ += found.size();
}

/// The parent of a child is the last span one level up that begins before it, in this part or an earlier one.
/// Sets the name of the parent in hits, and subtracts a child's time from its parent's self time.
void SpanSearch::relate_to_parents(const store::Store& store, Lane& lane, Cursor& cursor) {
  for (std::size_t depth = 1; depth < rows_.size(); ++depth) {
    const Row& parents = rows_[depth - 1];
    std::size_t at = 0;  // number of parents that begin before the child
    for (std::size_t i = 0; i < rows_[depth].spans.size(); ++i) {
      const store::Span& child = rows_[depth].spans[i];
      while (at < parents.spans.size() && parents.spans[at].begin_ns <= child.begin_ns) ++at;
      const Carried parent = at == 0 ? cursor.carried[depth - 1]
                                     : Carried{parents.spans[at - 1].begin_ns, parents.spans[at - 1].end_ns,
                                               parents.hit[at - 1], ev::kNoId};
      if (child.begin_ns >= parent.end_ns) continue;
      if (rows_[depth].hit[i] != SIZE_MAX)
        lane.hits[rows_[depth].hit[i]].within =
            at == 0 ? parent.name : known(store, lane.id, parents.spans[at - 1]).name;
      if (child.kind == ev::EventKind::paused_begin) continue;  // not part of the parent's time
      if (parent.hit == SIZE_MAX) continue;
      SpanHit& hit = lane.hits[parent.hit];
      hit.parent = true;
      hit.self_ns =
          std::max<std::int64_t>(0, hit.self_ns - store::time_of(store, lane.id.rank, child).running_ns);
    }
  }
  for (std::size_t depth = 0; depth < rows_.size(); ++depth) {
    const Row& row = rows_[depth];
    if (!row.spans.empty())
      cursor.carried[depth] = {row.spans.back().begin_ns, row.spans.back().end_ns, row.hit.back(),
                               known(store, lane.id, row.spans.back()).name};
  }
}

}  // namespace shardscope::gui
