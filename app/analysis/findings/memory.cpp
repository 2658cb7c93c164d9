// Memory: model states above their formula, gathered parameters at the peak, a fragmented allocator.
#include "app/analysis/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "app/analysis/findings/findings.h"
#include "app/analysis/quantity_text.h"

namespace shardscope::analysis::findings {

using ev::EventKind;
using ev::Severity;

/// Whether every run of the stage has it: no setting is wrong, and none would help.
static bool is_inherent(MemoryCause cause) {
  return cause == MemoryCause::padding || cause == MemoryCause::rounding ||
         cause == MemoryCause::whole_gradients;
}

void memory_excess(const Facts& facts, Found& found) {
  const Summary& summary = facts.summary;
  constexpr double kTolerated = 5;  // percent: padding and alignment of small models
  const auto& excess = summary.memory_model.excess_pct;
  if (!excess || *excess < kTolerated) return;
  std::int64_t inherent = 0;
  for (const MemoryPart& part : summary.memory_model.parts)
    inherent += is_inherent(part.cause) ? part.bytes : 0;
  const double expected = static_cast<double>(std::max<std::int64_t>(summary.memory_model.bytes_per_rank, 1));
  if (*excess - 100 * static_cast<double>(inherent) / expected < kTolerated) return;
  std::string parts;
  for (const MemoryPart& part : summary.memory_model.parts) {
    parts += fmt::format(" {} are {}: {}.", bytes_text(part.bytes), name_of(part.cause), explain(part.cause));
  }
  Finding finding{
      Severity::info,
      fmt::format("Model states exceed {} by {:.1f} %", summary.memory_model.expression, *excess),
      fmt::format("{} expected, {} measured on rank {} at {}, where model states alone peak.",
                  bytes_text(summary.memory_model.bytes_per_rank),
                  bytes_text(*summary.memory_model.measured_bytes_per_rank),
                  summary.memory_model.measured_rank, time_text(summary.memory_model.measured_at_ns)) +
          parts,
      "The Memory panel of that rank's device pool has it as \"model states at most\" and names the "
      "categories at that "
      "time; its peak is that of the whole pool, at another time.",
      summary.memory_model.measured_at_ns,
      summary.memory_model.measured_rank};
  finding.id = "memory_excess";
  finding.cost_bytes = *summary.memory_model.measured_bytes_per_rank - summary.memory_model.bytes_per_rank;
  found.add(std::move(finding));
}

/// Why stage 3 may take more than stage 2: gathered parameters at the peak.
void gathered_peak(const Facts& facts, Found& found) {
  constexpr double kMuch = 0.3;
  if (!facts.zero_keys || facts.summary.stage != 3 || facts.summary.copy_ranks < 2) return;
  const auto largest = largest_device_peak(facts.summary);
  if (!largest) return;
  const store::MemorySample* const peak = largest->sample;
  const auto of = [&](ev::MemoryCategory category) {
    return peak->bytes[static_cast<std::size_t>(category)];
  };
  const std::int64_t gathered =
      of(ev::MemoryCategory::param_gathered) + of(ev::MemoryCategory::gather_buffer);
  if (static_cast<double>(gathered) < kMuch * static_cast<double>(peak->total())) return;
  const std::int64_t elems = gathered / std::max<std::int64_t>(facts.store.tables().param_bytes, 1);
  Finding finding{Severity::info,
                  fmt::format("{:.0f} % of the peak are gathered parameters",
                              100 * static_cast<double>(gathered) / static_cast<double>(peak->total())),
                  fmt::format("{} of {} on rank {} at {}: {} elements are whole there at once.",
                              bytes_text(gathered), bytes_text(peak->total()), largest->rank->rank,
                              time_text(peak->at_ns), elements_text(elems)),
                  "",
                  peak->at_ns,
                  largest->rank->rank};
  finding.id = "gathered_peak";
  finding.cost_bytes = gathered;
  // Held parameters explain these only if they are most of them.
  const Finding* const held = found.find("held_after_use");
  if (held != nullptr && 2 * held->cost_bytes.value_or(0) >= gathered) {
    found.follows("held_after_use", std::move(finding.title));
    return;
  }
  const std::int64_t wanted = live_limit(facts, static_cast<double>(elems) / 2);
  if (wanted >= elems || wanted >= facts.zero.max_live_parameters) return;
  advise(finding, {{{"zero_optimization.stage3_max_live_parameters", std::to_string(wanted)}},
                   fmt::format("Where memory is short, lower zero_optimization.stage3_max_live_parameters "
                               "to about {}: less is prefetched.",
                               elements_text(wanted))});
  found.add(std::move(finding));
}

namespace {

/// The caching allocator of a rank in the last typical step.
struct AllocatorFacts {
  std::uint32_t rank = 0;
  /// Where the fewest bytes are in free pieces of blocks in use: between two passes there are more, which the
  /// next pass uses again. Counts are those at the end of the step.
  ev::Fields<EventKind::allocator_state> state{};
  std::int64_t at_ns = 0;
  std::uint64_t retries =
      0;  ///< in the typical steps: those of the warm-up and of a single stop cost no other step
  [[nodiscard]] double split_share() const {
    return static_cast<double>(state.inactive_split_bytes) / static_cast<double>(state.reserved_bytes);
  }
};

std::optional<AllocatorFacts> allocator_of(const Facts& facts, const RankStep& rank) {
  std::optional<AllocatorFacts> out;
  std::uint32_t retries = 0, ooms = 0;
  facts.store.for_each_instant(rank.rank, rank.begin_ns, rank.end_ns, [&](const ev::Event& event) {
    if (event.kind != EventKind::allocator_state) return;
    const auto sample = ev::as<EventKind::allocator_state>(event);
    retries = sample.retries;
    ooms = sample.ooms;
    if (out && sample.inactive_split_bytes >= out->state.inactive_split_bytes) return;
    out = {.rank = rank.rank, .state = sample, .at_ns = static_cast<std::int64_t>(event.ticks)};
  });
  if (!out || out->state.reserved_bytes <= 0) return std::nullopt;
  out->state.retries = retries;
  out->state.ooms = ooms;
  const auto own = std::ranges::find(facts.ranks, rank.rank, &RankFacts::rank);
  if (own != facts.ranks.end()) out->retries = own->retries;
  return out;
}

/// Of the rank with most retries, then failures, then the largest fragmented share.
std::optional<AllocatorFacts> worst_allocator(const Facts& facts) {
  std::optional<AllocatorFacts> worst;
  if (facts.typical.empty()) return worst;
  const auto badness = [](const AllocatorFacts& one) {
    return std::tuple(one.retries, one.state.ooms, one.split_share());
  };
  for (const RankStep& rank : facts.digest.steps()[facts.typical.back()].ranks) {
    if (facts.store.instant_count(rank.rank, EventKind::allocator_state) == 0) continue;
    const std::optional<AllocatorFacts> one = allocator_of(facts, rank);
    if (one && (!worst || badness(*one) > badness(*worst))) worst = one;
  }
  return worst;
}

}  // namespace

void fragmentation(const Facts& facts, Found& found) {
  constexpr double kMuch = 0.2;
  const std::optional<AllocatorFacts> worst = worst_allocator(facts);
  if (!worst || (worst->retries == 0 && worst->split_share() < kMuch)) return;
  const ev::Fields<EventKind::allocator_state>& state = worst->state;
  Finding finding;
  finding.id = "fragmentation";
  finding.rank = worst->rank;
  finding.at_ns = worst->at_ns;
  finding.severity = worst->retries > 0 ? Severity::warning : Severity::info;
  finding.title = worst->retries > 0
                      ? fmt::format("The allocator of rank {} freed its cache {} times in {} steps",
                                    worst->rank, worst->retries, facts.typical.size())
                      : fmt::format("{:.0f} % of what the allocator of rank {} holds is fragmented",
                                    100 * worst->split_share(), worst->rank);
  finding.evidence = fmt::format(
      "It holds {} from the driver; {} of it lie in pieces of larger blocks that are in use. {} retries and "
      "{} "
      "failures since the run began, {} of the retries in typical steps; each waits for the device.",
      bytes_text(state.reserved_bytes), bytes_text(state.inactive_split_bytes), state.retries, state.ooms,
      worst->retries);
  finding.next_step =
      "Set PYTORCH_ALLOC_CONF=expandable_segments:True in the environment (PYTORCH_CUDA_ALLOC_CONF for an "
      "older PyTorch), unless it is set already; if retries go on, the peak itself is too high.";
  finding.cost_bytes = state.inactive_split_bytes;
  found.add(std::move(finding));
}

}  // namespace shardscope::analysis::findings
