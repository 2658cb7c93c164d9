// A link that is slow compared with others: between two ranks, or within a group.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "app/analysis/block_interval.h"
#include "app/analysis/communication.h"
#include "app/analysis/findings/findings.h"
#include "app/analysis/framework.h"
#include "app/analysis/group_transfers.h"
#include "app/analysis/hang/module_order.h"
#include "app/analysis/intervals.h"
#include "app/analysis/rank_activity.h"
#include "app/analysis/slow_rank.h"

namespace shardscope::analysis::findings {
namespace {

using Ranks = GroupRanks;

constexpr std::size_t kFewestSteps = 4;  ///< of a group that was compared with others

/// Host by rank.
using Hosts = std::map<std::uint32_t, std::string_view>;

Hosts hosts_of(const store::Store& store) {
  Hosts out;
  for (const store::RankRow& row : store.ranks()) out[row.rank] = row.host;
  return out;
}

/// A group on more hosts is slower by design. Ranks without a recorded host count as one host.
std::size_t count_hosts(const Hosts& hosts, const Ranks& ranks) {
  std::set<std::string_view> on;
  for (const std::uint32_t rank : ranks) {
    const auto host = hosts.find(rank);
    on.insert(host == hosts.end() ? std::string_view() : host->second);
  }
  return on.size();
}

/// The purpose of a group: described by the rank, or the scope of our runtime.
using Purpose = std::pair<ev::GroupPurpose, ev::CollectiveScope>;
/// Collectives that take equally long on equal links: purpose of the group, number of ranks and hosts,
/// operation, bytes.
using Alike = std::tuple<Purpose, std::size_t, std::size_t, ev::CollectiveOp, std::int64_t>;

/// Transfers of one group in one step.
struct Moved {
  double ns = 0, bus_bytes = 0;
  std::uint64_t count = 0;
  [[nodiscard]] double mean_ns() const { return ns / static_cast<double>(count); }
};
using Step = std::map<Alike, std::map<Ranks, Moved>>;

/// Transfers of the step that are alike.
Step transfers_of(const store::Store& store, const Hosts& hosts, const StepDigest& step) {
  Step out;
  for (const GroupTransfer& one : group_transfers(store, step)) {
    if (one.everyone) continue;
    const Alike alike{
        {one.purpose, one.scope}, one.ranks.size(), count_hosts(hosts, one.ranks), one.op, one.bytes};
    Moved& moved = out[alike][one.ranks];
    moved.ns += static_cast<double>(one.transfer_ns);
    moved.bus_bytes += one.bus_bytes;
    ++moved.count;
  }
  return out;
}

/// Excess of a group over the median of the groups with the same transfers, over steps.
struct Slow {
  std::vector<double> excess_ms;  ///< of each step
  double ns = 0, usual_ns = 0, bus_bytes = 0;
  std::size_t others = 0;  ///< groups it was compared with: the largest number over its collectives
  /// Its collectives that were compared: how much longer they took in all, and how many there were.
  struct Excess {
    double ns = 0;
    std::uint64_t count = 0;
  };
  std::map<std::pair<ev::CollectiveOp, std::int64_t>, Excess> compared;
  /// How much longer a collective takes than in other groups, as a mean over all that were compared.
  [[nodiscard]] double mean_excess_ns() const {
    std::uint64_t count = 0;
    for (const auto& [what, one] : compared) count += one.count;
    return count > 0 ? (ns - usual_ns) / static_cast<double>(count) : 0;
  }
  /// The same of one kind of collective; 0: not compared.
  [[nodiscard]] std::int64_t excess_of(ev::CollectiveOp op, std::int64_t bytes) const {
    const auto found = compared.find({op, bytes});
    return found == compared.end()
               ? 0
               : std::llround(std::max(0.0, found->second.ns / static_cast<double>(found->second.count)));
  }
};

/// By how much two clocks may be wrong against each other. A transfer is counted from the entry of its last
/// rank, on that rank's clock, to an end on another: an offset shortens a group's transfers by as much in
/// every step, so that the groups compared with it seem slow.
double clock_error_ns(const Facts& facts) {
  std::int64_t largest = 0, second = 0;
  for (const RankSummary& rank : facts.summary.ranks) {
    second = std::max(second, std::min(largest, rank.clock_residual_ns));
    largest = std::max(largest, rank.clock_residual_ns);
  }
  return static_cast<double>(largest + second);
}

void add_step(const Step& step, std::map<Ranks, Slow>& groups) {
  std::map<Ranks, double> excess;
  for (const auto& [alike, moved] : step) {
    if (moved.size() < 2) continue;
    std::vector<double> all;
    for (const auto& [ranks, one] : moved) all.push_back(one.mean_ns());
    const OthersMedian medians(std::move(all));
    for (const auto& [ranks, one] : moved) {
      const auto usual = medians.without(one.mean_ns());
      if (!usual) continue;
      Slow& group = groups[ranks];
      const double expected = *usual * static_cast<double>(one.count);
      excess[ranks] += (one.ns - expected) * 1e-6;
      group.ns += one.ns;
      group.usual_ns += expected;
      group.bus_bytes += one.bus_bytes;
      group.others = std::max(group.others, moved.size() - 1);
      Slow::Excess& of = group.compared[{std::get<ev::CollectiveOp>(alike), std::get<std::int64_t>(alike)}];
      of.ns += one.ns - expected;
      of.count += one.count;
    }
  }
  for (const auto& [ranks, ms] : excess) groups[ranks].excess_ms.push_back(ms);
}

/// A group that is slow, significantly.
struct SlowGroup {
  const Ranks* ranks;
  const Slow* slow;
  ConfidenceInterval excess;  ///< per step
  [[nodiscard]] bool has(std::uint32_t rank) const { return std::ranges::binary_search(*ranks, rank); }
};

/// Milliseconds per step that a rank would gain if its slow groups were as fast as the others.
struct Relief {
  std::uint32_t rank = 0;
  double ms = 0;
};

/// [Note: exposed excess]
/// With a link like the others a transfer would end earlier by its excess. What is gained is the part of that
/// end in which the rank computes nothing: the rest of its exposed time would remain. nullopt if its
/// computation was not recorded.
std::optional<std::int64_t> exposed_excess(const store::Store& store, const RankStep& step,
                                           std::span<const SlowGroup> groups) {
  const RankActivity activity = activity_of(store, step.rank, step.begin_ns, step.end_ns);
  if (!activity.known) return std::nullopt;
  std::vector<Interval> ends;
  for_each_collective(
      store, step.rank, step.begin_ns, step.end_ns, [&](ev::StreamId, const store::Span& span) {
        const auto group = parted_group(store, step.rank, span);
        if (!group) return;
        const auto fields = ev::as<ev::EventKind::collective_begin>(span);
        const Ranks ranks = group->list();
        for (const SlowGroup& one : groups) {
          const std::int64_t excess = *one.ranks == ranks ? one.slow->excess_of(fields.op, fields.bytes) : 0;
          if (excess > 0) ends.push_back({std::max(moves_from(span), span.end_ns - excess), span.end_ns});
        }
      });
  return IntervalSet(std::move(ends)).intersect(activity.comm).subtract(activity.compute).length();
}

/// What each rank of these groups would gain: the exposed part of the excess, as a mean over the steps in
/// which its computation was recorded.
std::vector<Relief> reliefs(const Facts& facts, const std::vector<const StepDigest*>& steps,
                            std::span<const SlowGroup> groups) {
  std::vector<Relief> out;
  // Host spans show when a transfer was queued: only the rank's wait for all transfers together is known.
  const bool by_host = has_times_of_host(facts.store.tables());
  for (const RankFacts& one : facts.ranks) {
    double excess = 0;
    for (const SlowGroup& group : groups) excess += group.has(one.rank) ? group.excess.middle : 0;
    if (excess <= 0) continue;
    double ns = 0;
    std::size_t count = 0;
    for (const StepDigest* const step : steps) {
      if (by_host) break;
      const auto own = std::ranges::find(step->ranks, one.rank, &RankStep::rank);
      if (own == step->ranks.end() || own->recorded.events_missing) continue;
      const auto exposed = exposed_excess(facts.store, *own, groups);
      if (!exposed) continue;
      ns += static_cast<double>(*exposed);
      ++count;
    }
    if (!by_host && count == 0) continue;
    const double exposed_ms = by_host ? one.moving : ns * 1e-6 / static_cast<double>(count);
    out.push_back({one.rank, std::min(excess, exposed_ms)});
  }
  return out;
}

std::optional<Relief> largest(const std::vector<Relief>& reliefs) {
  if (reliefs.empty()) return std::nullopt;
  return *std::ranges::max_element(reliefs, {}, &Relief::ms);
}

/// [Note: what a slow link causes]
/// Exposed communication that would be gone with a link like the others, as a mean over ranks: what the ranks
/// of slow groups would gain, and what others waited for one that came late by at most the excess of its slow
/// groups.
SlowLinkPart caused_by(const Facts& facts, const std::vector<const StepDigest*>& steps,
                       std::span<const SlowGroup> groups) {
  SlowLinkPart out;
  // The exposure is that of all transfers of a rank then: the share of these groups is not known.
  if (has_times_of_host(facts.store.tables()) || facts.ranks.empty() || steps.empty()) return out;
  const auto ranks = static_cast<double>(facts.ranks.size());
  for (const Relief& one : reliefs(facts, steps, groups)) out.moving += one.ms / ranks;
  for (const StepDigest* const step : steps) {
    for (const WaitedFor& pair : step->pairs) {
      double excess = 0;
      for (const SlowGroup& group : groups) excess += group.has(pair.late) ? group.excess.middle : 0;
      out.waiting +=
          std::min(static_cast<double>(pair.ns) * 1e-6, excess) / ranks / static_cast<double>(steps.size());
    }
  }
  for (const SlowGroup& group : groups)
    out.link += group.excess.middle * static_cast<double>(group.ranks->size()) / ranks;
  return out;
}

/// Ranks that all of these groups have.
Ranks common_to(std::span<const SlowGroup> groups) {
  Ranks common = *groups.front().ranks;
  for (const SlowGroup& group : groups)
    std::erase_if(common, [&](std::uint32_t rank) { return !group.has(rank); });
  return common;
}

std::string link_text(const Ranks& ranks) {
  if (ranks.size() == 1) return fmt::format("of rank {}", ranks[0]);
  if (ranks.size() == 2) return fmt::format("between rank {} and rank {}", ranks[0], ranks[1]);
  return "of the group of " + ranks_text(ranks);
}

std::string rates_text(const Slow& slow) {
  return fmt::format("{:.3g} GB/s (busbw), others that move the same {:.3g} GB/s (median of {} {})",
                     slow.bus_bytes / slow.ns, slow.bus_bytes / slow.usual_ns, slow.others,
                     slow.others == 1 ? "group" : "groups");
}

std::string excess_text(const SlowGroup& one, std::size_t groups) {
  return fmt::format(
      "By steps it takes {:.1f} to {:.1f} ms longer (95 % for all {} groups together), {:.1f} ms as a mean, "
      "counted from when the last rank had entered",
      one.excess.low, one.excess.high, groups, one.excess.middle);
}

}  // namespace

/// [Note: a slow link]
/// Groups that transfer the same bytes with the same operation among as many ranks on as many hosts take
/// equally long if their links are equal. A group is slow if it takes 25 % longer than the median of the
/// others, significantly: the interval of its excess over steps is above 0, at a confidence that shares 5 %
/// among all compared groups (Bonferroni); and if the excess of a transfer is more than the clocks may be
/// wrong. If several are slow and have ranks in common, of which no group is as fast as the others, the link
/// of these ranks is reported. Else the slow group with the highest cost: one whose excess is hidden must not
/// mask another. Transfers begin when the last rank has entered: late ranks are found by stragglers().
void slow_links(const Facts& facts, Found& found) {
  constexpr double kSlower = 1.25;
  constexpr std::size_t kSteps = 8, kShown = 4;
  if (!has_groups(facts.store)) return;
  const Hosts hosts = hosts_of(facts.store);
  std::vector<const StepDigest*> steps;
  std::map<Ranks, Slow> groups;
  for (std::size_t i = facts.typical.size(); i-- > 0 && facts.typical.size() - i <= kSteps;) {
    steps.push_back(&facts.digest.steps()[facts.typical[i]]);
    add_step(transfers_of(facts.store, hosts, *steps.back()), groups);
  }
  std::erase_if(groups, [](const auto& group) { return group.second.excess_ms.size() < kFewestSteps; });
  const double confidence = 1 - 0.05 / static_cast<double>(std::max<std::size_t>(groups.size(), 1));
  const double clock_error = clock_error_ns(facts);
  std::vector<SlowGroup> slow;
  for (const auto& [ranks, one] : groups) {
    if (one.ns < kSlower * one.usual_ns || one.mean_excess_ns() <= clock_error) continue;
    const auto interval = mean_interval(one.excess_ms, confidence);
    if (interval && interval->low > 0) slow.push_back({&ranks, &one, *interval});
  }
  if (slow.empty()) return;
  std::ranges::stable_sort(slow, std::greater{}, [](const SlowGroup& one) { return one.excess.middle; });
  Ranks common = common_to(slow);
  const auto is_slow = [&](const Ranks& ranks) {
    return std::ranges::any_of(slow, [&](const SlowGroup& one) { return *one.ranks == ranks; });
  };
  // A group of theirs that is fast would contradict a slow link of these ranks.
  for (const auto& [ranks, one] : groups) {
    if (!is_slow(ranks) && !common.empty() && std::ranges::includes(ranks, common)) common.clear();
  }
  Relief worst;
  std::span<const SlowGroup> blamed;
  if (slow.size() > 1 && !common.empty()) {
    blamed = slow;
    worst = largest(reliefs(facts, steps, slow)).value_or(Relief{});
  } else {
    for (const SlowGroup& one : slow) {
      if (one.excess.middle <= worst.ms) break;  // the cost is at most the excess
      const auto of = largest(reliefs(facts, steps, {&one, 1}));
      if (!of || of->ms <= worst.ms) continue;
      blamed = {&one, 1};
      worst = *of;
    }
  }
  if (blamed.empty()) return;
  Finding finding;
  finding.id = "slow_link";
  if (blamed.size() > 1) {
    finding.title = "The link " + link_text(common) + " is slow";
    finding.evidence = "All its groups that were compared are slow, and no others.";
    if (common.size() > 1) finding.evidence = "All slow groups have these ranks, and no fast group has them.";
    for (const SlowGroup& one : blamed.first(std::min(kShown, blamed.size())))
      finding.evidence += fmt::format(" The group of {} moves {}. {}.", ranks_text(*one.ranks),
                                      rates_text(*one.slow), excess_text(one, groups.size()));
    if (blamed.size() > kShown) finding.evidence += fmt::format(" {} more.", blamed.size() - kShown);
    finding.evidence +=
        fmt::format(" At most {} of it are exposed on rank {}.", of_step(facts, worst.ms), worst.rank);
  } else {
    const SlowGroup& one = blamed.front();
    finding.title = "The link " + link_text(*one.ranks) + " is slow";
    finding.evidence =
        fmt::format("It moves {}. {}; at most {} of it are exposed on rank {}.", rates_text(*one.slow),
                    excess_text(one, groups.size()), of_step(facts, worst.ms), worst.rank);
    if (slow.size() > 1)
      finding.evidence += fmt::format(" {} group{} slow as well: see the links in `summary`.",
                                      slow.size() - 1, slow.size() == 2 ? " is" : "s are");
  }
  finding.next_step =
      "Look at what connects these ranks (cable, switch port, NIC, PCIe slot, a link that fell back to a "
      "lower rate; within a host, whether all its ranks are connected alike) and at who else uses it; no "
      "setting of ZeRO makes it faster.";
  finding.rank = worst.rank;
  // If the exposure is that of all transfers of the rank, this group's share is unknown.
  found.add_by_cost(facts, worst.ms, std::move(finding),
                    has_times_of_host(facts.store.tables()) ? ev::Severity::info : ev::Severity::warning);
  if (found.find("slow_link") == nullptr) return;
  for (const SlowGroup& one : blamed)
    found.slow_link_ranks.insert(found.slow_link_ranks.end(), one.ranks->begin(), one.ranks->end());
  found.slow_link_part = caused_by(facts, steps, blamed);
}

}  // namespace shardscope::analysis::findings
