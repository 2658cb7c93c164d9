// Every inline function of the headers, with a library that only keeps what it is given: each
// kind can be emitted, and its fields are in the slots of docs/events.md.
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <vector>

#include "instrumentation/event.h"
#include "shardscope/shardscope.h"
#include "tests/instrumentation/enumerators.h"
#include "tests/instrumentation/packed_codes.h"

namespace {

struct Taken {
  shardscope_event event;
  std::optional<std::int64_t> at_ns;
};
std::vector<Taken> g_taken;

}  // namespace

extern "C" {
void shardscope_emit(const shardscope_event* event) { g_taken.push_back({*event, std::nullopt}); }
void shardscope_emit_at(int64_t monotonic_ns, const shardscope_event* event) {
  g_taken.push_back({*event, monotonic_ns});
}
}

namespace shardscope {
namespace {

namespace ev = instrumentation;
constexpr std::uint32_t kNone = SHARDSCOPE_NO_ID;

void expect_last(int kind, int lane, int code, std::vector<std::uint32_t> ids,
                 std::vector<std::int64_t> values, std::optional<std::int64_t> at_ns = std::nullopt) {
  ASSERT_FALSE(g_taken.empty());
  const auto& [event, at] = g_taken.back();
  SCOPED_TRACE(ev::name_of(static_cast<ev::EventKind>(kind)));
  EXPECT_EQ(event.kind, kind);
  EXPECT_EQ(event.lane, lane);
  EXPECT_EQ(event.code, code);
  EXPECT_EQ((std::vector<std::uint32_t>{event.a, event.b, event.c}), ids);
  EXPECT_EQ((std::vector<std::int64_t>{event.v0, event.v1}), values);
  EXPECT_EQ(at, at_ns);
}

TEST(Events, ACollectiveSaysAmongWhichRanksItIs) {
  const std::uint32_t code = shardscope_collective_code(SHARDSCOPE_I8, SHARDSCOPE_SCOPE_INTRA_NODE, 8);
  EXPECT_EQ(code, ev::collective_code(3, ev::CollectiveScope::intra_node, 8));
  EXPECT_EQ(shardscope_collective_code(0, 0, 70'000) >> 16, 70'000U & 0xFFFFU);
  shardscope_collective_begin_among(SHARDSCOPE_LANE_GATHER, SHARDSCOPE_ALL_GATHER, 5, 6, code, 7, 8);
  expect_last(SHARDSCOPE_EVENT_COLLECTIVE_BEGIN, SHARDSCOPE_LANE_GATHER, SHARDSCOPE_ALL_GATHER, {5, 6, code},
              {7, 8});
  shardscope_collective_end_among(SHARDSCOPE_LANE_GATHER, SHARDSCOPE_ALL_GATHER, 5, 6, code, 7, 8);
  expect_last(SHARDSCOPE_EVENT_COLLECTIVE_END, SHARDSCOPE_LANE_GATHER, SHARDSCOPE_ALL_GATHER, {5, 6, code},
              {7, 8});
}

TEST(Events, ANumberOfPartsIsNoScope) {
  for (const std::uint32_t parts : {1U, 256U, 1024U, 65'536U}) {
    shardscope_collective_begin(SHARDSCOPE_LANE_REDUCE, SHARDSCOPE_REDUCE_SCATTER, 5, 6, parts, 7, 8);
    expect_last(SHARDSCOPE_EVENT_COLLECTIVE_BEGIN, SHARDSCOPE_LANE_REDUCE, SHARDSCOPE_REDUCE_SCATTER,
                {5, 6, kNone}, {7, 8});
  }
  shardscope_collective_submitted(SHARDSCOPE_REDUCE_SCATTER, 5, 6, 65'536, 7, 8);
  expect_last(SHARDSCOPE_EVENT_COLLECTIVE_SUBMITTED, SHARDSCOPE_LANE_HOST, SHARDSCOPE_REDUCE_SCATTER,
              {5, 6, 65'536}, {7, 8});
  shardscope_collective_end(SHARDSCOPE_LANE_REDUCE, SHARDSCOPE_REDUCE_SCATTER, 5, 6, SHARDSCOPE_BF16, 7, 8);
  expect_last(SHARDSCOPE_EVENT_COLLECTIVE_END, SHARDSCOPE_LANE_REDUCE, SHARDSCOPE_REDUCE_SCATTER,
              {5, 6, ev::collective_code(1, ev::CollectiveScope::world, 0)}, {7, 8});
}

TEST(Events, AnUpdateAndASelectionMaySayWhy) {
  shardscope_columns_selected_because(SHARDSCOPE_SELECTION_INTERVAL, 1, 2, 3, 4, 5);
  expect_last(SHARDSCOPE_EVENT_COLUMNS_SELECTED, SHARDSCOPE_LANE_HOST, SHARDSCOPE_SELECTION_INTERVAL,
              {1, 2, 3}, {4, 5});
  shardscope_columns_selected(1, 2, 3, 4, 5);
  expect_last(SHARDSCOPE_EVENT_COLUMNS_SELECTED, SHARDSCOPE_LANE_HOST, SHARDSCOPE_SELECTION_NOT_RECORDED,
              {1, 2, 3}, {4, 5});
  shardscope_deferred_update_because(SHARDSCOPE_DEFERRED_BEGUN, SHARDSCOPE_UPDATE_VOTES, 2, 3, 4);
  expect_last(SHARDSCOPE_EVENT_DEFERRED_UPDATE, SHARDSCOPE_LANE_HOST, SHARDSCOPE_DEFERRED_BEGUN,
              {SHARDSCOPE_UPDATE_VOTES, 2, 3}, {4, 0});
  shardscope_deferred_update(SHARDSCOPE_DEFERRED_BEGUN, 2, 3, 4);
  expect_last(SHARDSCOPE_EVENT_DEFERRED_UPDATE, SHARDSCOPE_LANE_HOST, SHARDSCOPE_DEFERRED_BEGUN,
              {kNone, 2, 3}, {4, 0});
  shardscope_update_votes(1, 2, 3, 0.5, 4);
  expect_last(SHARDSCOPE_EVENT_UPDATE_VOTES, SHARDSCOPE_LANE_HOST, 0, {1, 2, 3}, {shardscope_bits_(0.5), 4});
}

TEST(Events, OfTheGpuHaveItsTimes) {
  const std::uint8_t copy = ev::gpu_code(ev::GpuWork::device_to_host, ev::GpuOwner::transfer);
  shardscope_gpu_begin(10, SHARDSCOPE_LANE_GPU_COPY, SHARDSCOPE_GPU_DEVICE_TO_HOST,
                       SHARDSCOPE_GPU_OWNER_TRANSFER, 1, 2, 3, SHARDSCOPE_NO_DELAY, 4);
  expect_last(SHARDSCOPE_EVENT_GPU_BEGIN, SHARDSCOPE_LANE_GPU_COPY, copy, {1, 2, 3}, {ev::kNoDelay, 4}, 10);
  shardscope_gpu_end(11, SHARDSCOPE_LANE_GPU_COPY, SHARDSCOPE_GPU_DEVICE_TO_HOST,
                     SHARDSCOPE_GPU_OWNER_TRANSFER, 1, 2, 3, -5, 4);
  expect_last(SHARDSCOPE_EVENT_GPU_END, SHARDSCOPE_LANE_GPU_COPY, copy, {1, 2, 3}, {-5, 4}, 11);
  shardscope_gpu_sync_begin(12, SHARDSCOPE_GPU_SYNC_STREAM, 9);
  expect_last(SHARDSCOPE_EVENT_GPU_SYNC_BEGIN, SHARDSCOPE_LANE_GPU_HOST, SHARDSCOPE_GPU_SYNC_STREAM,
              {9, kNone, kNone}, {0, 0}, 12);
  shardscope_gpu_sync_end(13, SHARDSCOPE_GPU_SYNC_STREAM, 9);
  expect_last(SHARDSCOPE_EVENT_GPU_SYNC_END, SHARDSCOPE_LANE_GPU_HOST, SHARDSCOPE_GPU_SYNC_STREAM,
              {9, kNone, kNone}, {0, 0}, 13);
  shardscope_gpu_records_begin(14, 1, 2, 3, 4, 5);
  expect_last(SHARDSCOPE_EVENT_GPU_RECORDS_BEGIN, SHARDSCOPE_LANE_GPU_RECORDS, 0, {1, 2, 3}, {4, 5}, 14);
  shardscope_gpu_records_end(15, 1, 2, 3, 4, 5);
  expect_last(SHARDSCOPE_EVENT_GPU_RECORDS_END, SHARDSCOPE_LANE_GPU_RECORDS, 0, {1, 2, 3}, {4, 5}, 15);
  shardscope_gpu_memory(16, SHARDSCOPE_POOL_PINNED, 1, 4096, 0x1000);
  expect_last(SHARDSCOPE_EVENT_GPU_MEMORY, SHARDSCOPE_LANE_HOST,
              shardscope::test::gpu_memory_code(ev::MemoryPool::pinned, true), {kNone, kNone, kNone},
              {4096, 0x1000}, 16);
  shardscope_gpu_clock(17, 30, 400, -50);
  expect_last(SHARDSCOPE_EVENT_GPU_CLOCK, SHARDSCOPE_LANE_HOST, 0, {30, kNone, kNone}, {400, -50}, 17);
}

template <typename... Args>
void call_with_zeros(void (*function)(Args...)) {
  function(Args{}...);
}

TEST(Events, EveryKindHasAFunction) {
  g_taken.clear();
#define SHARDSCOPE_CALL_none(name) call_with_zeros(&shardscope_##name);
#define SHARDSCOPE_CALL_wait(name) call_with_zeros(&shardscope_##name);
#define SHARDSCOPE_CALL_work(name) call_with_zeros(&shardscope_##name);
#define SHARDSCOPE_CALL_state(name) call_with_zeros(&shardscope_##name);
#define SHARDSCOPE_CALL_step_value(name) call_with_zeros(&shardscope_##name);
#define SHARDSCOPE_CALL_library(name)
#define EVENT(number, name, shape, role, ...) SHARDSCOPE_CALL_##role(name)
#define FIELD(...)
#define BITS(...)
#include "instrumentation/event_kinds.def"
  std::set<int> emitted;
  for (const Taken& taken : g_taken) emitted.insert(taken.event.kind);
  EXPECT_EQ(emitted.size(), g_taken.size()) << "two functions emit the same kind";
  for (const test::Enumerator& kind : test::enumerators<ev::EventKind>()) {
    const bool by_library = ev::role_of(static_cast<ev::EventKind>(kind.value)) == ev::EventRole::library;
    EXPECT_NE(emitted.contains(kind.value), by_library) << kind.name;
  }
}

}  // namespace
}  // namespace shardscope
