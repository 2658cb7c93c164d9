#include "app/analysis/kept.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/analysis/intervals.h"
#include "app/analysis/quantity_text.h"

namespace shardscope::analysis {
namespace {

using nlohmann::json;

std::string range_text(const StepRange& range) {
  return range.first == range.last ? fmt::format("step {}", range.first)
                                   : fmt::format("steps {} to {}", range.first, range.last);
}

json id(std::uint32_t number) { return number == store::ev::kNoId ? json(nullptr) : json(number); }

template <typename Which>
IntervalSet times_of_gaps(const store::Store& store, Which which) {
  std::vector<Interval> out;
  for (const store::Gap& gap : store.gaps()) {
    if (which(gap)) out.push_back({gap.begin_ns, gap.end_ns + 1});
  }
  return IntervalSet(std::move(out));
}

}  // namespace

IntervalSet not_kept(const store::Store& store) {
  if (store.not_kept().events == 0) return {};
  return times_of_gaps(store, [](const store::Gap& gap) { return gap.not_kept; });
}

IntervalSet not_here(const store::Store& store) {
  return times_of_gaps(store, [](const store::Gap& gap) { return gap.not_kept || gap.evicted; });
}

bool meets(const IntervalSet& set, std::int64_t begin_ns, std::int64_t end_ns) {
  const std::vector<Interval>& all = set.intervals();
  const auto first =
      std::ranges::partition_point(all, [begin_ns](const Interval& one) { return one.end <= begin_ns; });
  return first != all.end() && first->begin <= end_ns;
}

bool is_kept(const store::Store& store, std::int64_t begin_ns, std::int64_t end_ns) {
  if (store.not_kept().events == 0) return true;
  return std::ranges::none_of(store.gaps(), [&](const store::Gap& gap) {
    return gap.not_kept && gap.begin_ns <= end_ns && gap.end_ns >= begin_ns;
  });
}

std::optional<Kept> kept_of(const store::Store& store) {
  if (store.not_kept().events == 0) return std::nullopt;
  Kept out;
  out.not_kept_events = store.not_kept().events;
  out.events = store.event_count() - std::min(store.event_count(), out.not_kept_events);
  out.from_ns = store.not_kept().until_ns;
  out.moments.assign(store.moments().begin(), store.moments().end());
  const IntervalSet gone = not_kept(store);
  for (const store::StepRow& row : store.steps()) {
    if (row.end_ns == store::kOpen) continue;
    ++out.all_steps;
    if (meets(gone, row.begin_ns, row.end_ns)) continue;
    ++out.whole_steps;
    // A step that never ended, or without a row, is in no range.
    if (!out.steps.empty() && out.steps.back().last + 1 == row.step) {
      out.steps.back().last = row.step;
    } else {
      out.steps.push_back({row.step, row.step});
    }
  }
  return out;
}

std::string text_of(const Kept& kept) {
  std::string steps;
  for (const StepRange& range : kept.steps) {
    constexpr std::size_t kShown = 6;
    if (static_cast<std::size_t>(&range - kept.steps.data()) == kShown) {
      steps += fmt::format(" and {} more stretches", kept.steps.size() - kShown);
      break;
    }
    steps += (steps.empty() ? "" : ", ") + range_text(range);
  }
  return fmt::format(
      "full detail of {} ({} of {} steps), of everything from {} on; of the others {} events were deleted; "
      "their "
      "step times, loss values, totals and peaks are here",
      steps.empty() ? "no completed step" : steps, kept.whole_steps, kept.all_steps, time_text(kept.from_ns),
      kept.not_kept_events);
}

std::string text_of(const store::Moment& moment) {
  std::string where;
  if (moment.step != store::ev::kNoId) where += fmt::format("step {}", moment.step);
  if (moment.rank != store::ev::kNoId)
    where += fmt::format("{}rank {}", where.empty() ? "" : ", ", moment.rank);
  return fmt::format("{} at {}{}: {}", moment.kind, time_text(moment.at_ns),
                     where.empty() ? where : " (" + where + ")", moment.text);
}

json kept_json(const std::optional<Kept>& kept) {
  if (!kept) return nullptr;
  json steps = json::array(), moments = json::array();
  for (const StepRange& range : kept->steps) steps.push_back({{"first", range.first}, {"last", range.last}});
  for (const store::Moment& moment : kept->moments) {
    moments.push_back({{"at_ns", moment.at_ns},
                       {"begin_ns", moment.begin_ns},
                       {"end_ns", moment.end_ns},
                       {"kind", moment.kind},
                       {"step", id(moment.step)},
                       {"rank", id(moment.rank)},
                       {"text", moment.text}});
  }
  return {
      {"steps", steps},         {"whole_steps", kept->whole_steps},         {"all_steps", kept->all_steps},
      {"events", kept->events}, {"not_kept_events", kept->not_kept_events}, {"from_ns", kept->from_ns},
      {"moments", moments}};
}

}  // namespace shardscope::analysis
