#include "app/gui/model/compared_series.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "app/analysis/digest.h"
#include "app/analysis/statistics.h"
#include "app/gui/model/aligned_phases.h"
#include "app/gui/model/names.h"
#include "app/gui/model/step_spans.h"
#include "app/store/span_time.h"
#include "instrumentation/event_fields.h"

namespace shardscope::gui {
namespace {

using analysis::ValuesByStep;
using StepNumbers = std::vector<std::uint32_t>;

/// Of both runs' chosen steps; the table is made within one frame.
constexpr std::uint64_t kMostSpansRead = 400'000;

/// Name, figure and unit.
using SeriesKey = std::tuple<std::string, std::string, std::string>;
/// Series in the order in which they were first seen.
struct SeriesList {
  std::vector<SeriesKey> order;
  std::map<SeriesKey, ValuesByStep> values;
  ValuesByStep& of(const SeriesKey& key) {
    const auto [found, is_new] = values.try_emplace(key);
    if (is_new) order.push_back(key);
    return found->second;
  }
};

/// The first step of a run is warm-up: it is not measured if there are others.
StepNumbers measured_steps(const store::Store& store, const analysis::StepBounds& within) {
  StepNumbers out;
  const auto rows = store.steps();
  for (std::size_t i = rows.size() > 1 ? 1 : 0; i < rows.size(); ++i)
    if (rows[i].end_ns != store::kOpen && within.contains(rows[i].step)) out.push_back(rows[i].step);
  return out;
}

StepNumbers measured_steps(const analysis::Digest& digest, const analysis::StepBounds& within) {
  StepNumbers out;
  for (std::size_t i = digest.first_measured(); i < digest.steps().size(); ++i)
    if (!digest.steps()[i].ranks.empty() && within.contains(digest.steps()[i].step))
      out.push_back(digest.steps()[i].step);
  return out;
}

void keep_latest(StepNumbers& steps, std::size_t most) {
  if (steps.size() > most) steps.erase(steps.begin(), steps.end() - static_cast<std::ptrdiff_t>(most));
}

/// The latest steps of both; without any common one the latest of each.
std::pair<StepNumbers, StepNumbers> chosen_steps(StepNumbers a, StepNumbers b, std::size_t most) {
  StepNumbers both;
  std::ranges::set_intersection(a, b, std::back_inserter(both));
  if (!both.empty()) a = b = both;
  keep_latest(a, most);
  keep_latest(b, most);
  return {std::move(a), std::move(b)};
}

const store::StepRow* row_of(const store::Store& store, std::uint32_t step) {
  const auto rows = store.steps();
  const auto found = std::ranges::lower_bound(rows, step, {}, &store::StepRow::step);
  return found == rows.end() || found->step != step ? nullptr : &*found;
}

std::uint64_t spans_of_step(const store::Store& store, std::uint32_t step) {
  const store::StepRow* const row = row_of(store, step);
  if (row == nullptr || store.ranks().empty()) return 0;
  const store::LaneId lane{store.ranks().front().rank, ev::StreamId::compute};
  std::uint64_t out = 0;
  for (std::uint8_t depth = 0; depth < store.depth_count(lane); ++depth)
    out += store.span_count(lane, depth, row->begin_ns, row->end_ns);
  return out;
}

/// The latest steps of which both runs together have few enough spans; one at least.
void bound_by_spans(const store::Store& a, const store::Store& b, StepNumbers& of_a, StepNumbers& of_b) {
  std::uint64_t spans = 0;
  std::size_t count = 0;
  const std::size_t most = std::max(of_a.size(), of_b.size());
  while (count < most && (count == 0 || spans < kMostSpansRead)) {
    ++count;
    if (count <= of_a.size()) spans += spans_of_step(a, of_a[of_a.size() - count]);
    if (count <= of_b.size()) spans += spans_of_step(b, of_b[of_b.size() - count]);
  }
  keep_latest(of_a, count);
  keep_latest(of_b, count);
}

/// 0 in the steps without it, among those that have any series.
void fill_up(SeriesList& list, const std::set<std::uint32_t>& steps) {
  for (auto& [key, values] : list.values)
    for (const std::uint32_t step : steps) values.try_emplace(step, 0);
}

SeriesList phase_series(const store::Store& store, const StepNumbers& steps,
                        std::optional<std::uint32_t> of) {
  SeriesList out;
  std::set<std::uint32_t> with_phases;
  ValuesByStep outside;
  const auto rank = rank_or_lowest(store, of);
  for (const std::uint32_t number : steps) {
    const store::StepRow* const row = row_of(store, number);
    if (row == nullptr || !rank) continue;
    double left = static_cast<double>(store::time_of(store, *row).running_ns) * 1e-6;
    for (const NamedInterval& phase : phases_of(store, *row, *rank)) {
      const double ms = static_cast<double>(phase.running_ns) * 1e-6;
      out.of({phase.name, "", "ms"})[number] += ms;
      left -= ms;
      with_phases.insert(number);
    }
    outside[number] = std::max(0.0, left);
  }
  std::erase_if(outside, [&](const auto& one) { return !with_phases.contains(one.first); });
  if (!outside.empty()) out.of({kOutsideOfPhases, "", "ms"}) = outside;
  fill_up(out, with_phases);
  return out;
}

SeriesList module_series(const store::Store& store, const StepNumbers& steps,
                         std::optional<std::uint32_t> of) {
  SeriesList out;
  std::set<std::uint32_t> with_modules;
  const auto rank = rank_or_lowest(store, of);
  if (!rank || !store.has_tables()) return out;
  const store::LaneId lane{*rank, ev::StreamId::compute};
  for (const std::uint32_t number : steps) {
    const store::StepRow* const row = row_of(store, number);
    if (row == nullptr) continue;
    std::map<std::pair<std::uint32_t, ev::Pass>, std::int64_t> times;
    for_each_span_in_step(store, lane, *row, ev::EventKind::module_begin, [&](const store::Span& span) {
      const auto fields = ev::as<ev::EventKind::module_begin>(span);
      times[{fields.module, fields.pass}] += row->paused_ns == 0
                                                 ? span.end_ns - span.begin_ns
                                                 : store::time_of(store, lane.rank, span).running_ns;
    });
    for (const auto& [key, ns] : times) {
      with_modules.insert(number);
      out.of({module_name(store, key.first), word(key.second), "ms"})[number] +=
          static_cast<double>(ns) * 1e-6;
    }
  }
  fill_up(out, with_modules);
  return out;
}

SeriesList collective_series(const analysis::Digest& digest, const StepNumbers& steps) {
  SeriesList out;
  const std::set<std::uint32_t> chosen(steps.begin(), steps.end());
  // Of an operation all figures come one after the other.
  std::map<ev::CollectiveOp, std::vector<std::pair<std::uint32_t, const analysis::OpTotals*>>> ops;
  for (const analysis::StepDigest& step : digest.steps()) {
    if (!chosen.contains(step.step)) continue;
    for (const auto& [op, totals] : step.ops) ops[op].emplace_back(step.step, &totals);
  }
  for (const auto& [op, of_steps] : ops) {
    const std::string name = word(op);
    const auto add = [&](const char* figure, const char* unit, auto&& value) {
      for (const auto& [step, totals] : of_steps) {
        const double of_step = value(*totals);
        if (std::isfinite(of_step)) out.of({name, figure, unit})[step] = of_step;
      }
    };
    const auto speed = [](double bytes, double ns) { return bytes > 0 && ns > 0 ? bytes / ns : NAN; };
    add(kCollectiveTime, "ms", [](const auto& t) { return t.waiting_ns * 1e-6; });
    add("number", "", [](const auto& t) { return static_cast<double>(t.count); });
    add("bytes", "bytes", [](const auto& t) { return static_cast<double>(t.bytes); });
    add("busbw, transfer alone", "GB/s",
        [&](const auto& t) { return speed(t.bus_bytes, static_cast<double>(t.transfer_ns)); });
    add("busbw, with waiting", "GB/s", [&](const auto& t) { return speed(t.bus_bytes, t.waiting_ns); });
  }
  return out;
}

std::optional<double> median_of(const ValuesByStep& values) {
  if (values.empty()) return std::nullopt;
  std::vector<double> all;
  for (const auto& [step, value] : values) all.push_back(value);
  return analysis::quantile(std::move(all), 0.5);
}

ComparedSteps paired(SeriesOf of, SeriesList a, SeriesList b) {
  ComparedSteps out;
  std::vector<SeriesKey> order = a.order;
  for (const SeriesKey& key : b.order)
    if (!a.values.contains(key)) order.push_back(key);
  for (const SeriesKey& key : order) {
    ComparedSeries row{of, std::get<0>(key), std::get<1>(key), std::get<2>(key)};
    if (const auto found = a.values.find(key); found != a.values.end()) row.a = std::move(found->second);
    if (const auto found = b.values.find(key); found != b.values.end()) row.b = std::move(found->second);
    row.pairs = analysis::paired_steps({row.a}, {row.b});
    out.rows.push_back(std::move(row));
  }
  return out;
}

/// Rows of compare_by() (compared_rows.h), one rank each: a frame has no time for all.
ComparedSteps by_rows(const Session& a, const Session& b, SeriesOf of, std::size_t most_steps,
                      const ComparedDigests& digests, std::optional<std::uint32_t> rank,
                      const analysis::StepBounds& within) {
  const auto run = [](const Session& session, const analysis::Digest* digest) {
    return analysis::Run{&session.store(), &session.summary(), digest_for(session, digest)};
  };
  const analysis::CompareBy by = of == SeriesOf::wait     ? analysis::CompareBy::wait
                                 : of == SeriesOf::kernel ? analysis::CompareBy::kernel
                                                          : analysis::CompareBy::parameter;
  analysis::ComparedRows rows = analysis::compare_by(run(a, digests.a), run(b, digests.b), by, most_steps, 1,
                                                     analysis::Confidence::each_row, rank, within);
  ComparedSteps out;
  std::set<std::uint32_t> steps_a, steps_b;
  for (analysis::ComparedRow& one : rows.rows) {
    for (const auto& [step, value] : one.in_a) steps_a.insert(step);
    for (const auto& [step, value] : one.in_b) steps_b.insert(step);
    ComparedSeries row{of, one.name, one.figure, one.unit, std::move(one.in_a), std::move(one.in_b)};
    row.pairs = analysis::paired_steps({row.a}, {row.b});
    out.rows.push_back(std::move(row));
  }
  out.steps_a = steps_a.size();
  out.steps_b = steps_b.size();
  out.both = static_cast<std::size_t>(
      std::ranges::count_if(steps_a, [&](std::uint32_t step) { return steps_b.contains(step); }));
  return out;
}

}  // namespace

std::optional<double> ComparedSeries::median_a() const { return median_of(a); }
std::optional<double> ComparedSeries::median_b() const { return median_of(b); }

ComparedSteps compared_series(const Session& a, const Session& b, SeriesOf of, std::size_t most_steps,
                              const ComparedDigests& digests, std::optional<std::uint32_t> rank,
                              analysis::StepBounds within) {
  if (of == SeriesOf::wait || of == SeriesOf::kernel || of == SeriesOf::parameter)
    return by_rows(a, b, of, most_steps, digests, rank, within);
  const store::Store &store_a = a.store(), &store_b = b.store();
  std::pair<StepNumbers, StepNumbers> steps;
  ComparedSteps out;
  if (of == SeriesOf::collective) {
    analysis::Digest made_a, made_b;
    const auto all_steps = [](const Session& run, const analysis::Digest* given, analysis::Digest& made) {
      const analysis::Digest* const known = digest_for(run, given);
      if (known == nullptr) made = analysis::digest_of(run.store());
      return known != nullptr ? known : &made;
    };
    const analysis::Digest *const digest_a = all_steps(a, digests.a, made_a), *const digest_b = all_steps(
                                                                                  b, digests.b, made_b);
    steps = chosen_steps(measured_steps(*digest_a, within), measured_steps(*digest_b, within), most_steps);
    out = paired(of, collective_series(*digest_a, steps.first), collective_series(*digest_b, steps.second));
    std::ranges::stable_sort(out.rows, {}, &ComparedSeries::name);
  } else {
    steps = chosen_steps(measured_steps(store_a, within), measured_steps(store_b, within), most_steps);
    bound_by_spans(store_a, store_b, steps.first, steps.second);
    const auto series = of == SeriesOf::phase ? phase_series : module_series;
    out = paired(of, series(store_a, steps.first, rank), series(store_b, steps.second, rank));
  }
  // What only B has comes before the time that no phase has.
  if (of == SeriesOf::phase)
    std::ranges::stable_sort(out.rows, {},
                             [](const ComparedSeries& row) { return row.name == kOutsideOfPhases ? 1 : 0; });
  if (of == SeriesOf::module) {
    std::vector<std::pair<double, std::size_t>> by_change;
    for (std::size_t i = 0; i < out.rows.size(); ++i)
      by_change.emplace_back(-std::fabs(out.rows[i].change()), i);
    std::ranges::sort(by_change);
    std::vector<ComparedSeries> rows;
    for (const auto& [change, i] : by_change) rows.push_back(std::move(out.rows[i]));
    out.rows = std::move(rows);
  }
  out.steps_a = steps.first.size();
  out.steps_b = steps.second.size();
  StepNumbers both;
  std::ranges::set_intersection(steps.first, steps.second, std::back_inserter(both));
  out.both = both.size();
  return out;
}

std::string steps_text(const ComparedSteps& steps) {
  const auto number = [](std::size_t count) {
    return std::to_string(count) + (count == 1 ? " step" : " steps");
  };
  if (steps.both > 0) return number(steps.both) + " with the same number in both runs";
  return number(steps.steps_a) + " of A and " + number(steps.steps_b) +
         " of B, none with the same number: no intervals";
}

}  // namespace shardscope::gui
