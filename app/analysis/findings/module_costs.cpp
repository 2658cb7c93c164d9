// The modules behind a finding's cost: of the collectives that were exposed, and of the parameters that
// computation waited for.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/analysis/findings/findings.h"
#include "app/analysis/framework.h"
#include "app/analysis/intervals.h"
#include "app/analysis/quantity_text.h"
#include "app/analysis/rank_activity.h"
#include "app/analysis/spans.h"
#include "app/store/gather_contents.h"
#include "app/store/module_name.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::analysis::findings {
namespace {

using ev::EventKind;
using ev::StreamId;

constexpr std::size_t kSteps = 3, kRanks = 8;  // of each step: more change no order

/// Calls visit(rank step) for the last typical steps.
template <typename Visit>
void for_each_rank_step(const Facts& facts, ModuleCosts& costs, const Visit& visit) {
  for (std::size_t i = facts.typical.size(); i-- > 0 && facts.typical.size() - i <= kSteps;) {
    const std::vector<RankStep>& ranks = facts.digest.steps()[facts.typical[i]].ranks;
    for (std::size_t r = 0; r < std::min(kRanks, ranks.size()); ++r) {
      visit(ranks[r]);
      ++costs.rank_steps;
    }
  }
}

/// Parameters of collectives: by their sequence, else by bucket or gather.
struct Contents {
  std::map<std::uint32_t, std::vector<std::uint32_t>> of_sequence, of_bucket, of_gather;

  Contents(const store::Store& store, const RankStep& step) {
    store.for_each_instant(step.rank, step.begin_ns, step.end_ns, [&](const ev::Event& event) {
      if (event.kind == EventKind::collective_part) {
        const auto part = ev::as<EventKind::collective_part>(event);
        of_sequence[part.sequence].push_back(part.param);
      } else if (event.kind == EventKind::bucket_add) {
        const auto add = ev::as<EventKind::bucket_add>(event);
        of_bucket[add.bucket].push_back(add.param);
      } else if (event.kind == EventKind::param_status) {
        const auto status = ev::as<EventKind::param_status>(event);
        if (status.status.status() == plan::ParamStatus::in_flight)
          of_gather[status.gather].push_back(status.param);
      }
    });
  }
  [[nodiscard]] const std::vector<std::uint32_t>* of(StreamId lane, std::uint32_t sequence,
                                                     std::uint32_t group) const {
    if (const auto part = of_sequence.find(sequence); part != of_sequence.end()) return &part->second;
    const auto& by_group = lane == StreamId::gather ? of_gather : of_bucket;
    const auto at = by_group.find(group);
    return at != by_group.end() ? &at->second : nullptr;
  }
};

}  // namespace

ModuleCosts exposed_modules(const Facts& facts, Collectives which) {
  ModuleCosts out;
  // Spans of such a run are timed by the host, what is exposed by the device.
  if (!facts.store.has_tables() || has_times_of_host(facts.store.tables())) return out;
  for_each_rank_step(facts, out, [&](const RankStep& step) {
    const RankActivity activity = activity_of(facts.store, step.rank, step.begin_ns, step.end_ns);
    const IntervalSet exposed = activity.comm.subtract(activity.compute);
    if (exposed.length() == 0) return;
    const Contents contents(facts.store, step);
    for (const StreamId lane : {StreamId::gather, StreamId::reduce}) {
      if (lane == StreamId::reduce && which == Collectives::gathers) continue;
      for_each_span(facts.store, {step.rank, lane}, step.begin_ns, step.end_ns, [&](const store::Span& span) {
        if (span.kind != EventKind::collective_begin || span.end_ns == store::kOpen) return;
        const auto fields = ev::as<EventKind::collective_begin>(span);
        const auto* const params = contents.of(lane, fields.sequence, fields.group);
        if (params == nullptr) return;
        const std::string name = store::contents_text(facts.store, *params);
        const std::int64_t ns = exposed.intersect(IntervalSet({{span.begin_ns, span.end_ns}})).length();
        if (!name.empty()) out.of[name] += static_cast<double>(ns);
      });
    }
  });
  return out;
}

ModuleCosts awaited_modules(const Facts& facts) {
  ModuleCosts out;
  if (!facts.store.has_tables() || has_times_of_host(facts.store.tables())) return out;
  for_each_rank_step(facts, out, [&](const RankStep& step) {
    for_each_span(facts.store, {step.rank, StreamId::compute}, step.begin_ns, step.end_ns,
                  [&](const store::Span& span) {
                    if (span.kind != EventKind::fetch_wait_begin || span.end_ns == store::kOpen) return;
                    const std::uint32_t module = ev::as<EventKind::fetch_wait_begin>(span).module;
                    if (module != ev::kNoId)
                      out.of[store::module_name(facts.store, module)] +=
                          static_cast<double>(span.end_ns - span.begin_ns);
                  });
  });
  return out;
}

std::string worst_of(const ModuleCosts& costs, CostUnit unit) {
  constexpr double kWorthNaming = 0.1;  // of all
  constexpr std::size_t kNamed = 2;
  std::vector<std::pair<std::string, double>> all(costs.of.begin(), costs.of.end());
  std::ranges::stable_sort(all, std::greater{}, &std::pair<std::string, double>::second);
  double sum = 0;
  for (const auto& [name, cost] : all) sum += cost;
  std::string out;
  for (std::size_t i = 0; i < std::min(kNamed, all.size()); ++i) {
    const auto& [name, cost] = all[i];
    const double each = cost / static_cast<double>(std::max<std::size_t>(costs.rank_steps, 1));
    if (cost <= 0 || cost < kWorthNaming * sum) break;
    out += fmt::format("{}{} ({})", i == 0 ? " Most of it: " : "; then ", name,
                       unit == CostUnit::bytes
                           ? bytes_text(static_cast<std::int64_t>(each))
                           : fmt::format("{:.{}f} ms of a step", each * 1e-6, each < 1e7 ? 1 : 0));
  }
  return out.empty() ? out : out + ".";
}

}  // namespace shardscope::analysis::findings
