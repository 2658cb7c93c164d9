#include "app/analysis/group_transfers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <unordered_map>
#include <utility>

#include "app/analysis/statistics.h"
#include "app/analysis/zero_settings.h"
#include "app/store/framework.h"
#include "instrumentation/bus_factor.h"

namespace shardscope::analysis {
namespace {

bool has_everyone(const store::Store& store, const CollectiveRanks& group) {
  return group.stride == 1 && group.count >= store.tables().world;
}

struct Instance {
  GroupTransfer transfer;
  std::size_t seen = 0;
  bool entered = false;
};

/// Sums of one group and operation.
struct Series {
  std::vector<double> rates;  ///< of each step
  std::uint64_t count = 0;
  std::int64_t bytes = 0;
};

}  // namespace

std::optional<CollectiveRanks> parted_group(const store::Store& store, std::uint32_t rank,
                                            const store::Span& collective) {
  auto group = collective_ranks(store, rank, collective);
  if (!group || group->count < 2) return std::nullopt;
  const bool everyone = group->described == nullptr && group->copy == nullptr && has_everyone(store, *group);
  return everyone ? std::nullopt : group;
}

bool has_groups(const store::Store& store) {
  if (!store.has_tables()) return false;
  if (store::framework_of(store.tables()) == store::Framework::zero) {
    const plan::ZeroConfig zero = zero_of(store.tables());
    if (zero.mics_shard_size > 0 || zero.hpz_partition_size > 1 || zero.quantized_gradients) return true;
  }
  return std::ranges::any_of(store.ranks(), [&](const store::RankRow& row) {
    const ev::RunTables* const own = store.rank_tables(row.rank);
    return own != nullptr && !own->groups.empty();
  });
}

std::vector<GroupTransfer> group_transfers(const store::Store& store, const StepDigest& step) {
  std::unordered_map<std::uint64_t, std::size_t> index;
  std::vector<Instance> instances;
  for (const RankStep& rank : step.ranks) {
    if (rank.recorded.events_missing) continue;
    for_each_collective(
        store, rank.rank, rank.begin_ns, rank.end_ns, [&](ev::StreamId stream, const store::Span& span) {
          const auto group = collective_ranks(store, rank.rank, span);
          if (!group || group->count < 2) return;
          const auto fields = ev::as<ev::EventKind::collective_begin>(span);
          // Its end is only a bound, or it failed.
          if (fields.code.end_is_bound() || fields.code.ended_by_error()) return;
          const auto [at, inserted] =
              index.emplace(instance_of(store, rank.rank, stream, span), instances.size());
          if (inserted) {
            GroupTransfer& of = instances.emplace_back().transfer;
            of.ranks = group->list();
            of.everyone = of.ranks.size() >= store.tables().world;
            of.purpose = group->described != nullptr ? group->described->purpose : ev::GroupPurpose::other;
            of.scope = fields.code.scope();
            of.op = fields.op;
            of.bytes = fields.bytes;
            of.transfer_ns = INT64_MAX;
          }
          Instance& one = instances[at->second];
          one.transfer.transfer_ns = std::min(one.transfer.transfer_ns, span.end_ns - moves_from(span));
          one.entered = one.entered || all_ranks_entered(span);
          ++one.seen;
        });
  }
  std::vector<GroupTransfer> out;
  for (Instance& one : instances) {
    if (!one.entered && one.seen < one.transfer.ranks.size()) continue;
    const double factor =
        ev::bus_factor(one.transfer.op, static_cast<std::uint32_t>(one.transfer.ranks.size()));
    if (factor <= 0 || one.transfer.bytes <= 0) continue;
    one.transfer.bus_bytes = factor * static_cast<double>(one.transfer.bytes);
    out.push_back(std::move(one.transfer));
  }
  return out;
}

std::vector<GroupLink> group_links(const store::Store& store, const Digest& digest) {
  constexpr std::size_t kMostSteps = 64, kRankSteps = 4096;
  if (!has_groups(store) || digest.steps().empty()) return {};
  const std::size_t ranks = std::max<std::size_t>(store.ranks().size(), 1),
                    most = std::clamp(kRankSteps / ranks, kFewestForInterval, kMostSteps),
                    size = digest.steps().size(),
                    first = std::max(digest.first_measured(), size > most ? size - most : 0);
  std::map<std::pair<GroupRanks, ev::CollectiveOp>, Series> groups;
  for (std::size_t i = first; i < size; ++i) {
    struct Moved {
      double ns = 0, bus_bytes = 0;
    };
    std::map<std::pair<GroupRanks, ev::CollectiveOp>, Moved> step;
    for (GroupTransfer& one : group_transfers(store, digest.steps()[i])) {
      const std::pair key{std::move(one.ranks), one.op};
      Moved& moved = step[key];
      moved.ns += static_cast<double>(one.transfer_ns);
      moved.bus_bytes += one.bus_bytes;
      Series& series = groups[key];
      ++series.count;
      series.bytes += one.bytes;
    }
    for (const auto& [key, moved] : step)
      if (moved.ns > 0) groups[key].rates.push_back(moved.bus_bytes / moved.ns);
  }
  std::vector<GroupLink> out;
  for (auto& [key, series] : groups) {
    GroupLink row{.ranks = key.first, .op = key.second, .count = series.count, .bytes = series.bytes};
    row.steps = static_cast<std::uint32_t>(series.rates.size());
    row.interval = block_interval(series.rates);
    if (!row.interval)
      row.no_interval = fmt::format("{} step{} with a transfer, {} are needed", row.steps,
                                    row.steps == 1 ? "" : "s", kFewestForInterval);
    if (!series.rates.empty()) row.busbw_gbs = quantile(std::move(series.rates), 0.5);
    out.push_back(std::move(row));
  }
  std::ranges::stable_sort(out, {}, [](const GroupLink& one) { return one.busbw_gbs.value_or(0); });
  return out;
}

}  // namespace shardscope::analysis
