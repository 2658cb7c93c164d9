// Model states in the Memory panel: the peak that a finding quotes is the one that the panel shows.
#include "app/gui/model/memory_stack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "app/gui/model/app_state.h"
#include "app/store/model_states.h"
#include "tests/app/analysis/run_builder.h"

namespace shardscope::gui {
namespace {

using ev::MemoryCategory;
using ev::MemoryPool;
constexpr std::int64_t kKiB = 1024;

/// Two ranks at stage 3 with secondary shards (hpZ). Rank 1's model states peak at 20 with 1010 KiB; its pool
/// peaks at 60, with activations and without gradients.
test::RunBuilder hpz_run() {
  test::RunBuilder run(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const auto change = [&](std::int64_t at, ev::EventKind kind, MemoryCategory category,
                            std::int64_t bytes) {
      run.instant(rank, at, kind, ev::StreamId::host, ev::kNoId, ev::kNoId, ev::kNoId,
                  static_cast<std::uint8_t>(category), bytes, bytes);
    };
    run.span(rank, 0, 100, ev::EventKind::step_begin, ev::StreamId::host, 0);
    change(10, ev::EventKind::memory_alloc, MemoryCategory::param_shard, 500 * kKiB);
    change(12, ev::EventKind::memory_alloc, MemoryCategory::param_secondary, (10 + rank * 200) * kKiB);
    change(20, ev::EventKind::memory_alloc, MemoryCategory::grad_shard, 300 * kKiB);
    change(30, ev::EventKind::memory_alloc, MemoryCategory::param_gathered, 100 * kKiB);
    change(40, ev::EventKind::memory_free, MemoryCategory::grad_shard, 300 * kKiB);
    change(60, ev::EventKind::memory_alloc, MemoryCategory::activation, 900 * kKiB);
  }
  return run;
}

TEST(ModelStates, APeakOfWhichPartWasAllocatedAtLessDetailIsNone) {
  const auto peak_after = [](ev::Detail before) {
    test::RunBuilder run(1);
    run.span(0, 0, 1000, ev::EventKind::step_begin, ev::StreamId::host, 0);
    run.instant(0, 1, ev::EventKind::detail_changed, ev::StreamId::host, static_cast<std::uint32_t>(before),
                ev::kNoId, ev::kNoId, static_cast<std::uint8_t>(ev::Detail::kernels));
    run.instant(0, 2, ev::EventKind::memory_alloc, ev::StreamId::host, ev::kNoId, ev::kNoId, ev::kNoId,
                static_cast<std::uint8_t>(MemoryCategory::grad_full), 2048, 2048);
    return model_state_peak(run.build(), 0, MemoryPool::device);
  };
  EXPECT_FALSE(peak_after(ev::Detail::modules));
  ASSERT_TRUE(peak_after(ev::Detail::params));
  EXPECT_EQ(peak_after(ev::Detail::params)->bytes, 2048);
}

TEST(ModelStates, AFindingAndThePanelThatItSendsToNameOnePeak) {
  AppState app;
  test::RunBuilder run = hpz_run();
  app.run = std::make_unique<Session>(std::move(run.build()));
  app.run->settle();
  const auto finding = std::ranges::find_if(app.run->findings(), [](const analysis::Finding& one) {
    return one.title.starts_with("Model states exceed");
  });
  ASSERT_NE(finding, app.run->findings().end());
  ASSERT_EQ(finding->rank, 1U);
  app.select_rank(finding->rank);  // what a click on it does
  const auto peak = model_state_peak(app.store(), app.memory_rank, app.memory_pool);
  ASSERT_TRUE(peak);
  EXPECT_EQ(peak->text(), "model states at most 0.99 MiB");
  EXPECT_EQ(peak->at_ns, finding->at_ns);
  EXPECT_NE(finding->evidence.find("0.99 MiB measured on rank 1 at 20 ns"), std::string::npos)
      << finding->evidence;
  EXPECT_EQ(app.store().memory_peak(1, MemoryPool::device)->at_ns, 60);
}

TEST(ModelStates, LieAtTheBottomOfTheStackInARow) {
  for (const std::int32_t stage : {0, 1, 2, 3}) {
    const auto order = stack_order();
    const auto first_other = std::ranges::find_if(
        order, [&](MemoryCategory category) { return !store::is_model_state(category, stage); });
    EXPECT_TRUE(std::none_of(first_other, order.end(),
                             [&](MemoryCategory category) { return store::is_model_state(category, stage); }))
        << "stage " << stage;
  }
}

}  // namespace
}  // namespace shardscope::gui
