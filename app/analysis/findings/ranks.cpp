// Ranks that others wait for: a single stop, missing data, a rank that is slower than the others.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "app/analysis/block_interval.h"
#include "app/analysis/findings/findings.h"
#include "app/analysis/slow_rank.h"
#include "app/analysis/why_late.h"
#include "app/store/silences.h"

namespace shardscope::analysis::findings {
namespace {

using ev::Severity;

/// The figures of each part of WhyLate.
struct Class {
  double RankFacts::*of;
  std::int64_t TimePartition::*in_step;
  WhyLate::Part part;
};
constexpr std::array kClasses{Class{&RankFacts::compute, &TimePartition::compute_ns, WhyLate::Part::compute},
                              Class{&RankFacts::copy, &TimePartition::exposed_copy_ns, WhyLate::Part::copy},
                              Class{&RankFacts::idle, &TimePartition::idle_ns, WhyLate::Part::idle}};

std::optional<WhyLate> why_late_of(const Facts& facts, std::uint32_t rank) {
  std::vector<OwnParts> parts;
  for (const RankFacts& one : facts.ranks)
    parts.push_back({.rank = one.rank,
                     .compute = one.compute,
                     .copy = one.copy,
                     .idle = one.idle,
                     .data = one.data,
                     .processor = one.processor,
                     .retries = one.retries,
                     .gpu = one.gpu,
                     .groups = one.groups});
  const auto own = std::ranges::find(facts.ranks, rank, &RankFacts::rank);
  if (own == facts.ranks.end()) return std::nullopt;
  return why_late(parts, rank, waiters_of(own->waiters));
}

/// Median of the other ranks: among few ranks a slow one would distort it.
double others_median(const Facts& facts, std::uint32_t rank, double RankFacts::*of) {
  std::vector<double> all;
  double own = 0;
  for (const RankFacts& one : facts.ranks) {
    all.push_back(one.*of);
    if (one.rank == rank) own = one.*of;
  }
  return OthersMedian(std::move(all)).without(own).value_or(0);
}

std::string host_of(const Facts& facts, std::uint32_t rank) {
  for (const store::RankRow& row : facts.store.ranks()) {
    if (row.rank == rank && !row.host.empty()) return fmt::format(" (host {})", row.host);
  }
  return {};
}

/// Positions in a rank's micro-batches relative to the median of the others; 1 if they were not recorded.
double positions_ratio(const Facts& facts, std::uint32_t rank) {
  std::vector<double> all;
  double own = 0;
  for (const RankSummary& one : facts.summary.ranks) {
    if (!one.micro_batches) return 1;
    all.push_back(static_cast<double>(one.micro_batches->positions()) /
                  static_cast<double>(one.micro_batches->count));
    if (one.rank == rank) own = all.back();
  }
  const double usual = OthersMedian(std::move(all)).without(own).value_or(0);
  return usual > 0 ? own / usual : 1;
}

/// What `why` measures, of a rank in one step, in nanoseconds.
std::int64_t part_of(const Facts& facts, const RankStep& step, std::uint32_t late, const WhyLate& why) {
  if (why.part != WhyLate::Part::group)
    return step.time.*(std::ranges::find(kClasses, why.part, &Class::part)->in_step);
  std::int64_t longest = 0;
  for (const GroupExposure& group : step.groups) {
    const auto& members = facts.digest.members_of(group.group);
    const bool counts =
        step.rank == late ? group.group == why.group.group : !std::ranges::binary_search(members, late);
    if (counts) longest = std::max(longest, group.waiting_ns + group.moving_ns);
  }
  return longest;
}

/// Excess of the rank over the median of the others that it is compared with, in milliseconds of each typical
/// step.
std::vector<double> excess_by_step(const Facts& facts, const RankFacts& late, const WhyLate& why) {
  const std::vector<std::uint32_t> waiters = waiters_of(late.waiters);
  std::vector<double> out;
  for (const std::size_t index : facts.typical) {
    std::optional<double> own;
    std::vector<double> all;
    for (const RankStep& one : facts.digest.steps()[index].ranks) {
      if (!one.time.known()) continue;
      if (one.rank != late.rank && !waiters.empty() && std::ranges::find(waiters, one.rank) == waiters.end())
        continue;
      all.push_back(static_cast<double>(part_of(facts, one, late.rank, why)) * 1e-6);
      if (one.rank == late.rank) own = all.back();
    }
    if (!own) continue;
    if (const auto usual = OthersMedian(std::move(all)).without(*own)) out.push_back(*own - *usual);
  }
  return out;
}

/// The rank that delayed a long step, and how.
struct RankDelay {
  std::uint32_t rank = 0;
  double excess_ms = 0;
  const char* doing = "";
  Interval at;
};
/// Overlap of a silence with a step: it may begin before the step and last beyond it.
std::int64_t silent_ns(const store::Silence& silence, const Interval& step) {
  return std::max<std::int64_t>(0,
                                std::min(silence.end_ns, step.end) - std::max(silence.begin_ns, step.begin));
}

/// A silence that explains more than half of the delay: the rank did not compute in it.
std::optional<store::Silence> silence_in(const store::Store& store, const RankDelay& delay) {
  for (const store::Silence& one : store::silences(store)) {
    const double ms = static_cast<double>(silent_ns(one, delay.at)) * 1e-6;
    if (one.rank == delay.rank && ms > delay.excess_ms / 2) return one;
  }
  return std::nullopt;
}

std::optional<RankDelay> delay_of(const Facts& facts, const StepDigest& step) {
  std::optional<RankDelay> out;
  for (const RankStep& rank : step.ranks) {
    const auto usual = std::ranges::find(facts.ranks, rank.rank, &RankFacts::rank);
    if (usual == facts.ranks.end() || !rank.time.known()) continue;
    const double data = static_cast<double>(rank.data_wait_ns.value_or(0)) * 1e-6 - usual->data;
    for (const Class& one : kClasses) {
      const double excess = static_cast<double>(rank.time.*one.in_step) * 1e-6 - (*usual).*one.of;
      if (out && excess <= out->excess_ms) continue;
      out = {rank.rank,
             excess,
             verb_of({.part = one.part, .for_data = data > excess / 2}),
             {rank.begin_ns, rank.end_ns}};
    }
  }
  return out;
}

}  // namespace

void single_stops(const Facts& facts, Found& found) {
  constexpr std::size_t kShown = 3;
  std::size_t shown = 0;
  for (const LongStep& one : facts.long_steps) {
    if (++shown > kShown) break;
    const StepDigest& step = facts.digest.steps()[one.index];
    const auto delay = delay_of(facts, step);
    const bool by_rank = delay && delay->excess_ms > one.excess_ms / 2;
    Finding finding;
    finding.id = "single_stop";
    finding.severity = Severity::warning;
    finding.title = by_rank ? fmt::format("Rank {} stalled once: step {} took {:.1f} s longer", delay->rank,
                                          step.step, one.excess_ms * 1e-3)
                            : fmt::format("Step {} took {:.1f} s longer than the others", step.step,
                                          one.excess_ms * 1e-3);
    finding.evidence =
        fmt::format("{:.0f} ms instead of {:.0f} ms.", one.excess_ms + facts.step_ms, facts.step_ms);
    if (by_rank) {
      const std::string whose = fmt::format(" Rank {}{}", delay->rank, host_of(facts, delay->rank));
      if (const auto silence = silence_in(facts.store, *delay)) {
        finding.evidence += fmt::format("{} sent nothing for {:.1f} s of it{}", whose,
                                        static_cast<double>(silent_ns(*silence, delay->at)) * 1e-9,
                                        silence->process_frozen ? ": none of its threads ran" : "");
      } else {
        finding.evidence += fmt::format("{} {} {:.0f} ms longer than in its other steps", whose, delay->doing,
                                        delay->excess_ms);
      }
      finding.evidence += facts.ranks.size() > 1 ? "; the others waited for it." : ".";
      finding.rank = delay->rank;
      finding.at_ns = delay->at.begin;
      finding.until_ns = delay->at.end;
    } else if (!step.ranks.empty()) {
      finding.at_ns = step.ranks.front().begin_ns;
      finding.until_ns = step.ranks.front().end_ns;
    }
    finding.evidence += " No cost of another finding includes it.";
    finding.next_step =
        "A single event, not typical of the run: look on the host for what stopped the process then (a "
        "signal, "
        "swapping, a "
        "file system, garbage collection).";
    finding.cost_once_ms = one.excess_ms;
    found.add(std::move(finding));
  }
}

void data_starvation(const Facts& facts, Found& found) {
  if (facts.ranks.empty()) return;
  const RankFacts& worst = *std::ranges::max_element(facts.ranks, {}, &RankFacts::data);
  const double others = others_median(facts, worst.rank, &RankFacts::data);
  const bool alone = facts.ranks.size() > 1 && worst.data > 2 * others;
  Finding finding;
  finding.id = "data_starvation";
  finding.title =
      alone ? fmt::format("Rank {} waits for its data", worst.rank)
            : fmt::format("The ranks wait for data for {:.0f} % of a step", 100 * facts.share(worst.data));
  finding.evidence = fmt::format("Computation had no micro-batch for {}{}.", of_step(facts, worst.data),
                                 alone ? fmt::format("; on the other ranks for {:.1f} ms", others) : "");
  finding.next_step =
      facts.own_runtime()
          ? "Put the data on a faster disk, or read it ahead into memory; no setting of ZeRO changes this."
          : "Load ahead: more workers (num_workers), prefetch_factor, pinned memory in the data loader; no "
            "setting of "
            "the partitioning changes this.";
  if (const std::optional<double> gain = gain_without(facts, PathPart::data)) {
    finding.gain_ms = std::min(*gain, worst.data);
    finding.gain_basis =
        "if no rank waited for data: the critical path without these waits, up to what bounds it next";
  }
  finding.rank = worst.rank;
  found.add_by_cost(facts, worst.data, std::move(finding));
}

namespace {

/// A rank that others wait for, and why it is late.
struct Straggler {
  const RankFacts* late = nullptr;
  WhyLate why;
  std::size_t steps = 0;                     ///< in which it was compared
  std::optional<ConfidenceInterval> longer;  ///< per step, in milliseconds

  static constexpr std::size_t kFewest = 4;
  [[nodiscard]] bool few() const { return steps < kFewest; }
};

/// [Note: a straggler in few steps]
/// Some rank is always the slowest. A rank is reported only if its excess over the others is significant: the
/// interval of its mean over steps is above 0, at 95 % shared among the ranks from which it was selected;
/// with fewer than kFewest steps as a note at most.
std::optional<Straggler> straggler(const Facts& facts, const RankFacts& late) {
  constexpr double kLasting = 0.6;
  std::optional<WhyLate> why = why_late_of(facts, late.rank);
  if (!why || why->excess_ms() < late.others_waited / 2)
    return std::nullopt;  // ranks take turns in being last
  if (why->part == WhyLate::Part::compute &&
      (!is_slow(late.compute, why->usual_ms) || late.lasting < kLasting))
    return std::nullopt;
  const std::vector<double> series = excess_by_step(facts, late, *why);
  Straggler out{.late = &late,
                .why = std::move(*why),
                .steps = series.size(),
                .longer = mean_interval(series, 1 - 0.05 / static_cast<double>(facts.ranks.size()))};
  const bool significant = out.longer ? out.longer->low > 0 : facts.share(late.others_waited) >= kWarning;
  return significant ? std::optional(std::move(out)) : std::nullopt;
}

/// All of them, the one that others wait for longest first. The first may only be late by chance, and several
/// may be.
std::vector<Straggler> all_stragglers(const Facts& facts) {
  constexpr std::size_t kMost = 16;
  std::vector<const RankFacts*> late;
  for (const RankFacts& one : facts.ranks) {
    if (facts.share(one.others_waited) >= kNote) late.push_back(&one);
  }
  std::ranges::stable_sort(late, std::greater{}, &RankFacts::others_waited);
  std::vector<Straggler> out;
  for (std::size_t i = 0; i < late.size() && i < kMost; ++i) {
    if (std::optional<Straggler> one = straggler(facts, *late[i])) out.push_back(std::move(*one));
  }
  return out;
}

}  // namespace

void stragglers(const Facts& facts, Found& found) {
  constexpr double kMorePositionsPct = 5;
  if (facts.ranks.size() < 2) return;
  const std::vector<Straggler> all = all_stragglers(facts);
  if (all.empty()) return;
  const RankFacts& late = *all.front().late;
  const WhyLate* const why = &all.front().why;
  const auto& interval = all.front().longer;
  const double waited = late.others_waited, usual = why->usual_ms;
  const bool few = all.front().few(), computes = why->part == WhyLate::Part::compute;
  if (found.has("data_starvation") && why->for_data) {
    found.follows("data_starvation",
                  fmt::format("Other ranks wait {:.1f} ms of a step for rank {}", waited, late.rank));
    return;
  }
  // Delayed by a slow link: the rank itself has no more work than others.
  if (!computes && !why->for_data && found.has("slow_link") &&
      std::ranges::find(found.slow_link_ranks, late.rank) != found.slow_link_ranks.end()) {
    found.follows("slow_link",
                  fmt::format("Other ranks wait {:.1f} ms of a step for rank {}", waited, late.rank));
    return;
  }
  Finding finding;
  finding.id = "straggler";
  finding.title = fmt::format("Rank {} is a straggler", late.rank);
  const std::string host = host_of(facts, late.rank);
  std::string does = text_of({.part = why->part,
                              .for_data = why->for_data,
                              .own_ms = why->own_ms,
                              .usual_ms = why->usual_ms,
                              .data_ms = why->data_ms,
                              .group = why->group});
  does[0] = 'I';
  finding.evidence =
      computes && !why->for_data
          ? fmt::format(
                "It computes {:.0f} % longer than the median of the others{}: {:.1f} instead of {:.1f} ms "
                "of a step, in {:.0f} % of the steps.",
                100 * (late.compute / usual - 1), host, late.compute, usual, 100 * late.lasting)
          : fmt::format("{}{}.", does, host);
  finding.evidence += fmt::format(" Each of the others waits {:.1f} ms of a step for it.", waited);
  if (interval && !few) {
    finding.evidence += fmt::format(" By steps it takes {:.1f} to {:.1f} ms longer than they do (95 %).",
                                    interval->low, interval->high);
  } else if (few) {
    finding.evidence += fmt::format(" Seen in {} step{}: too few to tell it from chance.", all.front().steps,
                                    all.front().steps == 1 ? "" : "s");
  }
  constexpr std::size_t kShown = 4;
  for (std::size_t i = 1; i < all.size() && i <= kShown; ++i) {
    finding.evidence += fmt::format(" So is rank {}: each of the others waits {:.1f} ms of a step for it.",
                                    all[i].late->rank, all[i].late->others_waited);
  }
  if (all.size() > kShown + 1)
    finding.evidence += fmt::format(" At least {} more are.", all.size() - kShown - 1);
  const double longer = computes ? 100 * (positions_ratio(facts, late.rank) - 1) : 0;
  if (longer >= kMorePositionsPct) {
    finding.evidence +=
        fmt::format(" Its micro-batches have {:.0f} % more positions, padding included.", longer);
  }
  finding.evidence += causes_of(*why);
  // The others' threads waited as well, by chance somewhat less: it may be that, or its own work.
  const bool contended = !why->for_processor && !why->for_data && !why->for_clock && why->retries == 0 &&
                         longer < kMorePositionsPct && late.processor > why->excess_ms();
  if (contended) {
    finding.evidence += fmt::format(
        " Threads of all ranks waited for a processor, its own for {:.1f} ms of a step (summed over them): "
        "this may be why it takes longer.",
        late.processor);
  }
  finding.next_step =
      why->for_processor || contended
          ? "Look on its host for what runs on the rank's cores (top, ps -eLo psr,pcpu,comm), and give ranks "
            "cores of their own: taskset, mpirun --bind-to, cpusets."
      : why->for_clock ? "Look at its GPU (nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE): a power limit, "
                         "cooling, or application "
                         "clocks below those of the other GPUs."
      : why->retries > 0
          ? "Set PYTORCH_ALLOC_CONF=expandable_segments:True in its environment; if retries go "
            "on, its peak "
            "is too high: finding fragmentation."
      : longer >= kMorePositionsPct
          ? "Give ranks micro-batches of like lengths: sort or bucket samples by length, or pack them."
      : why->part == WhyLate::Part::group
          ? "Look at that group in the Timeline: at the rank that enters its collectives last, or at the "
            "link "
            "between its ranks (finding slow_link, and the links in `summary`)."
      : computes
          ? "Compare its module times with another rank's: uneven data, a throttled or shared processor."
          : "Look at what its host does meanwhile: other processes, its loader, its link to the device.";
  finding.rank = late.rank;
  found.add_by_cost(facts, waited, std::move(finding), few || contended ? Severity::info : Severity::warning);
}

}  // namespace shardscope::analysis::findings
