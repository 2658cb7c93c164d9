#include "app/gui/model/aligned_phases.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "app/gui/model/names.h"
#include "app/gui/model/step_spans.h"
#include "app/store/span_time.h"
#include "instrumentation/event_fields.h"

namespace shardscope::gui {
namespace {

struct ModuleInterval {
  NamedInterval interval;
  std::size_t level = 0;  ///< number of enclosing modules
  bool innermost = true;
};

/// Modules of a step in order of begin, outer ones before inner ones.
std::vector<ModuleInterval> modules_of(const store::Store& store, const store::StepRow& step,
                                       std::optional<std::uint32_t> rank) {
  std::vector<ModuleInterval> out;
  const auto of = rank_or_lowest(store, rank);
  if (!of) return out;
  const store::LaneId lane{*of, ev::StreamId::compute};
  for_each_span_in_step(store, lane, step, ev::EventKind::module_begin, [&](const store::Span& span) {
    const auto fields = ev::as<ev::EventKind::module_begin>(span);
    out.push_back({{module_name(store, fields.module) + " " + word(fields.pass),
                    {span.begin_ns, std::min(span.end_ns, step.end_ns)},
                    0,
                    span},
                   0,
                   true});
  });
  // Modules with the same begin are in order of depth.
  std::ranges::stable_sort(out, {}, [](const ModuleInterval& one) { return one.interval.range.begin_ns; });
  std::vector<std::size_t> around;
  for (std::size_t i = 0; i < out.size(); ++i) {
    while (!around.empty() && out[around.back()].interval.range.end_ns <= out[i].interval.range.begin_ns)
      around.pop_back();
    out[i].level = around.size();
    if (!around.empty()) out[around.back()].innermost = false;
    around.push_back(i);
  }
  return out;
}

/// Modules of this level, and outer ones without nested modules: they do not overlap.
std::vector<NamedInterval> at_level(const std::vector<ModuleInterval>& modules, std::size_t level) {
  std::vector<NamedInterval> out;
  for (const ModuleInterval& one : modules)
    if (one.level == level || (one.level < level && one.innermost)) out.push_back(one.interval);
  return out;
}

/// Index pairs of the longest common subsequence, compared by name.
std::vector<std::pair<std::size_t, std::size_t>> common(const std::vector<NamedInterval>& a,
                                                        const std::vector<NamedInterval>& b) {
  std::vector<std::pair<std::size_t, std::size_t>> out;
  if (a.size() > kMostAligned || b.size() > kMostAligned) return out;
  const std::size_t row = b.size() + 1;
  std::vector<std::size_t> longest((a.size() + 1) * row, 0);  // common length of the suffixes
  for (std::size_t i = a.size(); i-- > 0;) {
    for (std::size_t k = b.size(); k-- > 0;) {
      longest[i * row + k] = a[i].name == b[k].name
                                 ? longest[(i + 1) * row + k + 1] + 1
                                 : std::max(longest[(i + 1) * row + k], longest[i * row + k + 1]);
    }
  }
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    if (a[i].name == b[k].name)
      out.emplace_back(i++, k++);
    else if (longest[(i + 1) * row + k] >= longest[i * row + k + 1])
      ++i;
    else
      ++k;
  }
  return out;
}

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;
struct Lists {
  std::vector<NamedInterval> a, b;
  Pairs pairs;
};

/// The modules of the nesting level with the most pairs; of equals the deepest.
Lists modules_of_both(const store::Store& a, const store::StepRow& step_of_a, const store::Store& b,
                      const store::StepRow& step_of_b, std::optional<std::uint32_t> rank) {
  const auto of_a = modules_of(a, step_of_a, rank);
  const auto of_b = modules_of(b, step_of_b, rank);
  std::size_t level = 0;
  for (const auto* const list : {&of_a, &of_b})
    for (const ModuleInterval& one : *list) level = std::max(level, one.level);
  Lists best{at_level(of_a, 0), at_level(of_b, 0), {}};
  best.pairs = common(best.a, best.b);
  for (std::size_t deeper = 1; deeper <= level; ++deeper) {
    Lists here{at_level(of_a, deeper), at_level(of_b, deeper), {}};
    here.pairs = common(here.a, here.b);
    if (!here.pairs.empty() && here.pairs.size() >= best.pairs.size()) best = std::move(here);
  }
  return best;
}

/// Explains why there are no pairs.
std::string nothing_common(const Lists& lists, const char* what) {
  const std::string each = what;
  if (lists.a.empty() || lists.b.empty())
    return std::string(lists.a.empty() ? (lists.b.empty() ? "neither run" : "A") : "B") +
           (lists.a.empty() && lists.b.empty() ? " has a " : " has no ") + each + " in this step";
  if (std::max(lists.a.size(), lists.b.size()) > kMostAligned)
    return "more than " + std::to_string(kMostAligned) + " " + each + "s in this step";
  return "no " + each + " of this step is in both runs";
}

/// Rows are in order of rank.
bool has_rank(const store::Store& store, std::uint32_t rank) {
  return std::ranges::binary_search(store.ranks(), rank, {}, &store::RankRow::rank);
}

const TimeRange& range_of(const AlignedPart& piece, AlignedRun side) {
  return side == AlignedRun::a ? piece.a : piece.b;
}

}  // namespace

std::vector<NamedInterval> phases_of(const store::Store& store, const store::StepRow& step,
                                     std::uint32_t rank) {
  std::vector<NamedInterval> out;
  const store::LaneId lane{rank, ev::StreamId::compute};
  for_each_span_in_step(store, lane, step, ev::EventKind::phase_begin, [&](const store::Span& span) {
    const bool inside = std::ranges::any_of(out, [&](const NamedInterval& one) {
      return span.begin_ns >= one.range.begin_ns && span.end_ns <= one.range.end_ns;
    });
    if (inside) return;
    out.push_back({word(ev::as<ev::EventKind::phase_begin>(span).phase),
                   {span.begin_ns, std::min(span.end_ns, step.end_ns)},
                   store::time_of(store, lane.rank, span).running_ns,
                   span});
  });
  std::ranges::sort(out, {}, [](const NamedInterval& one) { return one.range.begin_ns; });
  return out;
}

std::vector<std::uint32_t> common_ranks(const store::Store& a, const store::Store& b) {
  std::vector<std::uint32_t> out;
  for (const store::RankRow& row : a.ranks())
    if (has_rank(b, row.rank)) out.push_back(row.rank);
  return out;
}

std::optional<std::uint32_t> rank_or_lowest(const store::Store& store, std::optional<std::uint32_t> wanted) {
  if (store.ranks().empty()) return std::nullopt;
  return wanted && has_rank(store, *wanted) ? wanted : store.ranks().front().rank;
}

std::vector<AlignedPart> align_steps(const store::Store& a, const store::StepRow& step_of_a,
                                     const store::Store& b, const store::StepRow& step_of_b, AlignBy by,
                                     std::string* why_not, std::optional<std::uint32_t> rank) {
  std::vector<AlignedPart> out;
  TimeRange rest_a{step_of_a.begin_ns, step_of_a.end_ns}, rest_b{step_of_b.begin_ns, step_of_b.end_ns};
  std::int64_t at = 0;
  const auto add = [&](std::string name, TimeRange of_a, TimeRange of_b) {
    const std::int64_t length = std::max(of_a.length(), of_b.length());
    if (length <= 0) return;
    out.push_back({std::move(name), of_a, of_b, at, length});
    at += length;
  };
  if (by != AlignBy::step) {
    const auto phases = [&](const store::Store& store, const store::StepRow& step) {
      const auto of = rank_or_lowest(store, rank);
      return of ? phases_of(store, step, *of) : std::vector<NamedInterval>();
    };
    Lists lists = by == AlignBy::phase ? Lists{phases(a, step_of_a), phases(b, step_of_b), {}}
                                       : modules_of_both(a, step_of_a, b, step_of_b, rank);
    if (by == AlignBy::phase) lists.pairs = common(lists.a, lists.b);
    if (lists.pairs.empty() && why_not != nullptr)
      *why_not = nothing_common(lists, by == AlignBy::phase ? "phase" : "module");
    for (const auto& [i, k] : lists.pairs) {
      const TimeRange& of_a = lists.a[i].range;
      const TimeRange& of_b = lists.b[k].range;
      add({}, {rest_a.begin_ns, std::max(rest_a.begin_ns, of_a.begin_ns)},
          {rest_b.begin_ns, std::max(rest_b.begin_ns, of_b.begin_ns)});
      add(lists.a[i].name, of_a, of_b);
      rest_a.begin_ns = of_a.end_ns;
      rest_b.begin_ns = of_b.end_ns;
    }
  }
  add({}, rest_a, rest_b);
  return out;
}

std::vector<AlignedPart> visible_parts(std::span<const AlignedPart> parts, TimeRange seen) {
  std::vector<AlignedPart> out;
  for (const AlignedPart& piece : parts) {
    const std::int64_t from = std::max(seen.begin_ns, piece.at_ns);
    const std::int64_t to = std::min(seen.end_ns, piece.at_ns + piece.length_ns);
    if (to <= from) continue;
    const auto cut = [&](const TimeRange& range) {
      return TimeRange{std::min(range.end_ns, range.begin_ns + from - piece.at_ns),
                       std::min(range.end_ns, range.begin_ns + to - piece.at_ns)};
    };
    out.push_back({piece.name, cut(piece.a), cut(piece.b), from, to - from});
  }
  return out;
}

std::optional<std::int64_t> position_of(std::span<const AlignedPart> parts, AlignedRun side,
                                        std::int64_t time_ns) {
  const auto around = std::ranges::find_if(
      parts, [&](const AlignedPart& piece) { return range_of(piece, side).contains(time_ns); });
  if (around == parts.end()) return std::nullopt;
  return around->at_ns + (time_ns - range_of(*around, side).begin_ns);
}

std::optional<std::int64_t> time_of(std::span<const AlignedPart> parts, AlignedRun side,
                                    std::int64_t position_ns) {
  for (const AlignedPart& piece : parts) {
    const TimeRange& range = range_of(piece, side);
    const std::int64_t within = position_ns - piece.at_ns;
    if (within >= 0 && within < range.length()) return range.begin_ns + within;
  }
  return std::nullopt;
}

}  // namespace shardscope::gui
