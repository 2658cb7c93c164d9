// Short ways to make events and chunks in tests.
#pragma once

#include <bit>

#include "app/store/chunk.h"
#include "app/store/store.h"
#include "tests/instrumentation/packed_codes.h"

namespace shardscope::store {

inline constexpr LaneId kCompute{0, ev::StreamId::compute};

struct ChunkBuilder {
  Chunk chunk;
  explicit ChunkBuilder(std::uint32_t rank = 0, std::uint64_t sequence = 0) {
    chunk.rank = rank;
    chunk.sequence = sequence;
  }
  ChunkBuilder& add(std::int64_t at, ev::EventKind kind, ev::StreamId stream, std::uint32_t a = ev::kNoId,
                    std::uint8_t code = 0, std::int64_t v0 = 0, std::int64_t v1 = 0) {
    chunk.events.push_back(
        {static_cast<std::uint64_t>(at), kind, stream, code, a, ev::kNoId, ev::kNoId, v0, v1});
    return *this;
  }
  ChunkBuilder& host(std::int64_t at, ev::EventKind kind, std::uint32_t a = ev::kNoId, std::uint8_t code = 0,
                     std::int64_t v0 = 0, std::int64_t v1 = 0) {
    return add(at, kind, ev::StreamId::host, a, code, v0, v1);
  }
  ChunkBuilder& compute(std::int64_t at, ev::EventKind kind, std::uint32_t a = ev::kNoId,
                        std::uint8_t code = 0) {
    return add(at, kind, ev::StreamId::compute, a, code);
  }
  ChunkBuilder& number(std::int64_t at, ev::EventKind kind, std::uint32_t step, double value) {
    return host(at, kind, step, 0, std::bit_cast<std::int64_t>(value));
  }
  ChunkBuilder& memory(std::int64_t at, ev::MemoryCategory category, std::int64_t delta, std::int64_t after) {
    return host(at, delta >= 0 ? ev::EventKind::memory_alloc : ev::EventKind::memory_free, ev::kNoId,
                shardscope::test::memory_code(ev::MemoryPool::device, category), delta >= 0 ? delta : -delta,
                after);
  }
};

}  // namespace shardscope::store
