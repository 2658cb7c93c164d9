// The modules behind a finding's cost: of the collectives that were exposed, and of the parameters that
// computation waited for.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/analysis/findings/findings.h"
#include "app/analysis/framework.h"
#include "app/analysis/intervals.h"
#include "app/analysis/quantity_text.h"
#include "app/analysis/rank_activity.h"
#include "app/analysis/spans.h"
#include "app/store/gather_contents.h"
#include "app/store/interval_set.h"
#include "app/store/module_name.h"
#include "runtime/plan/scheduler.h"

namespace shardscope::analysis::findings {
namespace {

using ev::EventKind;
using ev::StreamId;

constexpr std::size_t kSteps = 3, kRanks = 8;  // of each step: more change no order

/// Calls visit(rank step) for the last typical steps, of all ranks or of eight that lie evenly among them.
template <typename Visit>
void for_each_rank_step(const Facts& facts, ModuleCosts& costs, const Visit& visit) {
  for (std::size_t i = facts.typical.size(); i-- > 0 && facts.typical.size() - i <= kSteps;) {
    const std::vector<RankStep>& ranks = facts.digest.steps()[facts.typical[i]].ranks;
    const std::size_t count = std::min(kRanks, ranks.size());
    for (std::size_t r = 0; r < count; ++r) {
      visit(ranks[r * ranks.size() / count]);
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

/// How much of [begin, end) is in the set: without sets of its own for each of many collectives.
std::int64_t length_within(const IntervalSet& set, std::int64_t begin, std::int64_t end) {
  const std::vector<store::Interval>& all = set.intervals();
  std::int64_t length = 0;
  for (auto at = std::ranges::upper_bound(all, begin, {}, &store::Interval::end);
       at != all.end() && at->begin < end; ++at)
    length += std::min(at->end, end) - std::max(at->begin, begin);
  return length;
}

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
    std::vector<store::Interval> named;
    for (const StreamId lane : {StreamId::gather, StreamId::reduce}) {
      if (lane == StreamId::reduce && which == Collectives::gathers) continue;
      for_each_span(facts.store, {step.rank, lane}, step.begin_ns, step.end_ns, [&](const store::Span& span) {
        if (span.kind != EventKind::collective_begin || span.end_ns == store::kOpen) return;
        const auto fields = ev::as<EventKind::collective_begin>(span);
        const auto* const params = contents.of(lane, fields.sequence, fields.group);
        if (params == nullptr) return;
        const std::string name = store::contents_text(facts.store, *params);
        if (name.empty()) return;
        out.of[name] += static_cast<double>(length_within(exposed, span.begin_ns, span.end_ns));
        named.push_back({span.begin_ns, span.end_ns});
      });
    }
    out.all += static_cast<double>(exposed.intersect(IntervalSet(std::move(named))).length());
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
                    if (module == ev::kNoId) return;
                    const auto ns = static_cast<double>(span.end_ns - span.begin_ns);
                    out.of[store::module_name(facts.store, module)] += ns;
                    out.all += ns;
                  });
  });
  return out;
}

std::string worst_of(const ModuleCosts& costs, std::string_view what, CostUnit unit) {
  constexpr double kWorthNaming = 0.1;  // of all
  constexpr std::size_t kNamed = 2;
  std::vector<std::pair<std::string, double>> order(costs.of.begin(), costs.of.end());
  std::ranges::stable_sort(order, std::greater{}, &std::pair<std::string, double>::second);
  const double of = static_cast<double>(std::max<std::size_t>(costs.rank_steps, 1)), all = costs.all / of;
  const auto number = [&](double value) {
    return unit == CostUnit::bytes ? bytes_text(static_cast<std::int64_t>(value))
                                   : fmt::format("{:.{}f}", value * 1e-6, all < 1e8 ? 1 : 0);
  };
  const char* const unit_text = unit == CostUnit::bytes ? "" : " ms";
  std::string out;
  for (std::size_t i = 0; i < std::min(kNamed, order.size()); ++i) {
    const auto& [name, cost] = order[i];
    const double each = cost / of;
    if (each <= 0 || each < kWorthNaming * all) break;
    out += i > 0 ? fmt::format(", {} ({}{})", name, number(each), unit_text)
                 : fmt::format(" {}: {} ({} of {}{}{})", what, name, number(each), number(all), unit_text,
                               unit == CostUnit::bytes ? "" : " of a step, in the last typical ones");
  }
  return out.empty() ? out : out + ".";
}

}  // namespace shardscope::analysis::findings
