#include "app/analysis/coordinator.h"

#include <algorithm>
#include <bitset>
#include <map>

#include "app/analysis/framework.h"

namespace shardscope::analysis {

using instrumentation::EventKind;
using instrumentation::kNoId;
using plan::InvalidationCause;

namespace {

bool is_micro_step(const store::Store::GateRow& gate) {
  return gate.kind == instrumentation::GateKind::micro_step;
}

}  // namespace

void FetchCounterSums::add(const FetchCounterSums& later) {
  micro_steps += later.micro_steps;
  for (std::size_t i = 0; i < plan::kFetchCounters; ++i) {
    total[i].count += later.total[i].count;
    total[i].elems += later.total[i].elems;
  }
  if (later.micro_steps > 0) last = later.last;
}

std::optional<FetchCounterSums> fetch_counters(const store::Store& store, std::uint32_t rank,
                                               std::int64_t begin_ns, std::int64_t end_ns) {
  if (store.instant_count(rank, EventKind::fetch_counter) == 0) return std::nullopt;
  struct MicroStep {
    plan::FetchCounts counts{};
    std::bitset<plan::kFetchCounters> known;
  };
  std::map<std::uint32_t, MicroStep> micro_steps;
  store.for_each_instant(rank, begin_ns, end_ns, [&](const instrumentation::Event& event) {
    if (event.kind != EventKind::fetch_counter) return;
    const auto fields = instrumentation::as<EventKind::fetch_counter>(event);
    const auto counter = static_cast<std::size_t>(fields.counter);
    if (counter >= plan::kFetchCounters) return;
    MicroStep& micro_step = micro_steps[fields.micro_step];
    micro_step.counts[counter] = {fields.count, fields.elems};
    micro_step.known.set(counter);
  });
  // DeepSpeed emits a counter only if it is not 0: a missing one is 0, unless events are missing.
  const bool may_lack = store.has_tables() && framework_of(store.tables()) == Framework::deepspeed &&
                        std::ranges::none_of(store.gaps(), [&](const store::Gap& gap) {
                          return gap.rank == rank && gap.begin_ns < end_ns && gap.end_ns >= begin_ns;
                        });
  FetchCounterSums sums;
  for (const auto& [number, micro_step] : micro_steps) {
    if (!micro_step.known.all() && !may_lack) continue;  // an event is missing: rather no figure than too low
    sums.add({1, micro_step.counts, micro_step.counts});
  }
  if (sums.micro_steps == 0) return std::nullopt;
  return sums;
}

std::optional<MicroStepCounters> fetch_counters_at(const store::Store& store, std::uint32_t rank,
                                                   std::int64_t at_ns) {
  constexpr int kGatesAhead =
      4;  // gates that the host may be ahead of the stream that timestamps the counters
  constexpr int kTried = 2;
  auto gate = store.gate_before(rank, at_ns + 1, is_micro_step);
  for (int tried = 0; gate && tried < kTried; ++tried) {
    std::int64_t end_ns = gate->at_ns;
    for (int ahead = 0; ahead < kGatesAhead && end_ns != store::Store::kEnd; ++ahead) {
      const auto next = store.gate_after(rank, end_ns, is_micro_step);
      end_ns = next ? next->at_ns : store::Store::kEnd;
    }
    MicroStepCounters found{gate->id, {}};
    std::bitset<plan::kFetchCounters> known;
    store.for_each_instant(rank, gate->at_ns, end_ns, [&](const instrumentation::Event& event) {
      if (event.kind != EventKind::fetch_counter) return;
      const auto fields = instrumentation::as<EventKind::fetch_counter>(event);
      const auto counter = static_cast<std::size_t>(fields.counter);
      if (fields.micro_step != gate->id || counter >= plan::kFetchCounters) return;
      found.counts[counter] = {fields.count, fields.elems};
      known.set(counter);
    });
    if (known.all()) return found;
    gate = store.gate_before(rank, gate->at_ns, is_micro_step);
  }
  return std::nullopt;
}

TraceInvalidation read_invalidation(std::uint32_t rank, const instrumentation::Event& event) {
  const auto fields = instrumentation::as<EventKind::trace_invalidated>(event);
  TraceInvalidation result{.rank = rank,
                           .at_ns = static_cast<std::int64_t>(event.ticks),
                           .trace_step = fields.trace_step,
                           .expected = fields.expected_module,
                           .got = fields.got_module,
                           .recorded = std::nullopt};
  if (fields.recorded_modules > 0) {
    result.recorded = fields.recorded_modules;
    result.cause = fields.cause;
  } else {  // without the length the program reports no cause either: derive it from the modules
    result.cause = fields.expected_module == kNoId               ? InvalidationCause::trace_too_short
                   : fields.expected_module == fields.got_module ? InvalidationCause::params_differ
                                                                 : InvalidationCause::module_differs;
  }
  return result;
}

std::optional<TraceInvalidation> invalidation_before(const store::Store& store, std::uint32_t rank,
                                                     std::int64_t at_ns) {
  if (store.instant_count(rank, EventKind::trace_invalidated) == 0) return std::nullopt;
  const auto running = store.gate_before(rank, at_ns + 1, is_micro_step);
  if (!running) return std::nullopt;
  const auto before = store.gate_before(rank, running->at_ns, is_micro_step);
  std::optional<TraceInvalidation> found;
  store.for_each_instant(rank, (before ? *before : *running).at_ns, at_ns + 1,
                         [&](const instrumentation::Event& event) {
                           if (event.kind == EventKind::trace_invalidated)
                             found = read_invalidation(rank, event);
                         });
  return found;
}

}  // namespace shardscope::analysis
