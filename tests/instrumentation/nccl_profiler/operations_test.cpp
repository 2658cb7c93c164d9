// The pool of operations, the GPU's clock and NCCL's words by themselves.
#include "instrumentation/nccl_profiler/operations.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "instrumentation/nccl_profiler/gpu_clock.h"
#include "instrumentation/nccl_profiler/words.h"

namespace shardscope::nccl_profiler {
namespace {

namespace ev = instrumentation;

struct Kept : Operations::Reader {
  std::vector<OperationFacts> begun, over;
  std::vector<OperationTimes> times;
  void started(const OperationFacts& facts) override { begun.push_back(facts); }
  void ended(const OperationFacts& facts, const OperationTimes& t) override {
    over.push_back(facts);
    times.push_back(t);
  }
};

OperationFacts facts(std::uint32_t sequence, std::int64_t at_ns, std::uint8_t channels = 0) {
  OperationFacts out;
  out.sequence = sequence;
  out.started_ns = at_ns;
  out.channels = channels;
  return out;
}

TEST(Operations, AreReportedOnceInOrderAndEndWhenAllIsKnown) {
  Operations pool;
  Kept kept;
  void* second = pool.start(facts(2, 200, 1));
  void* first = pool.start(facts(1, 100));
  EXPECT_EQ(pool.collect(kept, 300, 1000), 2U);
  ASSERT_EQ(kept.begun.size(), 2U);
  EXPECT_EQ(kept.begun[0].sequence, 1U);
  EXPECT_EQ(kept.begun[1].sequence, 2U);
  EXPECT_TRUE(kept.over.empty());
  pool.stop(Handle::unpack(first));
  pool.stop(Handle::unpack(second));
  EXPECT_EQ(pool.collect(kept, 310, 1000), 1U) << "the second waits for its channel";
  void* channel = pool.begin_channel(Handle::unpack(second), 7, 5000, 320);
  void* proxy = pool.begin_proxy(Handle::unpack(second), 330);
  pool.end_channel(Handle::unpack(channel), 6000, 340);
  EXPECT_EQ(pool.collect(kept, 350, 1000), 1U) << "and for its network operation";
  pool.end_proxy(Handle::unpack(proxy), 360);
  EXPECT_EQ(pool.collect(kept, 370, 1000), 0U);
  EXPECT_EQ(kept.begun.size(), 2U);
  ASSERT_EQ(kept.over.size(), 2U);
  EXPECT_EQ(kept.over[1].sequence, 2U);
  EXPECT_EQ(kept.times[0].channels_timed, 0U);
  EXPECT_EQ(kept.times[1].channels_timed, 1U);
  EXPECT_EQ(kept.times[1].begin_gpu_ns, 5000U);
  EXPECT_EQ(kept.times[1].end_gpu_ns, 6000U);
  EXPECT_EQ(kept.times[1].proxy_end_ns - kept.times[1].proxy_begin_ns, 30);
}

TEST(Operations, SilentOnesAreGivenUp) {
  Operations pool;
  Kept kept;
  void* handle = pool.start(facts(1, 100, 2));
  EXPECT_EQ(pool.collect(kept, 1000, 1000), 1U);
  EXPECT_NE(pool.begin_channel(Handle::unpack(handle), 0, 1, 600), nullptr);
  EXPECT_EQ(pool.collect(kept, 1500, 1000), 1U) << "there was a report at 600";
  EXPECT_EQ(pool.collect(kept, 1600, 1000), 0U);
  ASSERT_EQ(kept.over.size(), 1U);
  EXPECT_EQ(kept.times[0].channels_timed, 0U) << "a channel that began and did not end has no time";
  EXPECT_EQ(pool.begin_channel(Handle::unpack(handle), 1, 1, 1700), nullptr);
}

TEST(Operations, AReportThatComesTwiceCountsOnce) {
  Operations pool;
  Kept kept;
  void* handle = pool.start(facts(1, 0, 2));
  pool.stop(Handle::unpack(handle));
  void* channel = pool.begin_channel(Handle::unpack(handle), 0, 10, 1);
  pool.end_channel(Handle::unpack(channel), 20, 2);
  pool.end_channel(Handle::unpack(channel), 25, 3);
  EXPECT_EQ(pool.collect(kept, 4, 1000), 1U);
  void* last = pool.begin_channel(Handle::unpack(handle), 1, 10, 5);
  pool.end_channel(Handle::unpack(last), 30, 6);
  EXPECT_EQ(pool.collect(kept, 7, 1000), 0U);
}

TEST(GpuClock, TheLeastDistanceIsTheNearestToTheTruth) {
  GpuClock clock;
  EXPECT_FALSE(clock.host_ns(5).has_value());
  clock.observe(1000, 51'500);
  clock.observe(2000, 52'010);  // the quickest report
  clock.observe(3000, 54'000);
  EXPECT_EQ(clock.host_ns(1000), 51'010);
  clock.turn();
  EXPECT_EQ(clock.host_ns(1000), 51'010);
  clock.observe(4000, 54'500);
  EXPECT_EQ(clock.host_ns(4000), 54'010) << "what was seen a turn ago still counts";
  clock.turn();
  EXPECT_EQ(clock.host_ns(4000), 54'500) << "two turns ago does not: the clocks drift";
  clock.turn();
  EXPECT_EQ(clock.host_ns(4000), 54'500) << "unless nothing was seen since";
}

TEST(NcclWords, KnownAndUnknown) {
  EXPECT_EQ(operation_of("AllReduce"), ev::CollectiveOp::all_reduce);
  EXPECT_EQ(operation_of("Send"), std::nullopt);
  EXPECT_EQ(operation_of(nullptr), std::nullopt);
  EXPECT_EQ(algorithm_of("NVLS_TREE"), ev::NcclAlgorithm::nvls_tree);
  EXPECT_EQ(algorithm_of("nvls_tree"), ev::NcclAlgorithm::unknown);
  EXPECT_EQ(protocol_of("SIMPLE"), ev::NcclProtocol::simple);
  EXPECT_EQ(type_of("ncclBfloat16").bytes, 2);
  EXPECT_EQ(type_of("ncclFloat99").bytes, 0);
  EXPECT_EQ(parts_of(ev::CollectiveOp::all_gather, 8), 8);
  EXPECT_EQ(parts_of(ev::CollectiveOp::all_reduce, 8), 1);
}

}  // namespace
}  // namespace shardscope::nccl_profiler
