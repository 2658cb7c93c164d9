// The ranks of the synthetic run on a virtual clock, and the link between them. All ranks are played at
// once, so that a collective starts when the last of them arrives.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "instrumentation/event.h"
#include "tests/app/store/synthetic_run.h"
#include "tests/instrumentation/packed_codes.h"

namespace shardscope::store {

template <typename E>
std::uint8_t u8(E value) {
  return static_cast<std::uint8_t>(value);
}

/// What one rank emits, and where its streams stand on the virtual clock.
struct RankClock {
  std::int64_t compute = 0, gather = 0, reduce = 0, host = 0;
  double slowness = 1;
  std::vector<ev::Event> events;
  std::int64_t activations = 0;

  void emit(std::int64_t at, ev::EventKind kind, ev::StreamId stream, std::uint8_t code, std::uint32_t a,
            std::uint32_t b = ev::kNoId, std::uint32_t c = ev::kNoId, std::int64_t v0 = 0,
            std::int64_t v1 = 0) {
    events.push_back({static_cast<std::uint64_t>(at), kind, stream, code, a, b, c, v0, v1});
  }
  void memory(std::int64_t at, ev::EventKind kind, ev::MemoryCategory category, std::uint32_t owner,
              std::int64_t bytes) {
    if (bytes == 0) return;
    emit(at, kind, ev::StreamId::host, shardscope::test::memory_code(ev::MemoryPool::device, category), owner,
         ev::kNoId, ev::kNoId, bytes);
  }
  /// Passes a gate; `number` is the same on every rank.
  void gate(std::uint32_t number, ev::GateKind kind, std::uint32_t id) {
    host = std::max(host, compute);
    emit(host, ev::EventKind::gate, ev::StreamId::host, u8(kind), number, id);
  }
};

class SyntheticCluster {
 public:
  SyntheticCluster(const SyntheticOptions& options, const ev::RunTables& tables);

  std::vector<RankClock>& ranks() { return ranks_; }
  std::mt19937_64& random() { return random_; }
  /// `ns`, a little shorter or longer.
  [[nodiscard]] std::int64_t jitter(std::int64_t ns);
  /// One collective on all ranks; returns when it ended on each. `plan_id`: of its gather or bucket.
  std::vector<std::int64_t> collective(ev::StreamId lane, ev::CollectiveOp op,
                                       const std::vector<std::uint32_t>& params, std::int64_t elems,
                                       std::int64_t RankClock::*clock, std::uint32_t plan_id = ev::kNoId);
  /// All ranks pass their next gate.
  void gate(ev::GateKind kind, std::uint32_t id);

 private:
  [[nodiscard]] std::int64_t link_ns(std::int64_t bytes) const;

  const SyntheticOptions& o_;
  const ev::RunTables& t_;
  std::vector<RankClock> ranks_;
  std::mt19937_64 random_;
  std::uint32_t sequence_ = 0, gates_ = 0;
};

}  // namespace shardscope::store
