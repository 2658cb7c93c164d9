#include "app/analysis/why_late.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "app/analysis/digest.h"
#include "app/analysis/hang/module_order.h"
#include "app/analysis/rank_step.h"
#include "app/analysis/slow_rank.h"
#include "app/analysis/summary.h"

namespace shardscope::analysis {
namespace {

struct Class {
  WhyLate::Part part;
  double OwnParts::*of;
};
constexpr std::array kClasses{Class{WhyLate::Part::compute, &OwnParts::compute},
                              Class{WhyLate::Part::copy, &OwnParts::copy},
                              Class{WhyLate::Part::idle, &OwnParts::idle}};

std::string times_text(std::uint64_t count) { return fmt::format("{} time{}", count, count == 1 ? "" : "s"); }

const char* limit_text(const WhyLate& why) {
  if (why.too_hot) return ": it was too hot";
  return why.power_limited ? ": it was at its power limit" : "";
}

/// Computation whose speed follows the GPU's clock.
void explain_by_clock(const std::vector<OwnParts>& ranks, const OwnParts& own, WhyLate& why) {
  const std::optional<double> mhz = own.gpu.sm_mhz();
  if (!mhz || why.part != WhyLate::Part::compute || why.for_data) return;
  std::vector<double> all;
  for (const OwnParts& other : ranks)
    if (const std::optional<double> of = other.gpu.sm_mhz()) all.push_back(*of);
  const std::optional<double> usual = OthersMedian(std::move(all)).without(*mhz);
  if (!usual || *usual <= *mhz) return;
  why.mhz = *mhz;
  why.usual_mhz = *usual;
  why.for_clock = why.own_ms * (1 - *mhz / *usual) > why.excess_ms() / 2;
  why.power_limited = 2 * own.gpu.power_limited() > own.gpu.samples();
  why.too_hot = 2 * own.gpu.too_hot() > own.gpu.samples();
}

bool has(const OwnGroup& group, std::uint32_t rank) { return std::ranges::binary_search(group.ranks, rank); }

/// The longest of its groups that satisfies `other`; null: none.
template <typename Other>
const OwnGroup* longest_group(const OwnParts& of, const Other& other) {
  const OwnGroup* longest = nullptr;
  for (const OwnGroup& group : of.groups)
    if (other(group) && (longest == nullptr || group.total() > longest->total())) longest = &group;
  return longest;
}

/// [Note: late from another group]
/// A rank enters a collective last because an earlier one of another of its groups took longer. Other groups
/// of the rank lack one of the ranks that waited for it; those of a rank that waited lack the late rank.
void explain_by_group(const std::vector<OwnParts>& ranks, const OwnParts& own, std::optional<WhyLate>& out) {
  const OwnGroup* const longest = longest_group(own, [&](const OwnGroup& group) {
    return std::ranges::any_of(ranks, [&](const OwnParts& other) { return !has(group, other.rank); });
  });
  if (longest == nullptr) return;
  std::vector<double> others;
  for (const OwnParts& other : ranks) {
    if (other.rank == own.rank) continue;
    const OwnGroup* const theirs =
        longest_group(other, [&](const OwnGroup& group) { return !has(group, own.rank); });
    others.push_back(theirs == nullptr ? 0 : theirs->total());
  }
  others.push_back(longest->total());
  const auto usual = OthersMedian(std::move(others)).without(longest->total());
  if (!usual) return;
  const double excess = longest->total() - *usual;
  if (excess <= 0 || (out && excess <= out->excess_ms())) return;
  out = {.part = WhyLate::Part::group,
         .own_ms = longest->total(),
         .usual_ms = *usual,
         .data_ms = own.data,
         .group = *longest};
}

std::string group_text(const WhyLate& why) {
  const OwnGroup& group = why.group;
  std::string out = fmt::format(
      "it was in collectives of the group of {} for {:.1f} ms of a step, the others in theirs for {:.1f} ms",
      ranks_text(group.ranks), why.own_ms, why.usual_ms);
  if (2 * group.waiting < group.total()) {
    out += fmt::format("; bytes moved for {:.1f} ms of it", group.moving);
  } else if (2 * group.late_ms > group.waiting) {
    out += fmt::format("; it waited there for rank {} for {:.1f} ms", group.late, group.late_ms);
  } else {
    out += fmt::format("; it waited there for other ranks for {:.1f} ms", group.waiting);
  }
  return out;
}

}  // namespace

const char* verb_of(const WhyLate& why) noexcept {
  if (why.for_data) return "waited for data";
  switch (why.part) {
    case WhyLate::Part::compute:
      return "computed";
    case WhyLate::Part::copy:
      return "copied";
    case WhyLate::Part::idle:
      return "did nothing";
    case WhyLate::Part::group:
      return "was in collectives of another group";
  }
  return "?";
}

std::string text_of(const WhyLate& why) {
  std::string out = why.part == WhyLate::Part::group ? group_text(why)
                    : why.for_data ? fmt::format("it waited {:.1f} ms of a step for its data", why.data_ms)
                                   : fmt::format("it {} {:.1f} ms of a step, the others {:.1f} ms",
                                                 verb_of(why), why.own_ms, why.usual_ms);
  if (why.for_processor)
    out +=
        fmt::format("; its threads waited for a processor for {:.1f} ms, those of the others for {:.1f} ms",
                    why.processor_ms, why.usual_processor_ms);
  if (why.for_clock)
    out += fmt::format("; its GPU ran at {:.0f} MHz, those of the others at {:.0f} MHz{}", why.mhz,
                       why.usual_mhz, limit_text(why));
  if (why.retries > 0)
    out += fmt::format("; its memory allocator freed its cache {}", times_text(why.retries));
  return out;
}

std::string causes_of(const WhyLate& why) {
  std::string out;
  if (why.for_processor)
    out += fmt::format(
        " Its threads waited for a processor for {:.1f} ms of a step (summed over them), those of the others "
        "for {:.1f} ms: something else runs on its cores.",
        why.processor_ms, why.usual_processor_ms);
  if (why.for_clock)
    out += fmt::format(" Its GPU ran at {:.0f} MHz, those of the others at {:.0f} MHz{}.", why.mhz,
                       why.usual_mhz, limit_text(why));
  if (why.retries > 0)
    out += fmt::format(
        " Meanwhile its memory allocator had to free its cache {}, and waits for the device each time.",
        times_text(why.retries));
  return out;
}

std::optional<WhyLate> why_late(const std::vector<OwnParts>& all_ranks, std::uint32_t rank,
                                const std::vector<std::uint32_t>& waiters) {
  // A rank that did not wait for it, in another group, may differ for reasons of its own.
  std::vector<OwnParts> ranks;
  for (const OwnParts& one : all_ranks)
    if (one.rank == rank || waiters.empty() || std::ranges::find(waiters, one.rank) != waiters.end())
      ranks.push_back(one);
  const auto own = std::ranges::find(ranks, rank, &OwnParts::rank);
  if (own == ranks.end()) return std::nullopt;
  std::optional<WhyLate> out;
  for (const Class& one : kClasses) {
    std::vector<double> all;
    for (const OwnParts& other : ranks) all.push_back(other.*one.of);
    const auto usual = OthersMedian(std::move(all)).without((*own).*one.of);
    if (!usual) return std::nullopt;
    const double excess = (*own).*one.of - *usual;
    if (excess <= 0 || (out && excess <= out->excess_ms())) continue;
    out = {.part = one.part, .own_ms = (*own).*one.of, .usual_ms = *usual, .data_ms = own->data};
  }
  explain_by_group(ranks, *own, out);
  if (!out) return out;
  out->retries = own->retries;
  if (out->part == WhyLate::Part::group) return out;
  std::vector<double> data;
  for (const OwnParts& other : ranks) data.push_back(other.data);
  out->for_data = own->data - *OthersMedian(std::move(data)).without(own->data) > out->excess_ms() / 2;
  std::vector<double> processor;
  for (const OwnParts& other : ranks) processor.push_back(other.processor);
  out->processor_ms = own->processor;
  out->usual_processor_ms = *OthersMedian(std::move(processor)).without(own->processor);
  // A third, not half: ranks that poll while they wait for this one wait for a processor, too.
  out->for_processor = out->processor_ms - out->usual_processor_ms > out->excess_ms() / 3;
  explain_by_clock(ranks, *own, *out);
  return out;
}

std::optional<WhyLate> why_late(const Summary& summary, std::uint32_t rank) {
  std::vector<OwnParts> parts;
  double waited_ms = 0;  // per step, of each other rank for this one
  for (const RankSummary& one : summary.ranks) {
    if (one.time_steps == 0) continue;
    const auto of_step = [&](std::int64_t ns) { return static_cast<double>(ns) * 1e-6 / one.time_steps; };
    parts.push_back(
        {.rank = one.rank,
         .compute = of_step(one.time.compute_ns),
         .copy = of_step(one.time.exposed_copy_ns),
         .idle = of_step(one.time.idle_ns),
         .data = of_step(one.data_wait_ns.value_or(0)),
         .processor = one.processor_waits ? one.processor_waits->waited_of(of_step(one.time.total_ns)) : 0,
         .retries = one.allocator_retries.value_or(0),
         .gpu = one.gpu_state,
         .groups = own_groups(one.groups, one.time_steps)});
    if (one.rank == rank)
      waited_ms = of_step(one.others_waited_ns) /
                  static_cast<double>(std::max<std::size_t>(summary.ranks.size() - 1, 1));
  }
  std::vector<std::pair<std::uint32_t, double>> waits;
  for (const WaitedPair& pair : summary.waited_pairs)
    if (pair.late == rank) waits.emplace_back(pair.waiter, static_cast<double>(pair.ns));
  auto why = why_late(parts, rank, waiters_of(waits));
  if (why && why->excess_ms() < waited_ms / 2) why.reset();
  return why;
}

std::vector<std::uint32_t> waiters_of(const std::vector<std::pair<std::uint32_t, double>>& waits) {
  constexpr double kLeastShare = 0.1;
  double longest = 0;
  for (const auto& [waiter, time] : waits) longest = std::max(longest, time);
  std::vector<std::uint32_t> out;
  for (const auto& [waiter, time] : waits)
    if (time > 0 && time >= kLeastShare * longest) out.push_back(waiter);
  return out;
}

std::vector<OwnGroup> own_groups(const std::vector<GroupTime>& groups, double steps) {
  std::vector<OwnGroup> out;
  const auto of_step = [&](std::int64_t ns) { return static_cast<double>(ns) * 1e-6 / steps; };
  for (const GroupTime& one : groups)
    out.push_back({one.group, one.ranks, of_step(one.waiting_ns), of_step(one.moving_ns), one.late,
                   of_step(one.late_ns)});
  return out;
}

void GroupTimes::add(const RankStep& step) {
  for (const GroupExposure& one : step.groups) {
    Sums& sums = groups_[one.group];
    sums.waiting_ns += one.waiting_ns;
    sums.moving_ns += one.moving_ns;
    if (one.late_ns > 0) sums.late[one.late] += one.late_ns;
  }
}

std::vector<GroupTime> GroupTimes::all(const Digest& digest) const {
  std::vector<GroupTime> out;
  for (const auto& [group, sums] : groups_) {
    GroupTime& row = out.emplace_back();
    row.group = group;
    row.ranks = digest.members_of(group);
    row.waiting_ns = sums.waiting_ns;
    row.moving_ns = sums.moving_ns;
    for (const auto& [rank, ns] : sums.late)
      if (ns > row.late_ns) row.late = rank, row.late_ns = ns;
  }
  std::ranges::sort(out, {}, &GroupTime::ranks);
  return out;
}

void RetryCount::add(const RankStep& step, bool counts) {
  if (!step.allocator_retries) return;
  if (counts) {
    const std::uint32_t now = *step.allocator_retries;
    // The first value is only a base, since earlier retries are unknown; a new process starts again from 0.
    count_ = count_.value_or(0) + (before_ ? now - std::min(*before_, now) : 0);
  }
  before_ = step.allocator_retries;
}

}  // namespace shardscope::analysis
