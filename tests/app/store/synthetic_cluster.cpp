#include "tests/app/store/synthetic_cluster.h"

namespace shardscope::store {
namespace {

using ev::EventKind;
using ev::kNoId;
using ev::StreamId;

constexpr std::uint32_t kGatherGroup = 0;
constexpr std::uint32_t kReduceGroup = 1;

}  // namespace

SyntheticCluster::SyntheticCluster(const SyntheticOptions& options, const ev::RunTables& tables)
    : o_(options), t_(tables), ranks_(options.world), random_(options.seed) {
  for (std::uint32_t r = 0; r < o_.world; ++r) {
    RankClock& rank = ranks_[r];
    rank.slowness = r == o_.straggler ? 1.3 : 1.0;
    rank.compute = rank.gather = rank.reduce = rank.host = 1'000'000 + 20'000 * static_cast<std::int64_t>(r);
  }
}

std::int64_t SyntheticCluster::jitter(std::int64_t ns) {
  return static_cast<std::int64_t>(static_cast<double>(ns) *
                                   std::uniform_real_distribution<>(0.95, 1.10)(random_));
}

std::int64_t SyntheticCluster::link_ns(std::int64_t bytes) const {
  const double share = static_cast<double>(o_.world - 1) / o_.world;
  return static_cast<std::int64_t>(o_.link_latency_us * 1e3 +
                                   static_cast<double>(bytes) * share * 8 / o_.link_gbps);
}

std::vector<std::int64_t> SyntheticCluster::collective(ev::StreamId lane, ev::CollectiveOp op,
                                                       const std::vector<std::uint32_t>& params,
                                                       std::int64_t elems, std::int64_t RankClock::*clock,
                                                       std::uint32_t plan_id) {
  const std::int64_t bytes = 2 * elems;
  const std::uint32_t sequence = sequence_++;
  const std::uint32_t lane_group = lane == StreamId::gather ? kGatherGroup : kReduceGroup;
  const std::uint32_t group = o_.plan_ids ? plan_id : lane_group;
  const auto parts = static_cast<std::uint32_t>(params.size());
  std::int64_t entered = 0;
  for (RankClock& rank : ranks_) {
    rank.host = std::max(rank.host, rank.compute);
    rank.*clock = std::max(rank.*clock, rank.host + 1500);
    rank.emit(rank.host, EventKind::collective_submitted, StreamId::host, u8(op), sequence, group, parts,
              elems, bytes);
    for (const std::uint32_t p : params) {
      rank.emit(rank.host + 50, EventKind::collective_part, StreamId::host, u8(op), sequence, p, kNoId,
                t_.params[p].elems, 2 * t_.params[p].elems);
    }
    rank.emit(rank.*clock, EventKind::collective_begin, lane, u8(op), sequence, group, parts, elems, bytes);
    entered = std::max(entered, rank.*clock);
  }
  const std::int64_t took = jitter(link_ns(bytes));
  std::vector<std::int64_t> ends;
  for (RankClock& rank : ranks_) {
    rank.emit(entered + 200, EventKind::collective_entered, lane, u8(op), sequence, group);
    rank.*clock = entered + took + jitter(400);
    rank.emit(rank.*clock, EventKind::collective_end, lane, u8(op), sequence, group, 2, elems, bytes);
    ends.push_back(rank.*clock);
  }
  return ends;
}

void SyntheticCluster::gate(ev::GateKind kind, std::uint32_t id) {
  ++gates_;
  for (RankClock& rank : ranks_) rank.gate(gates_, kind, id);
}

}  // namespace shardscope::store
