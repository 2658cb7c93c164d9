// Model states: what ZeRO's expression predicts, what was measured, and what explains the difference.
#include "app/analysis/memory.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>

#include "app/analysis/outside_memory.h"
#include "app/analysis/summary.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

TEST(Memory, ExpressionOfTheRunsDataTypes) {
  for (const auto& [stage, text, bytes] :
       {std::tuple{0, "16S", 16000}, {1, "8S + 8S/n", 12000}, {2, "4S + 12S/n", 10000}, {3, "16S/n", 8000}}) {
    RunBuilder run(2, stage);  // fp32: the parameter is its own master
    const Summary s = summarize(run.build());
    EXPECT_EQ(s.memory_model.expression, text);
    EXPECT_EQ(s.memory_model.bytes_per_rank, bytes);
  }
}

// A recording whose detail was raised after the states were allocated holds gradients alone: no measurement.
TEST(Memory, TheLargestDevicePeakIsThatOfTheFirstRankThatHasIt) {
  Summary summary;
  EXPECT_FALSE(largest_device_peak(summary));
  EXPECT_FALSE(device_peak_mib(summary));
  const std::int64_t mib = 1 << 20;
  for (const auto& [rank, bytes] : {std::pair(0U, 2 * mib), {1U, 3 * mib}, {2U, 3 * mib}}) {
    summary.ranks.emplace_back().rank = rank;
    summary.ranks.back().memory_peak[ev::MemoryPool::device].bytes[0] = bytes;
    summary.ranks.back().memory_peak[ev::MemoryPool::host].bytes[0] = 9 * mib;
  }
  summary.ranks.emplace_back().rank = 3;  // recorded none
  ASSERT_TRUE(largest_device_peak(summary));
  EXPECT_EQ(largest_device_peak(summary)->rank->rank, 1U);
  EXPECT_EQ(device_peak_mib(summary), 3);
}

TEST(Memory, OutsideMemoryIsThatOfTheDeviceWhenItWasMost) {
  RunBuilder run(3);
  const auto sample = [&](std::uint32_t rank, std::int64_t at, ev::MemoryPool pool, std::int64_t bytes,
                          std::int64_t in_use) {
    run.instant(rank, at, EventKind::outside_memory, StreamId::host, ev::kNoId, ev::kNoId, ev::kNoId,
                static_cast<std::uint8_t>(pool), bytes, in_use);
  };
  sample(0, 10, ev::MemoryPool::device, 300, 900);
  sample(1, 10, ev::MemoryPool::device, 400, 700);
  sample(1, 20, ev::MemoryPool::device, 500, 800);
  sample(1, 30, ev::MemoryPool::device, 450, 950);
  sample(1, 40, ev::MemoryPool::host, 5000, 9000);
  const Summary summary = summarize(run.build());
  ASSERT_NE(most_outside(summary), nullptr);
  EXPECT_EQ(most_outside(summary)->rank, 1U);
  const auto ranks = nlohmann::json::parse(to_json(summary))["ranks"];
  EXPECT_EQ(ranks[1]["outside_memory"],
            nlohmann::json({{"most_bytes", 500}, {"in_use_bytes", 800}, {"at_ns", 10}}))
      << "10 ns after the run's first event";
  EXPECT_EQ(ranks[0]["outside_memory"]["most_bytes"], 300);
  EXPECT_TRUE(ranks[2]["outside_memory"].is_null()) << "not sampled";
  EXPECT_EQ(most_outside(Summary()), nullptr);
}

TEST(Memory, WhatMayBeOutsideIsSaidByWhoCountsAndWhere) {
  const auto of = [](const char* framework, const char* device) {
    ev::RunTables tables;
    tables.framework = framework;
    tables.device = device;
    return std::string(outside_contents(tables));
  };
  EXPECT_NE(of("", "cuda:0").find("other processes on that device"), std::string::npos);
  EXPECT_NE(of("FSDP2 (PyTorch 2.15.0)", "cuda:0").find("goes past PyTorch's allocator"), std::string::npos);
  EXPECT_NE(of("DDP", "cpu").find("of the process"), std::string::npos);
  EXPECT_EQ(of("my trainer", "cpu"), "what that program does not count itself");
}

TEST(Memory, WhatWasAllocatedAtLessDetailIsNotMeasured) {
  const auto measured = [](ev::Detail before) {
    RunBuilder run(2);
    run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
    run.instant(0, 1, EventKind::detail_changed, StreamId::host, static_cast<std::uint32_t>(before),
                ev::kNoId, ev::kNoId, static_cast<std::uint8_t>(ev::Detail::kernels));
    run.instant(0, 2, EventKind::memory_alloc, StreamId::host, ev::kNoId, ev::kNoId, ev::kNoId,
                static_cast<std::uint8_t>(ev::MemoryCategory::grad_full), 2048, 2048);
    return summarize(run.build()).memory_model.measured_bytes_per_rank;
  };
  EXPECT_EQ(measured(ev::Detail::steps), std::nullopt);
  EXPECT_EQ(measured(ev::Detail::modules), std::nullopt);
  EXPECT_EQ(measured(ev::Detail::params), 2048);
}

/// Nor is it a figure of the rank's.
TEST(Memory, WhatIsNotMeasuredIsNoPeakOfARankEither) {
  RunBuilder run(1);
  run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
  run.instant(0, 1, EventKind::detail_changed, StreamId::host,
              static_cast<std::uint32_t>(ev::Detail::modules), ev::kNoId, ev::kNoId,
              static_cast<std::uint8_t>(ev::Detail::kernels));
  run.instant(0, 2, EventKind::memory_alloc, StreamId::host, ev::kNoId, ev::kNoId, ev::kNoId,
              static_cast<std::uint8_t>(ev::MemoryCategory::grad_full), 2048, 2048);
  const Summary summary = summarize(run.build());
  EXPECT_TRUE(nlohmann::json::parse(to_json(summary))["ranks"][0]["model_state_peak_bytes"].is_null());
  EXPECT_EQ(summary.ranks.at(0).memory_peak.size(), 1U) << "of the pool it is a figure";
}

/// A gradient that was freed while events were dropped stays in every sum after it: no measurement either.
TEST(Memory, WhatFollowsMissingEventsIsNotMeasured) {
  const auto measured = [](std::uint64_t dropped, bool more_after) {
    RunBuilder run(2);
    const auto allocate = [&](std::int64_t at, std::int64_t bytes, std::int64_t pool) {
      run.instant(0, at, EventKind::memory_alloc, StreamId::host, ev::kNoId, ev::kNoId, ev::kNoId,
                  static_cast<std::uint8_t>(ev::MemoryCategory::grad_full), bytes, pool);
    };
    run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
    allocate(2, 2048, 2048);
    run.build();
    run.drop(0, dropped);
    run.span(0, 2000, 3000, EventKind::step_begin, StreamId::host, 1);
    if (more_after) allocate(2500, 512, 2560);
    return summarize(run.build()).memory_model.measured_bytes_per_rank;
  };
  EXPECT_EQ(measured(0, true), 2560);
  EXPECT_EQ(measured(3, true), std::nullopt);
  EXPECT_EQ(measured(3, false), 2048) << "the peak was before";
}

// Each of ZenFlow's extras has a line of its own: 1000 elements over two ranks in fp32, 100 of them chosen.
// Buffers are of whole blocks of 256 bytes.
/// The most may be what was held when the stretch began; the same while events are here and once they are
/// sealed into blocks.
TEST(Memory, TheHighestOfAStretchIsExact) {
  for (const bool sealed : {false, true}) {
    test::RunBuilder builder(1);
    if (sealed) builder.build().seal_after(2);
    const auto changes = [&](std::int64_t at, test::EventKind kind, std::int64_t bytes, std::int64_t after) {
      builder.instant(0, at, kind, test::StreamId::host, 0, ev::kNoId, ev::kNoId,
                      static_cast<std::uint8_t>(ev::MemoryCategory::activation), bytes, after);
    };
    changes(0, test::EventKind::memory_alloc, 500, 500);
    builder.build();
    changes(10, test::EventKind::memory_free, 400, 100);
    changes(20, test::EventKind::memory_alloc, 200, 300);
    builder.build();
    changes(30, test::EventKind::memory_alloc, 500, 800);
    const store::Store& store = builder.build();
    const auto highest = [&](std::int64_t from, std::int64_t to) {
      const store::MemorySample most = highest_memory(store, 0, ev::MemoryPool::device, from, to);
      return std::pair(most.total(), most.at_ns);
    };
    EXPECT_EQ(highest(5, 30), std::pair(std::int64_t{500}, std::int64_t{5})) << sealed;
    EXPECT_EQ(highest(10, 30), std::pair(std::int64_t{300}, std::int64_t{20})) << sealed;
    EXPECT_EQ(highest(10, 31), std::pair(std::int64_t{800}, std::int64_t{30})) << sealed;
    EXPECT_EQ(highest(0, 1), std::pair(std::int64_t{500}, std::int64_t{0})) << sealed;
  }
}

TEST(Memory, ZenFlowsExtrasAreNamed) {
  using ev::MemoryCategory;
  RunBuilder run(2);
  run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
  std::int64_t at = 0;
  const auto alloc = [&](ev::MemoryPool pool, MemoryCategory category, std::int64_t bytes) {
    run.instant(
        0, ++at, EventKind::memory_alloc, StreamId::host, ev::kNoId, ev::kNoId, ev::kNoId,
        static_cast<std::uint8_t>(static_cast<unsigned>(pool) << 4U | static_cast<unsigned>(category)), bytes,
        bytes);
  };
  alloc(ev::MemoryPool::device, MemoryCategory::param_shard, 2048);
  alloc(ev::MemoryPool::device, MemoryCategory::grad_shard, 2048);
  alloc(ev::MemoryPool::pinned, MemoryCategory::grad_shard, 2 * 2048);  // two sums
  for (const MemoryCategory state :
       {MemoryCategory::master_weight, MemoryCategory::momentum, MemoryCategory::variance}) {
    alloc(ev::MemoryPool::device, state, 512);
    alloc(ev::MemoryPool::pinned, state, 2048);
  }
  store::Store& store = run.build();
  ev::RunTables tables = store.tables();
  tables.config_json =
      R"({"zero_optimization": {"offload_optimizer": {"device": "cpu"}, "zenflow": {"overlap_step": true}}})";
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    tables.rank = rank;
    store.set_tables(rank, tables);
  }
  const MemoryModel model = summarize(store).memory_model;
  EXPECT_EQ(model.measured_bytes_per_rank, 2 * 2048 + 3 * 512);
  std::map<MemoryCause, std::int64_t> device;
  std::int64_t sum = model.bytes_per_rank;
  for (const MemoryPart& part : model.parts) {
    device[part.cause] = part.bytes;
    sum += part.bytes;
  }
  EXPECT_EQ(device, (std::map<MemoryCause, std::int64_t>{{MemoryCause::rounding, 48},
                                                         {MemoryCause::zenflow_chosen, 3 * 512},
                                                         {MemoryCause::zenflow_device_gradients, 2048}}));
  EXPECT_EQ(sum, model.measured_bytes_per_rank);
  EXPECT_EQ(model.unexplained_bytes, 0);
  ASSERT_EQ(model.offloaded.size(), 1U);
  const MemoryModel::Offloaded& host = model.offloaded.front();
  EXPECT_EQ(host.pool, ev::MemoryPool::pinned);
  ASSERT_EQ(host.parts.size(), 2U);
  EXPECT_EQ(host.parts[0].bytes, 4 * 48);  // rounding
  EXPECT_EQ(host.parts[1].cause, MemoryCause::zenflow_sums);
  EXPECT_EQ(host.parts[1].bytes, 2048);
  EXPECT_EQ(host.unexplained_bytes, 0);
}

// 1001 elements: our engine's flat buffer has one more, 16 bytes of states. A framework that keeps each
// parameter as a tensor of its own has none.
TEST(Memory, OnlyOurFlatBufferIsPaddedInStage0) {
  const auto model_of = [](const std::string& framework, std::int64_t elems) {
    RunBuilder run(2, 0, framework);
    run.change_tables([](ev::RunTables& tables) {
      tables.elems = tables.params[0].elems = 1001;
      tables.params[0].shape = {1001};
    });
    run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
    std::int64_t at = 10;
    for (const ev::MemoryCategory category : {ev::MemoryCategory::param_shard, ev::MemoryCategory::grad_full,
                                              ev::MemoryCategory::momentum, ev::MemoryCategory::variance}) {
      run.instant(0, at++, EventKind::memory_alloc, StreamId::host, ev::kNoId, ev::kNoId, ev::kNoId,
                  static_cast<std::uint8_t>(category), 4 * elems, 4 * elems);
    }
    return summarize(run.build()).memory_model;
  };
  const MemoryModel ddp = model_of("DistributedDataParallel (PyTorch 2.15.0)", 1001);
  EXPECT_EQ(ddp.bytes_per_rank, 16 * 1001);
  EXPECT_EQ(ddp.measured_bytes_per_rank, 16 * 1001);
  EXPECT_TRUE(ddp.parts.empty());
  EXPECT_EQ(ddp.unexplained_bytes, 0);

  const MemoryModel ours = model_of("", 1002);
  ASSERT_EQ(ours.parts.size(), 1U);
  EXPECT_EQ(ours.parts[0].cause, MemoryCause::padding);
  EXPECT_EQ(ours.parts[0].bytes, 16);
  EXPECT_EQ(ours.unexplained_bytes, 0);
}

/// Of a run of `framework` on two ranks whose rank 0 holds the states of one parameter
/// of 1000 fp32 elements in halves: `held` by category.
MemoryModel attached(std::int32_t stage, const std::string& framework,
                     const std::map<ev::MemoryCategory, std::int64_t>& held) {
  RunBuilder run(2, stage, framework);
  run.change_tables([](ev::RunTables& tables) {
    tables.slices = {{0, 0, 0, 0, 500, 0}, {0, 1, 500, 0, 500, 0}};
  });
  run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
  std::int64_t at = 10, total = 0;
  for (const auto& [category, bytes] : held) {
    total += bytes;
    run.instant(0, at++, EventKind::memory_alloc, StreamId::host, ev::kNoId, ev::kNoId, ev::kNoId,
                static_cast<std::uint8_t>(category), bytes, total);
  }
  return summarize(run.build()).memory_model;
}
std::map<MemoryCause, std::int64_t> parts_of(const MemoryModel& model) {
  std::map<MemoryCause, std::int64_t> parts;
  for (const MemoryPart& part : model.parts) parts[part.cause] += part.bytes;
  return parts;
}

/// Each rank owns half of the parameter and has its whole gradient, and with two micro-steps their sum, too.
TEST(Memory, DeepSpeedsGradientsBesideAPartitionAreNamed) {
  using Category = ev::MemoryCategory;
  const auto stage_2 = [](std::int64_t gradients) {
    return attached(2, "DeepSpeed 0.19.8, PyTorch 2.15.0",
                    {{Category::param_shard, 2000},
                     {Category::param_gathered, 2000},
                     {Category::grad_shard, gradients},
                     {Category::momentum, 2000},
                     {Category::variance, 2000}});
  };
  const MemoryModel once = stage_2(4000);
  EXPECT_EQ(once.bytes_per_rank, 10000);
  EXPECT_EQ(parts_of(once), (std::map<MemoryCause, std::int64_t>{{MemoryCause::cut_gradients, 2000}}));
  EXPECT_EQ(once.unexplained_bytes, 0);
  const MemoryModel twice = stage_2(8000 + 7);
  EXPECT_EQ(parts_of(twice), (std::map<MemoryCause, std::int64_t>{{MemoryCause::cut_gradients, 2000},
                                                                  {MemoryCause::earlier_gradients, 4007}}));
  EXPECT_EQ(twice.unexplained_bytes, 0);
  // The expression of stage 1 has all gradients: those that are reduced already are among them.
  const MemoryModel stage_1 = attached(1, "DeepSpeed 0.19.8, PyTorch 2.15.0",
                                       {{Category::param_shard, 2000},
                                        {Category::param_gathered, 2000},
                                        {Category::grad_shard, 1000},
                                        {Category::grad_full, 3000},
                                        {Category::momentum, 2000},
                                        {Category::variance, 2000}});
  EXPECT_EQ(stage_1.bytes_per_rank, 12000);
  EXPECT_TRUE(stage_1.parts.empty());
  EXPECT_EQ(stage_1.unexplained_bytes, 0);
  // Of our own runs nothing of the kind is known.
  const MemoryModel ours = attached(2, "",
                                    {{Category::param_shard, 2000},
                                     {Category::param_gathered, 2000},
                                     {Category::grad_shard, 4000},
                                     {Category::momentum, 2000},
                                     {Category::variance, 2000}});
  EXPECT_EQ(ours.unexplained_bytes, 2000);
}

TEST(Memory, SecondaryShardsOfFsdp2AreNamed) {
  using Category = ev::MemoryCategory;
  const std::map<Category, std::int64_t> held = {{Category::param_shard, 2000},
                                                 {Category::param_secondary, 4000},
                                                 {Category::grad_shard, 2000},
                                                 {Category::momentum, 2000},
                                                 {Category::variance, 2000}};
  const MemoryModel fsdp2 = attached(3, "FSDP2 (PyTorch 2.15.0)", held);
  EXPECT_EQ(fsdp2.bytes_per_rank, 8000);
  EXPECT_EQ(parts_of(fsdp2), (std::map<MemoryCause, std::int64_t>{{MemoryCause::secondary_shards, 4000}}));
  EXPECT_EQ(fsdp2.unexplained_bytes, 0);
  EXPECT_EQ(attached(3, "FSDP1 (PyTorch 2.15.0)", held).unexplained_bytes, 4000);
}

TEST(Memory, OfAGroupWhoseGradientsAreWholeTheShardsDoNotExistYet) {
  using Category = ev::MemoryCategory;
  std::map<Category, std::int64_t> held = {{Category::param_shard, 2000},
                                           {Category::grad_full, 1000},
                                           {Category::grad_shard, 1500},
                                           {Category::momentum, 2000},
                                           {Category::variance, 2000}};
  const MemoryModel fsdp2 = attached(3, "FSDP2 (PyTorch 2.15.0)", held);
  EXPECT_EQ(parts_of(fsdp2), (std::map<MemoryCause, std::int64_t>{{MemoryCause::whole_gradients, 1000},
                                                                  {MemoryCause::later_gradients, -500}}));
  EXPECT_EQ(fsdp2.unexplained_bytes, 0);
  // Without whole gradients nothing says that there will be more shards.
  held.erase(Category::grad_full);
  EXPECT_EQ(attached(3, "FSDP2 (PyTorch 2.15.0)", held).unexplained_bytes, -500);
}

// What no expression, padding or known buffer accounts for is said, in the pool where it is.
TEST(Memory, AnUnknownBufferIsUnexplainedInItsPool) {
  RunBuilder run(1);
  run.span(0, 0, 1000, EventKind::step_begin, StreamId::host, 0);
  const auto place = static_cast<unsigned>(ev::MemoryPool::pinned) << 4U;
  run.instant(0, 10, EventKind::memory_alloc, StreamId::host, ev::kNoId, ev::kNoId, ev::kNoId,
              static_cast<std::uint8_t>(place | static_cast<unsigned>(ev::MemoryCategory::momentum)),
              4096 + 256, 4096 + 256);
  store::Store& store = run.build();
  ev::RunTables tables = store.tables();
  tables.config_json = R"({"zero_optimization": {"offload_optimizer": {"device": "cpu"}}})";
  store.set_tables(0, tables);
  const MemoryModel model = summarize(store).memory_model;
  ASSERT_EQ(model.offloaded.size(), 1U);
  // Gradients and three states of 1000 fp32 elements are expected, one buffer too large is there.
  EXPECT_EQ(model.offloaded[0].bytes_per_rank, 16000);
  EXPECT_EQ(model.offloaded[0].unexplained_bytes, 4096 + 256 - 4 * 4096);
}

}  // namespace
}  // namespace shardscope::analysis
