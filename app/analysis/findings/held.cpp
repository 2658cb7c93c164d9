// Parameters that stay gathered long after a use.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "app/analysis/findings/findings.h"
#include "app/analysis/framework.h"
#include "app/analysis/held_long.h"
#include "app/analysis/memory.h"
#include "app/analysis/quantity_text.h"
#include "app/store/gather_contents.h"
#include "runtime/plan/compat.h"

namespace shardscope::analysis::findings {
namespace {

/// Why a parameter was still gathered.
enum class Why : std::uint8_t {
  reuse,
  prefetched,
  reshard_off,
  program,
  returned,
  other_module,
  one_of,
  none
};
constexpr std::array kWhys{Why::reuse,    Why::prefetched,   Why::reshard_off, Why::program,
                           Why::returned, Why::other_module, Why::one_of,      Why::none};

Why why_of(const HeldStretch& stretch) {
  if (stretch.for_program) return Why::program;
  if (stretch.unassigned) return Why::one_of;
  if (!stretch.reason) return Why::none;
  switch (*stretch.reason) {
    case plan::KeepReason::reused_soon:
      return Why::reuse;
    case plan::KeepReason::already_fetched:
      return Why::prefetched;
    case plan::KeepReason::reshard_off:
      return Why::reshard_off;
    case plan::KeepReason::external:
      return Why::returned;
    case plan::KeepReason::in_use:
      return Why::other_module;
    case plan::KeepReason::persistent:     // excluded by held_long()
    case plan::KeepReason::not_available:  // not gathered at that release; why it is gathered now
      return Why::none;                    // was not recorded
  }
  return Why::none;
}

/// Held at a time, or over a step.
struct Sum {
  std::int64_t bytes = 0;
  std::size_t params = 0;
};

/// Stretches that lasted for a large part of the step.
struct LongHeld {
  std::vector<HeldStretch> stretches;
  double byte_ns = 0;  ///< bytes x nanoseconds
  std::int64_t step_ns = 0;
  [[nodiscard]] double mean_bytes() const { return byte_ns / static_cast<double>(step_ns); }
  [[nodiscard]] Sum at(std::int64_t at_ns, std::span<const Why> whys) const {
    Sum sum;
    for (const HeldStretch& one : stretches) {
      if (one.begin_ns > at_ns || at_ns >= one.end_ns || std::ranges::find(whys, why_of(one)) == whys.end())
        continue;
      sum.bytes += one.bytes;
      ++sum.params;
    }
    return sum;
  }
  [[nodiscard]] ModuleCosts modules_at(const store::Store& store, std::int64_t at_ns) const {
    ModuleCosts out;
    for (const HeldStretch& one : stretches)
      if (one.begin_ns <= at_ns && at_ns < one.end_ns) {
        out.of[store::contents_text(store, std::array{one.param})] += static_cast<double>(one.bytes);
        out.all += static_cast<double>(one.bytes);
      }
    return out;
  }
};

LongHeld long_held(const Facts& facts, const RankStep& rank, std::uint32_t step) {
  constexpr double kLong = 0.1;  // fraction of a step
  store::StepRow row;
  row.step = step;
  row.begin_ns = rank.begin_ns;
  row.end_ns = rank.end_ns;
  LongHeld out;
  HeldLong held = held_long(facts.store, rank.rank, row);
  out.step_ns = rank.end_ns - rank.begin_ns;
  for (const HeldStretch& one : held.stretches) {
    if (static_cast<double>(one.length_ns()) < kLong * static_cast<double>(out.step_ns)) continue;
    out.byte_ns += static_cast<double>(one.bytes) * static_cast<double>(one.length_ns());
    out.stretches.push_back(one);
  }
  return out;
}

/// Prefetches stop at the live limit, and this runtime releases returned parameters beyond it.
void fewer_live(const Facts& facts, const std::string& because, Finding& finding) {
  finding.next_step = finding.otherwise =
      because + ": lower stage3_max_live_parameters where memory is short.";
  if (!facts.zero_keys) return;
  const std::int64_t least = live_limit(facts, static_cast<double>(facts.summary.params) / 4);
  if (least >= facts.zero.max_live_parameters) {
    finding.next_step = finding.otherwise = fmt::format(
        "{}. stage3_max_live_parameters is {} already; less than {}, a quarter of the model or "
        "its largest parameter, is not advised.",
        because, elements_text(facts.zero.max_live_parameters), elements_text(least));
    return;
  }
  const std::int64_t half = live_limit(facts, static_cast<double>(facts.summary.params) / 2);
  for (const std::int64_t wanted : std::set{least, half}) {
    if (wanted >= facts.zero.max_live_parameters) continue;
    advise(finding,
           {{{"zero_optimization.stage3_max_live_parameters", std::to_string(wanted)}},
            fmt::format("{}: set stage3_max_live_parameters to about {} where memory is short; they are "
                        "then gathered again.",
                        because, elements_text(wanted))});
  }
}

void add_advice(const Facts& facts, Why why, Finding& finding) {
  switch (why) {
    case Why::reuse:
      advise(
          finding,
          {{{"zero_optimization.stage3_max_reuse_distance", "0"}},
           fmt::format("They are kept because they are needed again within stage3_max_reuse_distance ({}): "
                       "set it to 0 where memory is short; they are then gathered again.",
                       elements_text(facts.zero.max_reuse_distance))});
      return;
    case Why::prefetched:
      fewer_live(facts, "A prefetch counted on them for a later module", finding);
      return;
    case Why::reshard_off:
      for (Advice& option : reshard_on_options(facts)) advise(finding, std::move(option));
      if (finding.options.empty())
        finding.next_step =
            "Their unit is not resharded after the forward: "
            "sharding_strategy=ShardingStrategy.FULL_SHARD instead of SHARD_GRAD_OP frees them, for one "
            "more gather in the backward; of the outermost unit both keep them, so that wrapping more of "
            "its modules helps there.";
      return;
    case Why::program:
      finding.next_step =
          "The program gathered them itself: end its GatheredParameters (or summon_full_params) before the "
          "step, "
          "or gather fewer at once.";
      return;
    case Why::returned:
      // DeepSpeed keeps them however many are live (C11).
      if (facts.own_runtime() && facts.zero.compat.scheduler == plan::Compat::shardscope) {
        fewer_live(facts, "A module returned them for what runs around it", finding);
      } else {
        finding.next_step =
            "A module returned them for what runs around it, and no limit releases them before: let the "
            "module use them itself, or return what it computed from them.";
      }
      return;
    case Why::other_module:
      finding.next_step =
          "Another module that was running has them too: the Stepper shows the decision and their status "
          "history.";
      return;
    case Why::one_of:
      finding.next_step =
          "Several reasons to keep them were recorded, and which of them belongs to this time is not known: "
          "the Stepper shows them, and their status history.";
      return;
    case Why::none:
      finding.next_step =
          "No reason for it was recorded: the Stepper shows their status history and the decision before.";
      return;
  }
}

/// The last typical step in which no rank was held at a gate, wrote a checkpoint, or lacks events: each of
/// these makes gathered parameters look held for long, also on ranks that wait for it.
const StepDigest* last_undisturbed(const Facts& facts) {
  const auto disturbed = [](const RankStep& rank) {
    return rank.time.total_ns != rank.end_ns - rank.begin_ns || rank.time.checkpoint_ns > 0 ||
           rank.recorded.events_missing;
  };
  for (std::size_t i = facts.typical.size(); i-- > 0;) {
    const StepDigest& step = facts.digest.steps()[facts.typical[i]];
    if (std::ranges::none_of(step.ranks, disturbed)) return &step;
  }
  return nullptr;
}

}  // namespace

/// [Note: held long after use]
/// Time counts from the end of a use to the next one, or to the release. Stretches below a tenth of a step
/// are omitted: a release waits for running work. It is a finding if they are a fifth of the device's peak in
/// the step. Persistent parameters stay by design; prefetched ones are not used yet.
void held_after_use(const Facts& facts, Found& found) {
  constexpr double kMuch = 0.2;
  if (facts.typical.empty() || facts.summary.stage != 3 || facts.summary.copy_ranks < 2) return;
  const auto largest = largest_device_peak(facts.summary);
  if (!largest) return;  // its share of the peak is unknown
  const StepDigest* const step = last_undisturbed(facts);
  if (step == nullptr) return;
  const auto rank = std::ranges::find(step->ranks, largest->rank->rank, &RankStep::rank);
  if (rank == step->ranks.end()) return;
  const store::MemorySample most =
      highest_memory(facts.store, rank->rank, ev::MemoryPool::device, rank->begin_ns, rank->end_ns);
  const std::int64_t peak = most.total(), at_ns = most.at_ns;
  const LongHeld held = long_held(facts, *rank, step->step);
  const Sum at_peak = held.at(at_ns, kWhys);
  if (peak <= 0 || static_cast<double>(at_peak.bytes) < kMuch * static_cast<double>(peak)) return;
  const Why why =
      *std::ranges::max_element(kWhys, {}, [&](Why one) { return held.at(at_ns, std::array{one}).bytes; });
  const HeldStretch& worst = *std::ranges::max_element(held.stretches, {}, [&](const HeldStretch& one) {
    const bool there = one.begin_ns <= at_ns && at_ns < one.end_ns;
    return std::tuple(there && why_of(one) == why,
                      static_cast<double>(one.bytes) * static_cast<double>(one.length_ns()));
  });
  const auto ms = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-6; };
  Finding finding;
  finding.severity = ev::Severity::info;
  finding.id = "held_after_use";
  finding.title = fmt::format("{:.0f} % of a step's peak are parameters that stay gathered long after a use",
                              100 * static_cast<double>(at_peak.bytes) / static_cast<double>(peak));
  finding.evidence = fmt::format(
      "{} of {} at the peak of step {} on rank {}: {} parameters that no module uses then. Held without a "
      "use "
      "over the step: {:.3g} MiB\u00b7ms, {} as a mean. The most: {}, {} for {:.1f} of {:.1f} ms after its "
      "{}.",
      bytes_text(at_peak.bytes), bytes_text(peak), step->step, rank->rank, at_peak.params,
      held.byte_ns * 1e-6 / (1 << 20), bytes_text(static_cast<std::int64_t>(held.mean_bytes())),
      facts.store.tables().params[worst.param].name, bytes_text(worst.bytes), ms(worst.length_ns()),
      ms(held.step_ns), worst.used_again ? "use, until the next one" : "last use in the step");
  finding.evidence += worst_of(held.modules_at(facts.store, at_ns), "Most bytes then", CostUnit::bytes);
  finding.rank = rank->rank;
  finding.at_ns = at_ns;
  finding.cost_bytes = at_peak.bytes;
  add_advice(facts, why, finding);
  found.add(std::move(finding));
}

}  // namespace shardscope::analysis::findings
