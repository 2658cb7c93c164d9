#include "app/analysis/volume.h"

#include <gtest/gtest.h>

#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

/// A device's stamps are known to some microseconds, and a host may be that much ahead of them: its own times
/// and gates say to which step what it did belongs.
TEST(VolumeOfAStep, WhatTheHostFilledBucketsWithCountsWhereItsGatesSay) {
  RunBuilder run(1);
  std::uint32_t number = 0;
  const auto begins = [&](std::int64_t at, std::uint32_t step) {
    run.instant(0, at, EventKind::gate, StreamId::host, number++, step, ev::kNoId,
                static_cast<std::uint8_t>(ev::GateKind::step));
  };
  const auto fills = [&](std::int64_t at, std::int64_t elems) {
    run.instant(0, at, EventKind::bucket_add, StreamId::host, 0, 0, ev::kNoId, 0, elems, elems);
  };
  begins(900, 0);
  run.span(0, 1000, 1900, EventKind::step_begin, StreamId::host, 0);
  fills(950, 1000);  // before the step's own stamp
  begins(1880, 1);
  run.span(0, 2000, 3000, EventKind::step_begin, StreamId::host, 1);
  fills(1890, 400);  // before the end of the step before
  fills(2500, 300);
  const store::Store& store = run.build();
  const VolumeModel model(store.tables());
  const auto without_gradient = [&](std::uint32_t step, std::int64_t begin_ns, std::int64_t end_ns) {
    const auto parts = model.parts(store, 0, step, begin_ns, end_ns);
    return parts ? (*parts)[static_cast<std::size_t>(VolumeCause::no_gradient)] : 1.0;
  };
  EXPECT_EQ(without_gradient(0, 1000, 1900), 0);
  EXPECT_EQ(without_gradient(1, 2000, 3000), 400 + 300 - 1000);
}

/// DDP reduces in each micro-step, unless it is asked not to: more than the expression has, for another
/// reason.
TEST(VolumeOfAStep, WhatIsReducedTwiceLacksNoGradient) {
  for (const std::int64_t reduced : {400, 1000, 2000}) {
    RunBuilder run(2, 0, "DistributedDataParallel (PyTorch 2.15.0)");
    run.span(0, 1000, 3000, EventKind::step_begin, StreamId::host, 0);
    run.instant(0, 1100, EventKind::bucket_add, StreamId::host, 0, 0, ev::kNoId, 0, reduced, reduced);
    const store::Store& store = run.build();
    const auto parts = VolumeModel(store.tables()).parts(store, 0, 0, 0, 2000);  // from the run's first event
    ASSERT_TRUE(parts);
    EXPECT_EQ((*parts)[static_cast<std::size_t>(VolumeCause::no_gradient)], reduced == 400 ? -2 * 600 : 0);
  }
}

// A module that ran behind the optimizer's gate did so in an evaluation: it is no use that explains a gather
// of the step.
TEST(VolumeOfAStep, ModulesOfAnEvaluationBehindItAreNotItsForwards) {
  const auto parts_with = [](bool evaluated) {
    RunBuilder run(1);
    std::uint32_t number = 0;
    const auto gate = [&](std::int64_t at, ev::GateKind kind, std::uint32_t id) {
      run.instant(0, at, EventKind::gate, StreamId::host, number++, id, ev::kNoId,
                  static_cast<std::uint8_t>(kind));
    };
    run.span(0, 1000, 3000, EventKind::step_begin, StreamId::host, 0);
    run.instant(0, 1300, EventKind::bucket_add, StreamId::host, 0, 0, ev::kNoId, 0, 1000, 1000);
    gate(1000, ev::GateKind::step, 0);
    gate(1100, ev::GateKind::pre_forward, 1);
    gate(1200, ev::GateKind::pre_backward, 1);
    gate(1400, ev::GateKind::optimizer, 0);
    constexpr std::uint8_t kInFlight = 1;
    for (int i = 0; i < 4; ++i)
      run.instant(0, 1150 + i, EventKind::param_status, StreamId::gather, 0, 1, i, kInFlight, 1000, 1000);
    for (int i = 0; evaluated && i < 2; ++i) gate(3100 + i, ev::GateKind::pre_forward, 1);
    gate(4000, ev::GateKind::step, 1);
    run.span(0, 4000, 5000, EventKind::step_begin, StreamId::host, 1);
    const store::Store& store = run.build();
    ev::RunTables tables = store.tables();
    tables.config_json = R"({"gradient_accumulation_steps": 1, "zero_optimization": {"stage": 3}})";
    return VolumeModel(tables).parts(store, 0, 0, 0, 2000);  // from the run's first event
  };
  const auto with = parts_with(true), without = parts_with(false);
  ASSERT_TRUE(with && without);
  EXPECT_EQ(*with, *without);
  EXPECT_EQ((*with)[static_cast<std::size_t>(VolumeCause::unused)], 2 * 1000) << "two of four";
}

/// The norm is reduced beside the gradients: one element, in no bucket (DeepSpeed's get_grad_norm_direct).
TEST(VolumeOfAStep, AllReducesOfOneElementOutsideBucketsAreNormsAndFlags) {
  RunBuilder run(2, 2);
  run.span(0, 1000, 3000, EventKind::step_begin, StreamId::host, 0);
  run.instant(0, 1100, EventKind::bucket_add, StreamId::host, 0, 0, ev::kNoId, 0, 1000, 1000);
  const auto all_reduce = [&](std::int64_t at, std::uint32_t sequence, std::uint32_t bucket,
                              std::int64_t elems) {
    run.span(0, at, at + 100, EventKind::collective_begin, StreamId::reduce, sequence, bucket,
             static_cast<std::uint8_t>(CollectiveOp::all_reduce), elems, 4 * elems);
  };
  all_reduce(1200, 0, 0, 1000);        // a bucket
  all_reduce(1400, 1, 1, 1);           // a bucket of one element
  all_reduce(1600, 2, ev::kNoId, 1);   // the norm
  all_reduce(1800, 3, ev::kNoId, 1);   // a flag
  all_reduce(2000, 4, ev::kNoId, 10);  // something else: not explained by this
  const store::Store& store = run.build();
  const auto parts = VolumeModel(store.tables()).parts(store, 0, 0, 0, 2000);  // from the run's first event
  ASSERT_TRUE(parts);
  EXPECT_EQ((*parts)[static_cast<std::size_t>(VolumeCause::scalars)], 2 * 2);
}

TEST(KeptVolume, IsBuiltAnewWhereTablesOrMicroStepsDiffer) {
  RunBuilder run(2);
  ev::RunTables tables = run.build().tables();
  KeptVolumeModel kept;
  const double once = kept.of(tables, 1).expected();
  EXPECT_EQ(once, VolumeModel(tables, 1).expected());
  const std::string* text = &kept.of(tables, 1).expression();
  EXPECT_EQ(text, &kept.of(tables, 1).expression());
  tables.config_json = R"({"gradient_accumulation_steps": 4, "zero_optimization": {"stage": 3}})";
  EXPECT_EQ(kept.of(tables, 1).expected(), VolumeModel(tables, 1).expected());
  EXPECT_EQ(kept.of(tables, 8).expected(), VolumeModel(tables, 8).expected());
  EXPECT_NE(kept.of(tables, 8).expected(), once);
  tables.params.pop_back();
  tables.elems -= 1;
  EXPECT_EQ(kept.of(tables, 8).expected(), VolumeModel(tables, 8).expected());
}

}  // namespace
}  // namespace shardscope::analysis
