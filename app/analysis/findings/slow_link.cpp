// A link that is slow against the others: of two ranks, or of a group.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "app/analysis/block_interval.h"
#include "app/analysis/communication.h"
#include "app/analysis/findings/findings.h"
#include "app/analysis/slow_rank.h"
#include "instrumentation/bus_factor.h"

namespace shardscope::analysis::findings {
namespace {

using Ranks = std::vector<std::uint32_t>;

/// Collectives that take as long on links alike: purpose and size of the group, operation, bytes.
using Alike = std::tuple<ev::GroupPurpose, std::size_t, ev::CollectiveOp, std::int64_t>;

/// Transfers of one group in one step.
struct Moved {
  double ns = 0, bus_bytes = 0;
  std::uint64_t count = 0;
  [[nodiscard]] double mean_ns() const { return ns / static_cast<double>(count); }
};
using Step = std::map<Alike, std::map<Ranks, Moved>>;

/// One instance of a collective, over the ranks of its group that recorded it.
struct Instance {
  Alike alike;
  Ranks ranks;
  std::int64_t transfer_ns = INT64_MAX;  ///< the shortest: waiting for a late rank is no transfer
  std::size_t seen = 0;
  bool entered = false;
};

/// Instances of which the transfer is known: when all had come, or the span of the one that came last.
Step transfers_of(const store::Store& store, const StepDigest& step) {
  std::map<std::uint64_t, Instance> instances;
  for (const RankStep& rank : step.ranks) {
    const ev::RunTables* const own = store.rank_tables(rank.rank);
    if (own == nullptr || own->groups.empty()) continue;
    for_each_collective(
        store, rank.rank, rank.begin_ns, rank.end_ns, [&](ev::StreamId stream, const store::Span& span) {
          const ev::GroupInfo* const group = group_of(store, rank.rank, span);
          if (group == nullptr || group->ranks.size() < 2) return;
          const auto fields = ev::as<ev::EventKind::collective_begin>(span);
          if (fields.code.end_is_bound()) return;  // when it ended is not known
          Instance& one = instances[instance_of(store, rank.rank, stream, span)];
          one.alike = {group->purpose, group->ranks.size(), fields.op, fields.bytes};
          one.ranks = group->ranks;
          const bool entered = span.mark_ns > span.begin_ns && span.mark_ns <= span.end_ns;
          one.transfer_ns = std::min(one.transfer_ns, span.end_ns - (entered ? span.mark_ns : span.begin_ns));
          one.entered = one.entered || entered;
          ++one.seen;
        });
  }
  Step out;
  for (const auto& [key, one] : instances) {
    if (!one.entered && one.seen < one.ranks.size()) continue;
    const auto& [purpose, size, op, bytes] = one.alike;
    const double factor = ev::bus_factor(op, static_cast<std::uint32_t>(size));
    if (factor <= 0 || bytes <= 0) continue;
    Moved& moved = out[one.alike][one.ranks];
    moved.ns += static_cast<double>(one.transfer_ns);
    moved.bus_bytes += factor * static_cast<double>(bytes);
    ++moved.count;
  }
  return out;
}

/// What a group took longer than the median of the groups that moved the same, over steps.
struct Slow {
  std::vector<double> excess_ms;  ///< of each step
  double ns = 0, usual_ns = 0, bus_bytes = 0;
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
    }
  }
  for (const auto& [ranks, ms] : excess) groups[ranks].excess_ms.push_back(ms);
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
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
/// Groups that move the same bytes with the same operation among as many ranks take as long where their links
/// are alike. One is slow that takes a quarter longer than the median of the others, by more than chance: the
/// interval over steps of what it takes longer, at 95 % shared among the groups, is above 0. Times begin when
/// the last rank has come: a rank that comes late is stragglers().
void slow_links(const Facts& facts, Found& found) {
  constexpr double kSlower = 1.25;
  constexpr std::size_t kSteps = 8, kFewest = 4;
  std::map<Ranks, Slow> groups;
  for (std::size_t i = facts.typical.size(); i-- > 0 && facts.typical.size() - i <= kSteps;)
    add_step(transfers_of(facts.store, facts.digest.steps()[facts.typical[i]]), groups);
  const Ranks* where = nullptr;
  const Slow* worst = nullptr;
  for (const auto& [ranks, one] : groups) {
    if (one.excess_ms.size() < kFewest || one.ns < kSlower * one.usual_ns) continue;
    if (worst != nullptr && mean_of(one.excess_ms) <= mean_of(worst->excess_ms)) continue;
    where = &ranks;
    worst = &one;
  }
  if (worst == nullptr) return;
  const auto interval = mean_interval(worst->excess_ms, 1 - 0.05 / static_cast<double>(groups.size()));
  if (!interval || interval->low <= 0) return;
  // No more than computation waited for: the rest of it was hidden.
  const RankFacts* most = nullptr;
  for (const RankFacts& one : facts.ranks) {
    if (std::ranges::find(*where, one.rank) == where->end()) continue;
    if (most == nullptr || one.moving > most->moving) most = &one;
  }
  if (most == nullptr) return;
  const double excess = mean_of(worst->excess_ms), cost = std::min(excess, most->moving);
  Finding finding;
  finding.id = "slow_link";
  finding.title = "The link " + ranks_text(*where) + " is slow";
  finding.evidence = fmt::format(
      "It moves {:.3g} GB/s (busbw), others that move the same {:.3g} GB/s (median of {} groups). By steps "
      "it takes "
      "{:.1f} to {:.1f} ms longer (95 %), {:.1f} ms as a mean, counted from when the last rank had come; {} "
      "of it "
      "are exposed on rank {}.",
      worst->bus_bytes / worst->ns, worst->bus_bytes / worst->usual_ns, groups.size() - 1, interval->low,
      interval->high, excess, of_step(facts, cost), most->rank);
  finding.next_step =
      "Look at what connects these ranks (cable, switch port, NIC, PCIe slot, a link that fell back to a "
      "lower "
      "rate) and at who else uses it; no setting of ZeRO makes it faster.";
  finding.rank = most->rank;
  found.add_by_cost(facts, cost, std::move(finding));
}

}  // namespace shardscope::analysis::findings
