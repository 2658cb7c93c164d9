// Memory: model states above their formula, gathered parameters at the peak, a fragmented allocator.
#include "app/analysis/memory.h"

#include <fmt/format.h>

#include <algorithm>

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

/// In the last typical step, since the allocator counts retries in total. Between two passes, free pieces are
/// mostly cache that the next pass reuses: take the sample with the fewest bytes in such pieces, at which the
/// remaining ones are unusable.
void fragmentation(const Facts& facts, Found& found) {
  constexpr double kMuch = 0.2;
  if (facts.typical.empty()) return;
  const StepDigest& last = facts.digest.steps()[facts.typical.back()];
  for (const RankStep& rank : last.ranks) {
    if (facts.store.instant_count(rank.rank, EventKind::allocator_state) == 0) continue;
    std::optional<ev::Fields<EventKind::allocator_state>> state;
    std::int64_t at_ns = 0;
    std::uint32_t retries = 0, ooms = 0;
    facts.store.for_each_instant(rank.rank, rank.begin_ns, rank.end_ns, [&](const ev::Event& event) {
      if (event.kind != EventKind::allocator_state) return;
      const auto sample = ev::as<EventKind::allocator_state>(event);
      retries = sample.retries;
      ooms = sample.ooms;
      if (state && sample.inactive_split_bytes >= state->inactive_split_bytes) return;
      state = sample;
      at_ns = static_cast<std::int64_t>(event.ticks);
    });
    if (!state || state->reserved_bytes <= 0) continue;
    const double split =
        static_cast<double>(state->inactive_split_bytes) / static_cast<double>(state->reserved_bytes);
    if (retries == 0 && ooms == 0 && split < kMuch) continue;
    const bool retried = retries + ooms > 0;
    Finding finding{
        retried ? Severity::warning : Severity::info,
        retried ? fmt::format("The allocator of rank {} had to free its cache {} times", rank.rank, retries)
                : fmt::format("{:.0f} % of what the allocator of rank {} holds is fragmented", 100 * split,
                              rank.rank),
        fmt::format(
            "It holds {} from the driver; {} of it lie in pieces of larger blocks that are in use. {} "
            "retries and {} failures so far; each retry waits for the device.",
            bytes_text(state->reserved_bytes), bytes_text(state->inactive_split_bytes), retries, ooms),
        "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True in the environment; if retries go on, the peak "
        "itself is too high.",
        at_ns,
        rank.rank};
    finding.id = "fragmentation";
    finding.cost_bytes = state->inactive_split_bytes;
    found.add(std::move(finding));
    return;
  }
}

}  // namespace shardscope::analysis::findings
