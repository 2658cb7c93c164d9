// Tables of two runs by module and rank: what differs is named, what only scatters is not.
#include "app/analysis/compared_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/app/analysis/made_steps.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

/// Steps of one rank, each with a forward of module 1 that takes about so many microseconds.
store::Store* forwards(RunBuilder& run, unsigned seed, std::int64_t us) {
  std::mt19937 random(seed);
  std::int64_t at = 0;
  for (std::uint32_t step = 0; step < 30; ++step) {
    const std::int64_t work = (us + static_cast<std::int64_t>(random() % 20)) * 1000;
    run.span(0, at, at + work + 5000, EventKind::step_begin, StreamId::host, step);
    run.span(0, at + 100, at + 100 + work, EventKind::module_begin, StreamId::compute, 1, 0);
    at += work + 10'000;
  }
  return &run.build();
}

TEST(ComparedRows, OfModulesTheOneThatIsSlowerDiffers) {
  RunBuilder first(1, 0), second(1, 0), third(1, 0);
  const store::Store *a = forwards(first, 1, 200), *b = forwards(second, 2, 400),
                     *c = forwards(third, 3, 200);
  const Summary sa = summarize(*a), sb = summarize(*b), sc = summarize(*c);
  const ComparedRows slower = compare_by({a, &sa}, {b, &sb}, CompareBy::module);
  ASSERT_EQ(slower.rows.size(), 1U);
  EXPECT_EQ(slower.rows[0].name, "layer");
  EXPECT_EQ(slower.rows[0].figure, "forward");
  EXPECT_TRUE(slower.rows[0].differs());
  EXPECT_NEAR(slower.rows[0].change(), 0.2, 0.03);
  EXPECT_FALSE(compare_by({a, &sa}, {c, &sc}, CompareBy::module).rows[0].differs());
  const ComparedRows last = compare_by({a, &sa}, {b, &sb}, CompareBy::module, 1);
  ASSERT_EQ(last.rows.size(), 1U);
  EXPECT_NEAR(last.rows[0].change(), 0.2, 0.03);
  EXPECT_FALSE(last.rows[0].interval) << "of one step each there is none";
  const ComparedRows ranks = compare_by({a, &sa}, {b, &sb}, CompareBy::rank);
  ASSERT_FALSE(ranks.rows.empty());
  EXPECT_EQ(ranks.rows[0].figure, "computation");
  EXPECT_TRUE(ranks.rows[0].differs());
  EXPECT_GT(ranks.confidence, 0.95) << "several rows together hold with 95 %";
  const ComparedRows each =
      compare_by({a, &sa}, {b, &sb}, CompareBy::rank, SIZE_MAX, SIZE_MAX, Confidence::each_row);
  EXPECT_DOUBLE_EQ(each.confidence, 0.95);
  EXPECT_LT(each.rows[0].interval->high - each.rows[0].interval->low,
            ranks.rows[0].interval->high - ranks.rows[0].interval->low);
}

/// 41 steps of one rank in which six modules, in order of id from 1, compute for times with noise that
/// depends on the step before: AR(1), 3 % each.
struct SixModules {
  RunBuilder builder{1, 0};
  const store::Store* store = nullptr;
  Summary summary;
  explicit SixModules(unsigned seed) {
    constexpr std::uint32_t kModules = 6;
    builder.change_tables([](ev::RunTables& tables) {
      for (std::uint32_t id = 2; id <= kModules; ++id)
        tables.modules.push_back({id, 0, "layer" + std::to_string(id), "Linear", {}, true});
    });
    std::vector<std::vector<double>> ms;
    for (std::uint32_t module = 0; module < kModules; ++module)
      ms.push_back(noisy(seed * kModules + module, 100));
    std::int64_t at = 0;
    for (std::uint32_t step = 0; step < ms[0].size(); ++step) {
      const std::int64_t begin = at;
      for (std::uint32_t module = 0; module < kModules; ++module) {
        const auto length = static_cast<std::int64_t>(ms[module][step] * 1e4);
        builder.span(0, at, at + length, EventKind::module_begin, StreamId::compute, module + 1, 0);
        at += length + 1000;
      }
      builder.span(0, begin, at, EventKind::step_begin, StreamId::host, step);
      at += 1000;
    }
    store = &builder.build();
    summary = summarize(*store);
  }
};

/// All rows of a table together: a table with six rows at 95 % each would differ somewhere in a quarter of
/// them.
TEST(ComparedRows, OfTwoHundredPairsOfLikeRunsFewTablesHaveARowThatDiffers) {
  int tables = 0, rows = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const SixModules a(2 * seed), b(2 * seed + 1);
    const ComparedRows found = compare_by({a.store, &a.summary}, {b.store, &b.summary}, CompareBy::module);
    ASSERT_EQ(found.rows.size(), 6U);
    const auto differ = std::ranges::count_if(found.rows, &ComparedRow::differs);
    tables += differ > 0 ? 1 : 0;
    const ComparedRows each = compare_by({a.store, &a.summary}, {b.store, &b.summary}, CompareBy::module,
                                         SIZE_MAX, SIZE_MAX, Confidence::each_row);
    rows += static_cast<int>(std::ranges::count_if(each.rows, &ComparedRow::differs));
  }
  EXPECT_LE(tables, 18);
  EXPECT_LE(rows, 6 * 18) << "of 1,200 rows with an interval of their own";
  EXPECT_GT(rows, tables) << "the joint intervals are the wider ones";
}

/// Steps with two kernels on the GPU, of which the second takes so many microseconds, and a copy that is
/// none.
store::Store* kernels(RunBuilder& run, unsigned seed, std::int64_t us, int launches) {
  std::mt19937 random(seed);
  const auto gpu = [&](std::int64_t from, std::int64_t length, std::uint32_t name, ev::GpuWork work) {
    run.span(0, from, from + length, EventKind::gpu_begin, StreamId::gpu_compute, name, 1,
             ev::gpu_code(work, ev::GpuOwner::forward), 100, 256);
  };
  for (std::uint32_t step = 0; step < 30; ++step) {
    const std::int64_t at = step * 2'000'000, scatter = static_cast<std::int64_t>(random() % 9) * 1000;
    run.span(0, at, at + 1'900'000, EventKind::step_begin, StreamId::host, step);
    run.span(0, at, at + 1'800'000, EventKind::module_begin, StreamId::compute, 1, 0);
    gpu(at + 1000, 100'000 + scatter, 7, ev::GpuWork::kernel);
    for (int i = 0; i < launches; ++i)
      gpu(at + 200'000 + i * 400'000, us * 1000 + scatter, 8, ev::GpuWork::kernel);
    gpu(at + 1'700'000, 10'000, 9, ev::GpuWork::device_to_device);
  }
  return &run.build();
}

TEST(ComparedRows, OfKernelsTheOneThatIsSlowerOrLaunchedMoreOftenDiffers) {
  RunBuilder first(1, 0), second(1, 0);
  const store::Store *a = kernels(first, 1, 100, 1), *b = kernels(second, 2, 200, 2);
  const Summary sa = summarize(*a), sb = summarize(*b);
  const ComparedRows rows = compare_by({a, &sa}, {b, &sb}, CompareBy::kernel);
  ASSERT_EQ(rows.rows.size(), 4U) << "two kernels, time and launches; a copy is none";
  EXPECT_EQ(rows.rows[0].name, "kernel 8");
  EXPECT_EQ(rows.rows[0].figure, "time");
  EXPECT_TRUE(rows.rows[0].differs());
  EXPECT_NEAR(rows.rows[0].change(), 0.3, 0.02);
  EXPECT_EQ(rows.rows[1].name, "kernel 7");
  EXPECT_FALSE(rows.rows[1].differs());
  EXPECT_EQ(rows.rows[2].figure, "launches");
  EXPECT_EQ(rows.rows[2].change(), 1);
  RunBuilder none(1, 0);
  const store::Store* c = forwards(none, 3, 200);
  const Summary sc = summarize(*c);
  EXPECT_NE(compare_by({c, &sc}, {c, &sc}, CompareBy::kernel).note.find("--detail kernels"),
            std::string::npos);
}

/// Ten steps, of which the last six recorded kernels on the GPU, and all of them those of the host.
TEST(ComparedRows, KernelsAreOfTheStepsThatRecordedThemAndOfOneSource) {
  RunBuilder run(1, 0);
  for (std::uint32_t step = 0; step < 10; ++step) {
    const std::int64_t at = step * 2'000'000;
    run.span(0, at, at + 1'900'000, EventKind::step_begin, StreamId::host, step);
    run.span(0, at, at + 1'800'000, EventKind::module_begin, StreamId::compute, 1, 0);
    run.span(0, at + 1000, at + 1'001'000, EventKind::kernel_begin, StreamId::compute, 7);
    if (step >= 4)
      run.span(0, at + 1000, at + 101'000, EventKind::gpu_begin, StreamId::gpu_compute, 7, 1,
               ev::gpu_code(ev::GpuWork::kernel, ev::GpuOwner::forward), 100, 256);
  }
  const store::Store* store = &run.build();
  const Summary summary = summarize(*store);
  const ComparedRows rows = compare_by({store, &summary}, {store, &summary}, CompareBy::kernel);
  ASSERT_EQ(rows.rows.size(), 2U);
  EXPECT_NEAR(*rows.rows[0].a, 0.1, 1e-9) << "the GPU's, in the steps that have it";
  EXPECT_EQ(*rows.rows[1].a, 1) << "one launch, not one of each source";
}

/// Two ranks of which the second takes three times as long and launches twice as often.
TEST(ComparedRows, OfSeveralRanksTheMeanIsCompared) {
  RunBuilder run(2);
  for (std::uint32_t step = 0; step < 6; ++step) {
    const std::int64_t at = step * std::int64_t{1'000'000};
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      run.span(rank, at, at + 900'000, EventKind::step_begin, StreamId::host, step);
      const std::int64_t work = rank == 0 ? 100'000 : 300'000;
      run.span(rank, at + 1000, at + 1000 + work, EventKind::module_begin, StreamId::compute, 1, 0);
      for (std::uint32_t launch = 0; launch <= rank; ++launch) {
        const std::int64_t from = at + 2000 + launch * 60'000;
        run.span(rank, from, from + 50'000, EventKind::kernel_begin, StreamId::compute, 7);
      }
      run.span(rank, at + 400, at + 500 + 100 * rank, EventKind::fetch_wait_begin, StreamId::compute, 1);
      // Parameter 0 is whole for as long as the module runs.
      for (const bool whole : {true, false})
        run.instant(rank, at + 1000 + (whole ? 0 : work), EventKind::param_status, StreamId::compute, 0, 1, 4,
                    whole ? 2 : 0);
    }
  }
  const store::Store* store = &run.build();
  const Summary summary = summarize(*store);
  const auto first = [&](CompareBy by, const std::string& figure) {
    const ComparedRows rows = compare_by({store, &summary}, {store, &summary}, by);
    const auto found = std::ranges::find(rows.rows, figure, &ComparedRow::figure);
    return found == rows.rows.end() ? -1 : found->a.value_or(-1);
  };
  EXPECT_NEAR(first(CompareBy::module, "forward"), 0.2, 1e-9);
  EXPECT_NEAR(first(CompareBy::kernel, "time"), 0.075, 1e-9);
  EXPECT_NEAR(first(CompareBy::kernel, "launches"), 1.5, 1e-9);
  EXPECT_NEAR(first(CompareBy::parameter, "whole on a rank"), 0.2, 1e-9);
  EXPECT_NEAR(first(CompareBy::wait, "time"), 150e-6, 1e-9);
  EXPECT_NEAR(first(CompareBy::wait, "waits"), 1, 1e-9);
  const ComparedRows some = compare_by({store, &summary}, {store, &summary}, CompareBy::module, SIZE_MAX,
                                       SIZE_MAX, Confidence::each_row, {}, {2, 3});
  ASSERT_FALSE(some.rows.empty());
  EXPECT_EQ(some.rows[0].in_a.size(), 2U) << "only these steps";
  EXPECT_EQ(some.rows[0].in_a.begin()->first, 2U);
}

TEST(ComparedRows, WhatWasNotRecordedIsSaid) {
  RunBuilder first(1, 0), second(1, 0);
  const store::Store *a = forwards(first, 1, 200), *b = forwards(second, 2, 200);
  const Summary sa = summarize(*a), sb = summarize(*b);
  const ComparedRows params = compare_by({a, &sa}, {b, &sb}, CompareBy::parameter);
  EXPECT_TRUE(params.rows.empty());
  EXPECT_NE(params.note.find("--detail params"), std::string::npos) << params.note;
  EXPECT_NE(compare_by({a, &sa}, {b, &sb}, CompareBy::memory).note.find("not recorded"), std::string::npos);
}

}  // namespace
}  // namespace shardscope::analysis
