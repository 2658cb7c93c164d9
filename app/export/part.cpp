#include "app/export/part.h"

#include <algorithm>

#include "app/store/gather_contents.h"
#include "instrumentation/event_fields.h"

namespace shardscope::exporter {
namespace {

namespace ev = shardscope::instrumentation;
using ev::EventKind;
using store::Store;

}  // namespace

bool ExportPart::whole() const noexcept {
  return ranks.empty() && from_ns == Store::kBegin && to_ns == Store::kEnd && detail == ev::Detail::kernels;
}

bool ExportPart::has_rank(std::uint32_t rank) const noexcept {
  return ranks.empty() || std::ranges::find(ranks, rank) != ranks.end();
}

bool ExportPart::has_kind(EventKind kind) const noexcept { return ev::detail_of(kind) <= detail; }

bool ExportPart::overlaps(std::int64_t begin_ns, std::int64_t end_ns) const noexcept {
  const bool before = end_ns < from_ns || (end_ns == from_ns && begin_ns < from_ns);
  return !before && begin_ns < to_ns;
}

bool ExportPart::overlaps(const store::StepRow& step) const noexcept {
  return overlaps(step.begin_ns, step.end_ns);
}

bool ExportPart::has(const store::Message& message) const noexcept {
  return has_rank(message.rank) && has_time(message.at_ns);
}

bool ExportPart::has(const store::Gap& gap) const noexcept {
  return has_rank(gap.rank) && overlaps(gap.begin_ns, gap.end_ns);
}

void walk_part(const Store& store, store::LaneId lane, const ExportPart& part,
               const std::function<void(const WalkedSpan&)>& visit) {
  if (!part.has_rank(lane.rank)) return;
  walk_overlapping(store, lane, part.from_ns, part.to_ns, [&](const WalkedSpan& walked) {
    if (part.has_kind(walked.span->kind) && part.overlaps(walked.span->begin_ns, walked.end_ns))
      visit(walked);
  });
}

void for_each_instant(const Store& store, std::uint32_t rank, const ExportPart& part,
                      const std::function<void(const ev::Event&)>& visit) {
  if (!part.has_rank(rank)) return;
  store.for_each_instant(rank, part.from_ns, part.to_ns, [&](const ev::Event& event) {
    if (part.has_kind(event.kind)) visit(event);
  });
}

std::optional<std::int64_t> state_begins(const Store& store, std::uint32_t rank, const ExportPart& part) {
  const bool within = part.from_ns > 0 && part.from_ns <= store.end_ns() && part.from_ns < part.to_ns;
  if (!within || !part.has_rank(rank) || !store.is_known(rank, part.from_ns - 1)) return std::nullopt;
  return part.from_ns;
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
    // One that never changed is said to have been so since 0.
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
  return gather_flows(store, rank, part.from_ns, part.to_ns);
}

}  // namespace shardscope::exporter
