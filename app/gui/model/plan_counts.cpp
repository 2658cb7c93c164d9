#include "app/gui/model/plan_counts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "runtime/plan/bucket.h"

namespace shardscope::gui {
namespace {

constexpr std::array<std::pair<plan::FlushReason, const char*>, 6> kFlushes{{
    {plan::FlushReason::full, "flushes of a full bucket"},
    {plan::FlushReason::extra_large, "flushes of a gradient that is larger than a bucket"},
    {plan::FlushReason::epilogue, "flushes at the end of a backward"},
    {plan::FlushReason::boundary, "flushes at the last micro-step"},
    {plan::FlushReason::group_changed, "flushes where another group begins"},
    {plan::FlushReason::group_complete, "flushes of a complete group"},
}};

std::string amount(double value, PlanCount::Unit unit) {
  switch (unit) {
    case PlanCount::Unit::ms:
      return milliseconds(value).text();
    case PlanCount::Unit::elements:
      return count(value).text();
    case PlanCount::Unit::number:
      break;
  }
  return decimal(value, std::floor(value) == value ? 0 : 1);
}

}  // namespace

std::vector<PlanCount> plan_counts(const store::Store& store, const analysis::Summary& summary) {
  using Unit = PlanCount::Unit;
  std::vector<PlanCount> out;
  const auto add = [&](std::string what, Unit unit, double value, double steps) {
    if (steps > 0 && value != 0) out.push_back({std::move(what), unit, value / steps});
  };
  for (const analysis::OpRow& op : summary.ops) {
    add(std::string(word(op.op)) + " operations", Unit::number, static_cast<double>(op.count),
        summary.ops_steps);
    add(std::string(word(op.op)) + " elements", Unit::elements, static_cast<double>(op.elems),
        summary.ops_steps);
  }
  const double ranks = static_cast<double>(std::max<std::size_t>(1, summary.ranks.size()));
  if (summary.prefetch) {
    const analysis::Prefetch& p = *summary.prefetch;
    const double steps = summary.prefetch_steps * ranks;
    add("prefetches", Unit::number,
        static_cast<double>(p.early + p.just_in_time + p.late + p.mistargeted + p.unused), steps);
    add("prefetches that came late", Unit::number, static_cast<double>(p.late), steps);
    add("prefetches never used", Unit::number, static_cast<double>(p.unused), steps);
  }
  if (!store.ranks().empty()) {
    const std::uint32_t rank = store.ranks().front().rank;
    for (const auto& [reason, words] : kFlushes) {
      const auto flushes =
          store.instant_count(rank, ev::EventKind::bucket_flush, static_cast<std::uint8_t>(reason));
      add(words, Unit::number, static_cast<double>(flushes), summary.steps);
    }
  }
  if (summary.critical_path) {
    for (const auto& [part, ms] : summary.critical_path->ms_per_step)
      add("critical path: " + part, Unit::ms, ms, 1);
  }
  return out;
}

Table plan_difference(const std::vector<PlanCount>& a, const std::vector<PlanCount>& b) {
  Table table;
  table.columns = {{.name = "per step", .weight = 1.6F, .smallest = 140},
                   {"A", 0.6F, true, "As recorded"},
                   {"B", 0.6F, true, "With the changed settings, simulated"},
                   {"change", 0.6F, true}};
  const auto value_in = [](const std::vector<PlanCount>& all, const std::string& what) {
    const auto found = std::ranges::find(all, what, &PlanCount::what);
    return found == all.end() ? 0.0 : found->of_a_step;
  };
  const auto row = [&](const PlanCount& one, double in_a, double in_b) {
    // Rounding differences of a mean are not a difference.
    const double difference = in_b - in_a;
    if (std::fabs(difference) <= 1e-6 * std::max(std::fabs(in_a), std::fabs(in_b))) return;
    const std::string sign = difference > 0 ? "+" : "\u2212";
    table.add({{one.what, {}, Tone::normal, {}, ""},
               number_cell(in_a, amount(in_a, one.unit)),
               number_cell(in_b, amount(in_b, one.unit)),
               number_cell(difference, sign + amount(std::fabs(difference), one.unit))});
  };
  for (const PlanCount& one : a) row(one, one.of_a_step, value_in(b, one.what));
  for (const PlanCount& one : b) {
    if (std::ranges::find(a, one.what, &PlanCount::what) == a.end()) row(one, 0, one.of_a_step);
  }
  return table;
}

}  // namespace shardscope::gui
