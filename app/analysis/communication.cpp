#include "app/analysis/communication.h"

#include <algorithm>
#include <map>

#include "app/store/span_time.h"
#include "instrumentation/bus_factor.h"

namespace shardscope::analysis {
namespace {

using ev::CollectiveOp;
using ev::StreamId;

const ev::GroupInfo* copy_of(const ev::RunTables& tables) {
  const auto found = std::ranges::find(tables.groups, ev::GroupPurpose::data, &ev::GroupInfo::purpose);
  return found == tables.groups.end() || found->ranks.empty() ? nullptr : &*found;
}

}  // namespace

std::vector<std::uint32_t> CollectiveRanks::list() const {
  if (described != nullptr) return described->ranks;
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t at = first + i * stride;
    if (copy == nullptr) {
      out.push_back(at);
    } else if (at < copy->ranks.size()) {
      out.push_back(copy->ranks[at]);
    }
  }
  return out;
}

std::uint64_t CollectiveRanks::key() const noexcept {
  std::uint64_t key = 0xCBF29CE484222325U;  // FNV-1a
  const auto mix = [&](std::uint64_t value) { key = (key ^ value) * 0x100000001B3U; };
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t at = described != nullptr ? i : first + i * stride;
    const std::vector<std::uint32_t>* const members = described != nullptr ? &described->ranks
                                                      : copy != nullptr    ? &copy->ranks
                                                                           : nullptr;
    mix(members == nullptr ? at : at < members->size() ? (*members)[at] : UINT32_MAX);
  }
  return key == 0 ? 1 : key;
}

/// [Note: ranks by scope]
/// A collective of our runtime carries its scope and number of ranks, not their ids. These follow from both:
/// neighbours, or every n-th rank. In closed form, since it is computed for every collective of a recording.
std::optional<CollectiveRanks> collective_ranks(const store::Store& store, std::uint32_t rank,
                                                const store::Span& collective) {
  using Scope = ev::CollectiveScope;
  const ev::CollectiveCode code = ev::as<ev::EventKind::collective_begin>(collective).code;
  CollectiveRanks out;
  out.described = group_of(store, rank, collective);
  if (out.described != nullptr) {
    out.count = static_cast<std::uint32_t>(out.described->ranks.size());
    return out;
  }
  if (!store.has_tables() || (code.known() && code.scope() == Scope::group)) return std::nullopt;
  const ev::RunTables* const own = store.rank_tables(rank);
  out.copy = own == nullptr ? nullptr : copy_of(*own);
  std::uint32_t world = std::max(store.tables().world, 1U), local = rank;
  if (out.copy != nullptr) {
    const auto at = std::ranges::lower_bound(out.copy->ranks, rank);
    if (at == out.copy->ranks.end() || *at != rank) return std::nullopt;
    local = static_cast<std::uint32_t>(at - out.copy->ranks.begin());
    world = static_cast<std::uint32_t>(out.copy->ranks.size());
  }
  const std::uint32_t count = !code.known() || code.ranks() == 0 ? world : code.ranks();
  if (local >= world || count > world) return std::nullopt;
  // Attached programs emit this for a group without a description: its size is known, its members are not.
  if (code.known() && code.scope() == Scope::world && count < world) return std::nullopt;
  out.count = count;
  switch (code.known() ? code.scope() : Scope::world) {
    case Scope::world:
      break;
    case Scope::secondary:
    case Scope::shard:
    case Scope::intra_node:
      out.first = local - local % count;
      break;
    case Scope::replica:
      out.stride = world / count;
      out.first = local % out.stride;
      break;
    case Scope::inter_node: {
      // One rank per node; with MiCS, of the nodes of one shard group.
      const std::uint32_t node = std::clamp(store.tables().local_world, 1U, world);
      out.stride = out.copy == nullptr && world % (node * count) == 0 ? node : world / count;
      out.first = local - local % (out.stride * count) + local % out.stride;
      break;
    }
    case Scope::group:
      return std::nullopt;
  }
  return out;
}

const ev::GroupInfo* group_of(const store::Store& store, std::uint32_t rank, const store::Span& collective) {
  const std::uint32_t id = ev::as<ev::EventKind::collective_begin>(collective).code.group();
  const ev::RunTables* own = id == ev::kNoId ? nullptr : store.rank_tables(rank);
  return own != nullptr && id < own->groups.size() ? &own->groups[id] : nullptr;
}

std::uint64_t place_in_group(const store::Store& store, std::uint32_t rank, const store::Span& collective) {
  const std::uint32_t sequence = ev::as<ev::EventKind::collective_begin>(collective).sequence;
  const ev::GroupInfo* group = group_of(store, rank, collective);
  std::uint64_t key = 0xCBF29CE484222325U;  // FNV-1a
  const auto mix = [&](std::uint64_t value) { key = (key ^ value) * 0x100000001B3U; };
  if (group == nullptr) {
    if (!store.has_tables() || collective_ranks(store, rank, collective)) return sequence;
    // The members of the group are not known: hash the rank, so that the position is unique to it.
    mix(1U << 31U | rank);
    mix(sequence >> 24U);
    return ev::number_in_group(sequence) ^ key << 24U;
  }
  // A group is identified by its name and ranks.
  for (const char c : group->name) mix(static_cast<unsigned char>(c));
  for (const std::uint32_t member : group->ranks) mix(member + 256U);
  return ev::number_in_group(sequence) ^ key << 24U;
}

bool in_one_order(std::uint64_t place, std::uint64_t other) noexcept {
  // Without a described group a position is the sequence number; otherwise the upper bits hash the group.
  return (place | other) >> 32U == 0 || (place ^ other) >> 24U == 0;
}

std::uint64_t instance_of(const store::Store& store, std::uint32_t rank, StreamId stream,
                          const store::Span& collective) {
  const auto op = ev::as<ev::EventKind::collective_begin>(collective).op;
  const std::uint64_t place =
      (static_cast<std::uint64_t>(stream) << 40 | static_cast<std::uint64_t>(op) << 32) ^
      place_in_group(store, rank, collective);
  const auto ranks = collective_ranks(store, rank, collective);
  if (!ranks || ranks->described != nullptr) return place;
  // Disjoint groups use the same numbers: hash the ranks to distinguish them. FNV-1a.
  std::uint64_t key = 0xCBF29CE484222325U;
  for (const std::uint32_t value :
       {ranks->copy == nullptr ? 0U : ranks->copy->ranks.front(), ranks->first, ranks->stride, ranks->count})
    key = (key ^ value) * 0x100000001B3U;
  return place ^ key << 24U;
}

std::uint32_t ranks_of(const store::Store& store, std::uint32_t rank, const store::Span& collective) {
  const std::uint32_t world = store.has_tables() ? store.tables().world : 1;
  const ev::CollectiveCode code = ev::as<ev::EventKind::collective_begin>(collective).code;
  if (code.group() != ev::kNoId) {
    const ev::GroupInfo* group = group_of(store, rank, collective);
    return group != nullptr ? static_cast<std::uint32_t>(group->ranks.size()) : world;
  }
  return !code.known() || code.ranks() == 0 ? world : code.ranks();
}

namespace {

CollectiveTimes::Times times_of(const store::Span& span) {
  return {.transfer_ns = span.end_ns - moves_from(span),
          .sum_ns = span.end_ns - span.begin_ns,
          .ranks = 1,
          .entered = all_ranks_entered(span)};
}

}  // namespace

std::vector<CollectiveTimes::Own> CollectiveTimes::read(const store::Store& store, const RankStep& rank) {
  std::vector<Own> out;
  for_each_collective(
      store, rank.rank, rank.begin_ns, rank.end_ns, [&](StreamId stream, const store::Span& span) {
        Times own = times_of(span);
        // A rank paused at a gate did not wait for others; the transfer continues meanwhile.
        own.sum_ns -=
            store::paused_ns(store, rank.rank, span.begin_ns, own.entered ? span.mark_ns : span.end_ns);
        out.push_back({instance_of(store, rank.rank, stream, span), own});
      });
  return out;
}

void CollectiveTimes::add(const std::vector<Own>& of_rank) {
  for (const Own& own : of_rank) {
    const auto [at, inserted] = times_.emplace(own.instance, own.times);
    if (inserted) continue;
    Times& known = at->second;
    known.transfer_ns = std::min(known.transfer_ns, own.times.transfer_ns);
    known.sum_ns += own.times.sum_ns;
    ++known.ranks;
    known.entered = known.entered || own.times.entered;
  }
}

CollectiveTimes::Times CollectiveTimes::of(const store::Store& store, std::uint32_t rank, StreamId stream,
                                           const store::Span& collective) const {
  const auto found = times_.find(instance_of(store, rank, stream, collective));
  return found == times_.end() ? times_of(collective) : found->second;
}

std::map<CollectiveOp, OpTotals> collectives_of_step(const store::Store& store, const RankStep& lowest,
                                                     const CollectiveTimes& times) {
  std::map<CollectiveOp, OpTotals> ops;
  for_each_collective(store, lowest.rank, lowest.begin_ns, lowest.end_ns,
                      [&](StreamId stream, const store::Span& span) {
                        // Counted in the step in which it began. A library's thread may emit its end late, in
                        // the next step.
                        if (span.begin_ns < lowest.begin_ns) return;
                        const auto collective = ev::as<ev::EventKind::collective_begin>(span);
                        OpTotals& totals = ops[collective.op];
                        ++totals.count;
                        totals.bytes += collective.bytes;
                        totals.elems += collective.elems;
                        totals.bus_bytes += static_cast<double>(collective.bytes) *
                                            ev::bus_factor(collective.op, ranks_of(store, lowest.rank, span));
                        const CollectiveTimes::Times took = times.of(store, lowest.rank, stream, span);
                        totals.transfer_ns += took.transfer_ns;
                        totals.waiting_ns += static_cast<double>(took.sum_ns) / took.ranks;
                      });
  return ops;
}

OpRow row_of(CollectiveOp op, const OpTotals& totals) {
  OpRow row;
  row.op = op;
  row.count = totals.count;
  row.bytes = totals.bytes;
  row.elems = totals.elems;
  const auto bytes = static_cast<double>(totals.bytes);
  if (totals.transfer_ns > 0 && totals.bytes > 0) {
    row.algbw_gbs = bytes / static_cast<double>(totals.transfer_ns);  // bytes/ns = GB/s
    row.busbw_gbs = totals.bus_bytes / static_cast<double>(totals.transfer_ns);
  }
  if (totals.waiting_ns > 0 && totals.bytes > 0) {
    row.algbw_waiting_gbs = bytes / totals.waiting_ns;
    row.busbw_waiting_gbs = totals.bus_bytes / totals.waiting_ns;
  }
  return row;
}

}  // namespace shardscope::analysis
