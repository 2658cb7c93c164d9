// Fitting a cost model to a run: lines through known points, and the way to the rates that made a step.
#include "app/analysis/pace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

TEST(FitLink, FindsTheLineThatMadeTheTransfers) {
  std::vector<Transfer> transfers;
  for (const double bytes : {1e3, 5e4, 1e6, 3e7}) {
    for (const double hops : {1.0, 2.0, 5.0}) transfers.push_back({bytes, hops, hops * 12'000 + bytes / 3.5});
  }
  const auto link = fit_link(transfers);
  ASSERT_TRUE(link.has_value());
  EXPECT_NEAR(link->gb_per_s, 3.5, 1e-6);
  EXPECT_NEAR(link->latency_us, 12, 1e-6);
  EXPECT_NEAR(link->error_pct, 0, 1e-6);
  EXPECT_EQ(link->transfers, transfers.size());
}

TEST(FitLink, ACollectivePaysALatencyForEachLevelOfATree) {
  const double hops[] = {1, 1, 1, 2, 2, 3, 3, 3, 3, 4};  // of 0 to 9 ranks
  for (std::uint32_t ranks = 0; ranks < 10; ++ranks) EXPECT_EQ(hops_of(ranks), hops[ranks]) << ranks;
}

TEST(FitLink, GivesTransfersOfOneSizeToTheRate) {
  const auto link = fit_link({{2e6, 1, 1e6}, {2e6, 1, 3e6}});
  ASSERT_TRUE(link.has_value());
  EXPECT_NEAR(link->gb_per_s, 1, 1e-9);  // 4 MB in 4 ms
  EXPECT_EQ(link->latency_us, 0);
  EXPECT_NEAR(link->error_pct, 50, 1e-9);
}

TEST(FitLink, LeavesOutWhatWasHeldUp) {
  std::vector<Transfer> transfers;
  for (int step = 0; step < 5; ++step) {
    for (const double bytes : {1e4, 1e6})
      transfers.push_back({bytes, 1, 5'000 + bytes / 2 + (step == 3 ? 1e9 : 0)});
  }
  const auto link = fit_link(transfers);
  ASSERT_TRUE(link.has_value());
  EXPECT_NEAR(link->gb_per_s, 2, 1e-6);
  EXPECT_NEAR(link->latency_us, 5, 1e-6);
  EXPECT_GT(link->error_pct, 50) << "what was held up is in the error";
}

// Two ranks, three steps: a gather alone, then a gather and a reduction at once, which share the link and so
// say nothing of its rate.
TEST(MeasurePace, FitsLinksToWhatHadThemForItself) {
  using ev::EventKind;
  using ev::StreamId;
  constexpr auto kGather = static_cast<std::uint8_t>(ev::CollectiveOp::all_gather);
  constexpr auto kReduce = static_cast<std::uint8_t>(ev::CollectiveOp::reduce_scatter);
  for (const bool any_alone : {true, false}) {
    test::RunBuilder run(2);
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      for (std::uint32_t step = 0; step < 3; ++step) {
        const std::int64_t begin = 10'000'000 * step;
        run.span(rank, begin, begin + 9'000'000, EventKind::step_begin, StreamId::host, step);
        const auto collective = [&](std::int64_t from, std::int64_t to, StreamId lane, std::uint32_t number,
                                    std::uint8_t op) {
          run.span(rank, begin + from, begin + to, EventKind::collective_begin, lane, 10 * step + number, 0,
                   op, 1'000'000, 4'000'000);
        };
        // 2 MB over the link (half of S) in 1 ms; at once with another one in 2 ms.
        if (any_alone) collective(0, 1'000'000, StreamId::gather, 0, kGather);
        collective(2'000'000, 4'000'000, StreamId::gather, 1, kGather);
        collective(2'000'000, 4'000'000, StreamId::reduce, 2, kReduce);
      }
    }
    const Pace pace = measure_pace(run.build());
    ASSERT_TRUE(pace.between.has_value());
    EXPECT_NEAR(pace.between->gb_per_s, any_alone ? 2 : 1, 1e-6);
    EXPECT_EQ(pace.between->transfers, any_alone ? 2U : 4U);  // of the two measured steps
    EXPECT_FALSE(pace.inside.has_value());
  }
}

// The host's link is what offloading sees of it: a micro-batch on the same lane says nothing, and where
// nothing is offloaded nothing is known.
TEST(MeasurePace, DoesNotFitTheHostsLinkToMicroBatches) {
  using ev::EventKind;
  using ev::StreamId;
  for (const bool offloads : {true, false}) {
    test::RunBuilder run(1);
    for (std::uint32_t step = 0; step < 3; ++step) {
      const std::int64_t begin = 10'000'000 * step;
      run.span(0, begin, begin + 9'000'000, EventKind::step_begin, StreamId::host, step);
      const auto copy = [&](std::int64_t from, std::int64_t ns, ev::TransferKind kind, std::int64_t bytes) {
        run.span(0, begin + from, begin + from + ns, EventKind::transfer_begin, StreamId::copy, ev::kNoId,
                 ev::kNoId, static_cast<std::uint8_t>(kind), bytes);
      };
      copy(100, 1'000'000, ev::TransferKind::input_to_device, 256);
      if (!offloads) continue;
      copy(2'000'000, 1'000'000, ev::TransferKind::device_to_host, 4'000'000);
      copy(4'000'000, 2'000'000, ev::TransferKind::host_to_device, 8'000'000);
    }
    const Pace pace = measure_pace(run.build());
    ASSERT_EQ(pace.host.has_value(), offloads);
    if (!offloads) continue;
    EXPECT_EQ(pace.host->transfers, 4U);  // of the two measured steps
    EXPECT_NEAR(pace.host->gb_per_s, 4, 1e-6);
    EXPECT_NEAR(pace.host->latency_us, 0, 1e-6);
  }
}

TEST(FitLink, NeverGoesBelowZeroAndKeepsTheSum) {
  // Larger ones faster: a free line would fall; smaller ones for free: its latency would be negative.
  for (const std::vector<Transfer>& transfers : {std::vector<Transfer>{{1e3, 1, 9e5}, {1e7, 1, 1e5}},
                                                 std::vector<Transfer>{{1e6, 1, 1e3}, {2e6, 1, 9e6}}}) {
    const auto link = fit_link(transfers);
    ASSERT_TRUE(link.has_value());
    EXPECT_GT(link->gb_per_s, 0);
    EXPECT_GE(link->latency_us, 0);
    double seen = 0, fitted = 0;
    for (const Transfer& t : transfers) {
      seen += t.ns;
      fitted += t.hops * link->latency_us * 1e3 + t.bytes / link->gb_per_s;
    }
    EXPECT_NEAR(fitted, seen, 1e-6 * seen);
  }
}

TEST(FitLink, SaysNothingWhereNothingMoved) {
  EXPECT_FALSE(fit_link({}).has_value());
  EXPECT_FALSE(fit_link({{0, 1, 500}}).has_value());
  EXPECT_FALSE(fit_link({{1000, 1, 0}}).has_value());
}

Pace pace(double work, double optimizer, double worker) {
  Pace p;
  p.step_ms = work + optimizer + worker;
  p.work_ms = work;
  p.optimizer_ms = optimizer;
  p.worker_ms = worker;
  return p;
}

TEST(Calibrate, ReachesTheRatesOfAMachineThatNeedsBoth) {
  // Work of 50 GFLOP and 2 GB, an optimizer of 0.4 GB, on a machine of 0.2 TFLOP/s and 8 GB/s.
  const auto machine = [](const Rates& rates) {
    return pace(50.0 / rates.matrix_tflops + 2000 / rates.memory_gb_per_s, 400 / rates.memory_gb_per_s,
                30 / rates.host_memory_gb_per_s);
  };
  Rates real;
  real.matrix_tflops = 0.2;
  real.memory_gb_per_s = 8;
  real.host_memory_gb_per_s = 3;
  const Pace wanted = machine(real);
  Rates rates;
  for (int round = 0; round < 12; ++round) rates = calibrate(rates, wanted, machine(rates));
  EXPECT_LT(relative_error(wanted, machine(rates)), 0.005);
  EXPECT_NEAR(rates.matrix_tflops, 0.2, 0.02);
  EXPECT_NEAR(rates.memory_gb_per_s, 8, 1e-6);
  EXPECT_NEAR(rates.host_memory_gb_per_s, 3, 1e-6);
}

TEST(Calibrate, LeavesARateThatNothingMeasures) {
  Rates rates;
  rates.host_memory_gb_per_s = 17;
  EXPECT_EQ(calibrate(rates, pace(3, 2, 0), pace(5, 1, 0)).host_memory_gb_per_s, 17);
}

TEST(Distance, IgnoresPartsThatAreNotThere) {
  EXPECT_EQ(relative_error(pace(10, 0, 0), pace(10, 4, 4)), 0);
  EXPECT_DOUBLE_EQ(relative_error(pace(10, 2, 0), pace(11, 2, 0)), 11.0 / 10 - 1);
}

TEST(HardwareFile, HoldsWhatTheSimulationReads) {
  Rates rates;
  rates.inside = {3.5, 12, 4, 0};
  const auto file = nlohmann::json::parse(hardware_file(rates, "from \xff a test", 4));
  EXPECT_EQ(file.at("ranks_per_node"), 4);
  EXPECT_EQ(file.at("inside").at("gb_per_s"), 3.5);
  EXPECT_EQ(file.at("inside").at("latency_us"), 12);
}

}  // namespace
}  // namespace shardscope::analysis
