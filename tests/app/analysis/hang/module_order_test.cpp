// Where ranks ran other modules: the first place counts, a rank that is behind differs in nothing, and an
// order with gaps is none.
#include "app/analysis/hang/module_order.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/app/analysis/run_builder.h"

namespace shardscope::analysis {
namespace {

using namespace test;

constexpr std::uint32_t kRootModule = 0, kLayer = 1;

/// Modules that the rank begins in the forward of one micro-step, 1000 ns each, after its root.
void visits(RunBuilder& run, std::uint32_t rank, std::uint32_t micro_step,
            const std::vector<std::uint32_t>& modules) {
  const std::int64_t begin = 1'000'000 + 100'000 * static_cast<std::int64_t>(micro_step);
  run.instant(rank, begin, EventKind::module_begin, StreamId::compute, kRootModule, micro_step);
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const std::int64_t at = begin + 1'000 * static_cast<std::int64_t>(i + 1);
    run.span(rank, at, at + 500, EventKind::module_begin, StreamId::compute, modules[i], micro_step);
  }
  const std::int64_t end = begin + 50'000;
  run.instant(rank, end, EventKind::module_end, StreamId::compute, kRootModule, micro_step);
}

TEST(ModuleOrder, NamesTheRankThatRanAnotherModule) {
  RunBuilder run(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    visits(run, rank, 4, {kLayer, kLayer});
    visits(run, rank, 5, rank == 1 ? std::vector{kLayer, kRootModule} : std::vector{kLayer, kLayer});
  }
  const store::Store& store = run.build();
  EXPECT_EQ(rank_of_other_modules(store, store::Store::kBegin), 1U);
  EXPECT_EQ(other_modules_text(store, 1, store::Store::kBegin),
            "In the forward of micro-step 5 rank 1 ran hand-made where ranks 0, 2 ran layer.");
}

/// Rank 1 has passed the gate before a module and waits for its parameters: it has not begun it.
TEST(ModuleOrder, NamesTheModuleThatARankCameTo) {
  for (const bool parted : {true, false}) {
    RunBuilder run(3);
    for (std::uint32_t rank = 0; rank < 3; ++rank)
      visits(run, rank, 5, rank == 1 ? std::vector{kLayer} : std::vector{kLayer, kLayer});
    run.instant(1, 2'000'000, EventKind::gate, StreamId::host, 9, parted ? 2 : kLayer, ev::kNoId,
                static_cast<std::uint8_t>(ev::GateKind::pre_forward));
    const store::Store& store = run.build();
    EXPECT_EQ(rank_of_other_modules(store, store::Store::kBegin), parted ? std::optional(1U) : std::nullopt);
    EXPECT_EQ(
        other_modules_text(store, 1, store::Store::kBegin),
        parted ? "In the forward of micro-step 5 rank 1 came to module 2 where ranks 0, 2 ran layer." : "");
  }
}

TEST(ModuleOrder, ARankThatIsBehindRanNoOtherModules) {
  RunBuilder run(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    visits(run, rank, 4, {kLayer, kLayer});
    if (rank != 1) visits(run, rank, 5, {kLayer, kLayer});
  }
  const store::Store& store = run.build();
  EXPECT_EQ(rank_of_other_modules(store, store::Store::kBegin), std::nullopt);
  EXPECT_EQ(other_modules_text(store, 1, store::Store::kBegin), "");
}

TEST(ModuleOrder, WhereEventsAreMissingNothingIsSaid) {
  RunBuilder run(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    visits(run, rank, 5, rank == 1 ? std::vector{kRootModule} : std::vector{kLayer});
  run.drop(1, 3);
  const store::Store& store = run.build();
  EXPECT_EQ(rank_of_other_modules(store, store::Store::kBegin), std::nullopt);
  EXPECT_EQ(other_modules_text(store, 1, store::Store::kBegin), "");
}

TEST(ModuleOrder, OneOfTwoGroupsThatPartIsNotNamed) {
  RunBuilder run(4);
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    visits(run, rank, 5, rank < 2 ? std::vector{kRootModule} : std::vector{kLayer});
  EXPECT_EQ(rank_of_other_modules(run.build(), store::Store::kBegin), std::nullopt);
}

}  // namespace
}  // namespace shardscope::analysis
