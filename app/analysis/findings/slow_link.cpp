// A link that is slow compared with others: between two ranks, or within a group.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "app/analysis/block_interval.h"
#include "app/analysis/communication.h"
#include "app/analysis/findings/findings.h"
#include "app/analysis/framework.h"
#include "app/analysis/intervals.h"
#include "app/analysis/rank_activity.h"
#include "app/analysis/slow_rank.h"
#include "instrumentation/bus_factor.h"

namespace shardscope::analysis::findings {
namespace {

using Ranks = std::vector<std::uint32_t>;

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

/// The group, if it is one of several disjoint ones; nullopt if it has all ranks, or unknown members.
std::optional<CollectiveRanks> parted_group(const store::Store& store, std::uint32_t rank,
                                            const store::Span& collective) {
  auto group = collective_ranks(store, rank, collective);
  if (!group || group->count < 2) return std::nullopt;
  const bool everyone = group->described == nullptr && group->copy == nullptr && group->stride == 1 &&
                        group->count >= store.tables().world;
  return everyone ? std::nullopt : group;
}

/// Whether such a run has groups to compare: otherwise no event is read.
bool has_groups(const Facts& facts) {
  if (facts.own_runtime() && facts.zero_keys &&
      (facts.zero.mics_shard_size > 0 || facts.zero.hpz_partition_size > 1 || facts.zero.quantized_gradients))
    return true;
  return std::ranges::any_of(facts.store.ranks(), [&](const store::RankRow& row) {
    const ev::RunTables* const own = facts.store.rank_tables(row.rank);
    return own != nullptr && !own->groups.empty();
  });
}

/// One instance of a collective, over the ranks of its group that recorded it.
struct Instance {
  Alike alike;
  Ranks ranks;
  std::int64_t transfer_ns = INT64_MAX;  ///< the shortest: waiting for a late rank is not transfer
  std::size_t seen = 0;
  bool entered = false;
};

/// Instances with a known transfer: from when all had entered, or the span of the rank that entered last.
Step transfers_of(const store::Store& store, const Hosts& hosts, const StepDigest& step) {
  std::map<std::uint64_t, Instance> instances;
  for (const RankStep& rank : step.ranks) {
    // With missing events a wrong end may have been assigned.
    if (rank.recorded.events_missing) continue;
    for_each_collective(
        store, rank.rank, rank.begin_ns, rank.end_ns, [&](ev::StreamId stream, const store::Span& span) {
          const auto group = parted_group(store, rank.rank, span);
          if (!group) return;
          const auto fields = ev::as<ev::EventKind::collective_begin>(span);
          // Its end is only a bound, or it failed.
          if (fields.code.end_is_bound() || fields.code.ended_by_error()) return;
          Instance& one = instances[instance_of(store, rank.rank, stream, span)];
          if (one.seen == 0) {
            one.ranks = group->list();
            const Purpose purpose{
                group->described != nullptr ? group->described->purpose : ev::GroupPurpose::other,
                fields.code.scope()};
            one.alike = {purpose, one.ranks.size(), count_hosts(hosts, one.ranks), fields.op, fields.bytes};
          }
          one.transfer_ns = std::min(one.transfer_ns, span.end_ns - moves_from(span));
          one.entered = one.entered || all_ranks_entered(span);
          ++one.seen;
        });
  }
  Step out;
  for (const auto& [key, one] : instances) {
    if (!one.entered && one.seen < one.ranks.size()) continue;
    const auto& [purpose, size, on_hosts, op, bytes] = one.alike;
    const double factor = ev::bus_factor(op, static_cast<std::uint32_t>(size));
    if (factor <= 0 || bytes <= 0) continue;
    Moved& moved = out[one.alike][one.ranks];
    moved.ns += static_cast<double>(one.transfer_ns);
    moved.bus_bytes += factor * static_cast<double>(bytes);
    ++moved.count;
  }
  return out;
}

/// Excess of a group over the median of the groups with the same transfers, over steps.
struct Slow {
  std::vector<double> excess_ms;  ///< of each step
  double ns = 0, usual_ns = 0, bus_bytes = 0;
  std::size_t others = 0;  ///< groups it was compared with: the largest number over its collectives
  /// Its collectives that were compared.
  std::set<std::pair<ev::CollectiveOp, std::int64_t>> compared;
};

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
      group.compared.emplace(std::get<ev::CollectiveOp>(alike), std::get<std::int64_t>(alike));
    }
  }
  for (const auto& [ranks, ms] : excess) groups[ranks].excess_ms.push_back(ms);
}

/// Milliseconds per step in which computation of a rank waited for transfers of one group.
struct Exposed {
  std::uint32_t rank = 0;
  double ms = 0;
};

/// Time in which compared collectives of the group transfer while the rank computes nothing; nullopt if its
/// computation was not recorded.
std::optional<std::int64_t> exposed_ns(const store::Store& store, const RankStep& step, const Ranks& ranks,
                                       const Slow& slow) {
  const RankActivity activity = activity_of(store, step.rank, step.begin_ns, step.end_ns);
  if (!activity.known) return std::nullopt;
  std::vector<Interval> moving;
  for_each_collective(
      store, step.rank, step.begin_ns, step.end_ns, [&](ev::StreamId, const store::Span& span) {
        const auto group = parted_group(store, step.rank, span);
        const auto fields = ev::as<ev::EventKind::collective_begin>(span);
        if (!group || group->list() != ranks || !slow.compared.contains({fields.op, fields.bytes})) return;
        moving.push_back({moves_from(span), span.end_ns});
      });
  return IntervalSet(std::move(moving)).intersect(activity.comm).subtract(activity.compute).length();
}

/// The rank that waited most, as a mean over the steps in which its computation was recorded; nullopt if
/// there are none.
std::optional<Exposed> most_exposed(const Facts& facts, const std::vector<const StepDigest*>& steps,
                                    const Ranks& ranks, const Slow& slow) {
  std::optional<Exposed> most;
  // Host spans show when a transfer was queued: only the rank's wait for all transfers together is known.
  const bool by_host = has_times_of_host(facts.store.tables());
  for (const RankFacts& one : facts.ranks) {
    if (std::ranges::find(ranks, one.rank) == ranks.end()) continue;
    double ns = 0;
    std::size_t count = 0;
    for (const StepDigest* const step : steps) {
      if (by_host) break;
      const auto own = std::ranges::find(step->ranks, one.rank, &RankStep::rank);
      if (own == step->ranks.end() || own->recorded.events_missing) continue;
      const auto exposed = exposed_ns(facts.store, *own, ranks, slow);
      if (!exposed) continue;
      ns += static_cast<double>(*exposed);
      ++count;
    }
    if (!by_host && count == 0) continue;
    const double ms = by_host ? one.moving : ns * 1e-6 / static_cast<double>(count);
    if (!most || ms > most->ms) most = Exposed{one.rank, ms};
  }
  return most;
}

std::string ranks_text(const Ranks& ranks) {
  constexpr std::size_t kShown = 8;
  if (ranks.size() == 2) return fmt::format("between rank {} and rank {}", ranks[0], ranks[1]);
  const bool all = ranks.size() <= kShown;
  return fmt::format(
      "of the group of ranks {}{}",
      fmt::join(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(all ? ranks.size() : kShown),
                ", "),
      all ? "" : fmt::format(" and {} more", ranks.size() - kShown));
}

}  // namespace

/// [Note: a slow link]
/// Groups that transfer the same bytes with the same operation among as many ranks on as many hosts take
/// equally long if their links are equal. A group is slow if it takes 25 % longer than the median of the
/// others, significantly: the interval of its excess over steps is above 0, at a confidence that shares 5 %
/// among all compared groups (Bonferroni). Of the slow groups the one with the highest cost is reported: one
/// whose excess is hidden must not mask another. Transfers begin when the last rank has entered: late ranks
/// are found by stragglers().
void slow_links(const Facts& facts, Found& found) {
  constexpr double kSlower = 1.25;
  constexpr std::size_t kSteps = 8;
  if (!has_groups(facts)) return;
  const Hosts hosts = hosts_of(facts.store);
  std::vector<const StepDigest*> steps;
  std::map<Ranks, Slow> groups;
  for (std::size_t i = facts.typical.size(); i-- > 0 && facts.typical.size() - i <= kSteps;) {
    steps.push_back(&facts.digest.steps()[facts.typical[i]]);
    add_step(transfers_of(facts.store, hosts, *steps.back()), groups);
  }
  struct Candidate {
    const Ranks* ranks;
    const Slow* slow;
    ConfidenceInterval excess;  ///< per step
  };
  std::erase_if(groups, [](const auto& group) { return group.second.excess_ms.size() < kFewestSteps; });
  const double confidence = 1 - 0.05 / static_cast<double>(std::max<std::size_t>(groups.size(), 1));
  std::vector<Candidate> slow;
  for (const auto& [ranks, one] : groups) {
    if (one.ns < kSlower * one.usual_ns) continue;
    const auto interval = mean_interval(one.excess_ms, confidence);
    if (interval && interval->low > 0) slow.push_back({&ranks, &one, *interval});
  }
  std::ranges::stable_sort(slow, std::greater{}, [](const Candidate& one) { return one.excess.middle; });
  const Candidate* worst = nullptr;
  std::uint32_t rank = 0;
  double cost = 0;
  for (const Candidate& one : slow) {
    if (one.excess.middle <= cost) break;  // the cost is at most the excess
    const auto exposed = most_exposed(facts, steps, *one.ranks, *one.slow);
    // At most the time for which computation waited: the rest was hidden.
    if (!exposed || std::min(one.excess.middle, exposed->ms) <= cost) continue;
    worst = &one;
    rank = exposed->rank;
    cost = std::min(one.excess.middle, exposed->ms);
  }
  if (worst == nullptr) return;
  Finding finding;
  finding.id = "slow_link";
  finding.title = "The link " + ranks_text(*worst->ranks) + " is slow";
  finding.evidence = fmt::format(
      "It moves {:.3g} GB/s (busbw), others that move the same {:.3g} GB/s (median of {} {}). By steps it "
      "takes {:.1f} to {:.1f} ms longer (95 % for all {} groups together), {:.1f} ms as a mean, counted from "
      "when the last rank had entered; at most {} of it are exposed on rank {}.",
      worst->slow->bus_bytes / worst->slow->ns, worst->slow->bus_bytes / worst->slow->usual_ns,
      worst->slow->others, worst->slow->others == 1 ? "group" : "groups", worst->excess.low,
      worst->excess.high, groups.size(), worst->excess.middle, of_step(facts, cost), rank);
  finding.next_step =
      "Look at what connects these ranks (cable, switch port, NIC, PCIe slot, a link that fell back to a "
      "lower rate; within a host, whether all its ranks are connected alike) and at who else uses it; no "
      "setting of ZeRO makes it faster.";
  finding.rank = rank;
  // If the exposure is that of all transfers of the rank, this group's share is unknown.
  found.add_by_cost(facts, cost, std::move(finding),
                    has_times_of_host(facts.store.tables()) ? ev::Severity::info : ev::Severity::warning);
  if (found.find("slow_link") != nullptr) found.slow_link_ranks = *worst->ranks;
}

}  // namespace shardscope::analysis::findings
