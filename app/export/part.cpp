#include "app/export/part.h"

#include <algorithm>

#include "app/analysis/rank_step.h"
#include "app/store/gather_contents.h"
#include "app/store/span_time.h"
#include "instrumentation/event_fields.h"

namespace shardscope::exporter {
namespace {

namespace ev = shardscope::instrumentation;
using ev::EventKind;
using store::Store;

bool is_in(const std::pair<std::uint32_t, std::uint32_t>& steps, std::uint32_t step) noexcept {
  return step >= steps.first && step <= steps.second;
}

}  // namespace

bool TimeRange::overlaps(std::int64_t begin_ns, std::int64_t end_ns) const noexcept {
  const bool before = end_ns < from_ns || (end_ns == from_ns && begin_ns < from_ns);
  return !before && begin_ns < to_ns;
}

bool ExportPart::whole() const noexcept {
  return ranks.empty() && range == TimeRange() && detail == ev::Detail::kernels;
}

bool ExportPart::has_rank(std::uint32_t rank) const noexcept {
  return ranks.empty() || std::ranges::find(ranks, rank) != ranks.end();
}

bool ExportPart::has_kind(EventKind kind) const noexcept { return ev::detail_of(kind) <= detail; }

TimeRange ExportPart::of(std::uint32_t rank) const noexcept {
  const auto own = range_of_rank.find(rank);
  return own == range_of_rank.end() ? range : own->second;
}

bool ExportPart::has(const store::StepRow& step) const noexcept {
  return steps ? is_in(*steps, step.step) : range.overlaps(step.begin_ns, step.end_ns);
}

bool ExportPart::has_end(const store::StepRow& step) const noexcept {
  if (step.end_ns == store::kOpen) return false;
  return steps ? is_in(*steps, step.step) : step.end_ns > range.from_ns && step.end_ns <= range.to_ns;
}

bool ExportPart::has(std::uint32_t step, const analysis::RankStep& of_rank) const noexcept {
  if (!has_rank(of_rank.rank)) return false;
  return steps ? is_in(*steps, step) : range.overlaps(of_rank.begin_ns, of_rank.end_ns);
}

bool ExportPart::has(const store::Message& message) const noexcept {
  return has_rank(message.rank) && of(message.rank).has(message.at_ns);
}

bool ExportPart::has(const store::Gap& gap) const noexcept {
  return has_rank(gap.rank) && of(gap.rank).overlaps(gap.begin_ns, gap.end_ns);
}

bool choose_steps(const Store& store, std::uint32_t first, std::uint32_t last, ExportPart& part) {
  const std::pair chosen{first, last};
  TimeRange all{Store::kEnd, Store::kBegin};
  for (const store::StepRow& row : store.steps()) {
    if (!is_in(chosen, row.step)) continue;
    all.from_ns = std::min(all.from_ns, row.begin_ns);
    all.to_ns = std::max(all.to_ns, row.end_ns == store::kOpen ? Store::kEnd : row.end_ns);
  }
  if (all.from_ns >= all.to_ns) return false;
  part.steps = chosen;
  part.range = all;
  for (const store::RankRow& rank : store.ranks()) {
    if (!part.has_rank(rank.rank)) continue;
    TimeRange own{Store::kEnd, Store::kBegin};
    store.for_each_span({rank.rank, ev::StreamId::host}, 0, all.from_ns, all.to_ns,
                        [&](const store::Span& span) {
                          if (span.kind != EventKind::step_begin) return;
                          if (!is_in(chosen, ev::as<EventKind::step_begin>(span).step)) return;
                          own.from_ns = std::min(own.from_ns, span.begin_ns);
                          const bool open = !store::time_of(store, rank.rank, span).ended;
                          own.to_ns = std::max(own.to_ns, open ? Store::kEnd : span.end_ns);
                        });
    if (own.from_ns < own.to_ns) part.range_of_rank[rank.rank] = own;
  }
  return true;
}

void walk_part(const Store& store, store::LaneId lane, const ExportPart& part,
               const std::function<void(const WalkedSpan&)>& visit) {
  if (!part.has_rank(lane.rank)) return;
  const TimeRange range = part.of(lane.rank);
  walk_overlapping(store, lane, range.from_ns, range.to_ns, [&](const WalkedSpan& walked) {
    if (part.has_kind(walked.span->kind) && range.overlaps(walked.span->begin_ns, walked.end_ns))
      visit(walked);
  });
}

void for_each_instant(const Store& store, std::uint32_t rank, const ExportPart& part,
                      const std::function<void(const ev::Event&)>& visit) {
  if (!part.has_rank(rank)) return;
  const TimeRange range = part.of(rank);
  store.for_each_instant(rank, range.from_ns, range.to_ns, [&](const ev::Event& event) {
    if (part.has_kind(event.kind)) visit(event);
  });
}

std::optional<std::int64_t> state_begins(const Store& store, std::uint32_t rank, const ExportPart& part) {
  const TimeRange range = part.of(rank);
  const bool within = range.from_ns > 0 && range.from_ns <= store.end_ns() && range.from_ns < range.to_ns;
  if (!within || !part.has_rank(rank) || !store.is_known(rank, range.from_ns - 1)) return std::nullopt;
  return range.from_ns;
}

void for_each_memory_before(
    const Store& store, std::uint32_t rank, const ExportPart& part,
    const std::function<void(ev::MemoryPool, ev::MemoryCategory, std::int64_t)>& visit) {
  const auto begin = state_begins(store, rank, part);
  if (!begin || !part.has_kind(EventKind::memory_alloc)) return;
  for (std::size_t p = 0; p < ev::kMemoryPoolCount; ++p) {
    const auto pool = static_cast<ev::MemoryPool>(p);
    if (!store.memory_peak(rank, pool)) continue;
    const store::MemorySample sample = store.memory_at(rank, pool, *begin - 1);
    for (std::size_t c = 0; c < sample.bytes.size(); ++c) {
      if (sample.bytes[c] != 0) visit(pool, static_cast<ev::MemoryCategory>(c), sample.bytes[c]);
    }
  }
}

void for_each_status_before(const Store& store, std::uint32_t rank, const ExportPart& part,
                            const std::function<void(std::uint32_t, const store::ParamState&)>& visit) {
  const auto begin = state_begins(store, rank, part);
  if (!begin || !store.has_tables() || !part.has_kind(EventKind::param_status)) return;
  std::vector<store::ParamState> states(store.tables().params.size());
  store.param_states(rank, *begin - 1, states);
  for (std::uint32_t param = 0; param < states.size(); ++param) {
    // A parameter that never changed has since_ns 0: skip it unless its history has a change.
    if (states[param].since_ns <= 0 && store.status_history(rank, param, *begin - 1, 1).empty()) continue;
    visit(param, states[param]);
  }
}

std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> params_of(const Store& store,
                                                                        std::uint32_t rank,
                                                                        const ExportPart& part) {
  if (!part.has_rank(rank) || !part.has_kind(EventKind::collective_part)) return {};
  return store::collective_params(store, rank);
}

std::vector<Flow> flows_of(const Store& store, std::uint32_t rank, const ExportPart& part) {
  if (!part.has_rank(rank) || !part.has_kind(EventKind::collective_begin) ||
      !part.has_kind(EventKind::fetch_wait_begin))
    return {};
  const TimeRange range = part.of(rank);
  return flows_to_waits(store, rank, range.from_ns, range.to_ns);
}

}  // namespace shardscope::exporter
