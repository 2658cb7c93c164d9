// Sampled counters: states, rates of accumulated values, and those that the library samples.
#include "app/analysis/counters.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

constexpr std::int64_t kSampleSecond = 1'000'000'000;

void sample(RunBuilder& run, std::int64_t at_ns, std::uint32_t name, double value, bool accumulated = false,
            std::uint32_t unit = ev::kNoId) {
  run.instant(0, at_ns, EventKind::counter, StreamId::host, name, unit, ev::kNoId, accumulated ? 1 : 0,
              std::bit_cast<std::int64_t>(value));
}
void gpu(RunBuilder& run, std::int64_t at_ns, std::int64_t energy_mj, std::uint32_t mhz = ev::kNoId) {
  run.instant(0, at_ns, EventKind::gpu_sample, StreamId::host, mhz, ev::kNoId, ev::kNoId, 0, energy_mj,
              kSampleSecond);
}
CounterLog read(store::Store& store) {
  return counters_of(store, 0, store::Store::kBegin, store::Store::kEnd);
}

TEST(Counters, AStateHoldsUntilTheNextSample) {
  RunBuilder run(1);
  sample(run, 0, 1, 3.5, false, 2);
  sample(run, kSampleSecond, 1, -7, false, 2);
  store::Store& store = run.build();
  store.add_name(0, 1, "queue");
  store.add_name(0, 2, "requests");
  const CounterLog log = read(store);
  const CounterSeries* const queue = log.find("queue");
  ASSERT_NE(queue, nullptr);
  EXPECT_EQ(queue->unit, "requests");
  EXPECT_TRUE(queue->own);
  EXPECT_FALSE(queue->rate);
  ASSERT_EQ(queue->samples.size(), 2U);
  EXPECT_EQ(queue->samples[0].value, 3.5);
  EXPECT_EQ(queue->samples[0].until_ns, CounterSample::kUntilNext);
  EXPECT_EQ(queue->samples[1].value, -7);
  EXPECT_EQ(queue->samples[1].at_ns - queue->samples[0].at_ns, kSampleSecond);
}

TEST(Counters, AnAccumulatedValueIsARateAndUnknownWhereItBeginsAnew) {
  RunBuilder run(1);
  sample(run, 0, 1, 100, true, 2);
  sample(run, 2 * kSampleSecond, 1, 160, true, 2);
  sample(run, 3 * kSampleSecond, 1, 10, true, 2);
  sample(run, 5 * kSampleSecond, 1, 14, true, 2);
  store::Store& store = run.build();
  store.add_name(0, 1, "sent");
  store.add_name(0, 2, "MB");
  const CounterLog log = read(store);
  const CounterSeries* const sent = log.find("sent");
  ASSERT_NE(sent, nullptr);
  EXPECT_EQ(sent->unit, "MB/s");
  ASSERT_EQ(sent->samples.size(), 3U);
  EXPECT_DOUBLE_EQ(sent->samples[0].value, 30);
  EXPECT_EQ(sent->samples[0].until_ns - sent->samples[0].at_ns, 2 * kSampleSecond);
  EXPECT_TRUE(std::isnan(sent->samples[1].value));
  EXPECT_DOUBLE_EQ(sent->samples[2].value, 2);
}

TEST(Counters, ProcessorsAreTimeUsedOverTime) {
  RunBuilder run(1);
  // In 2 s its threads used 3 s, and waited 0.5 s.
  run.instant(0, 4 * kSampleSecond, EventKind::processor_wait, StreamId::host, 7, 3000, ev::kNoId, 0,
              kSampleSecond / 2, 2 * kSampleSecond);
  const CounterLog log = read(run.build());
  ASSERT_NE(log.find("processors in use"), nullptr);
  EXPECT_DOUBLE_EQ(log.find("processors in use")->samples.at(0).value, 1.5);
  EXPECT_DOUBLE_EQ(log.find("waiting threads")->samples.at(0).value, 0.25);
}

TEST(Counters, PowerIsEnergyOverTimeAndWhatTheGpuDoesNotReportHasNoSeries) {
  RunBuilder run(1);
  gpu(run, 0, 1'000'000, 1400);
  gpu(run, kSampleSecond, 1'300'000, 1500);
  gpu(run, 3 * kSampleSecond, 2'300'000, 1500);
  const CounterLog log = read(run.build());
  const CounterSeries* const power = log.find("GPU power");
  ASSERT_NE(power, nullptr);
  EXPECT_EQ(power->unit, "W");
  ASSERT_EQ(power->samples.size(), 2U);
  EXPECT_DOUBLE_EQ(power->samples[0].value, 300);
  EXPECT_DOUBLE_EQ(power->samples[1].value, 500);
  ASSERT_NE(log.find("GPU clock"), nullptr);
  EXPECT_EQ(log.find("GPU clock")->samples.size(), 3U);
  EXPECT_EQ(log.find("GPU memory clock"), nullptr);
  EXPECT_EQ(log.find("GPU temperature"), nullptr);
}

TEST(Counters, ACounterOfTheProgramIsNotTakenForTheLibrarys) {
  RunBuilder run(1);
  sample(run, 0, 1, 5);
  gpu(run, kSampleSecond, 1'000'000, 1400);
  store::Store& store = run.build();
  store.add_name(0, 1, "GPU clock");
  const CounterLog log = read(store);
  ASSERT_NE(log.find("GPU clock"), nullptr);
  EXPECT_EQ(log.find("GPU clock")->samples.at(0).value, 1400);
  ASSERT_NE(log.find("GPU clock (the program's)"), nullptr);
  EXPECT_EQ(log.find("GPU clock (the program's)")->samples.at(0).value, 5);
}

TEST(Counters, OfARankWithoutAnyAreNone) {
  RunBuilder run(1);
  run.span(0, 0, kSampleSecond, EventKind::step_begin, StreamId::host, 0);
  store::Store& store = run.build();
  EXPECT_FALSE(has_counters(store, 0));
  EXPECT_TRUE(read(store).series().empty());
}

}  // namespace
}  // namespace shardscope::analysis
