// What the partition map says by use: of a parameter whose uses are known by hand.
#include "app/gui/model/param_uses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/app/gui/known_run.h"

namespace shardscope::gui {
namespace {

/// Of each rank: parameter 0 is whole from 1000 to 8000 and used from 1200 to 2000 and from 5000 to 6000,
/// parameter 3 is persistent; the step lasts from 0 to 9000, another begins at 9500 and goes on.
store::Store used_run(bool statuses = true) {
  using ev::EventKind;
  store::Store store;
  for (std::uint32_t rank = 0; rank < known::kRanks; ++rank) {
    ev::RunTables tables = known::tables();
    tables.rank = rank;
    store.set_tables(rank, tables);
    store::ChunkBuilder events(rank);
    const auto change = [&](std::int64_t at, std::uint32_t param, plan::ParamStatus to,
                            ev::StatusCause cause) {
      if (!statuses) return;
      events.compute(at, EventKind::param_status, param,
                     ev::status_code(static_cast<std::uint8_t>(to), cause));
      events.chunk.events.back().b = tables.params[param].modules.front();
    };
    events.host(0, EventKind::step_begin, 7);
    change(500, 3, plan::ParamStatus::available, ev::StatusCause::persistent);
    change(1000, 0, plan::ParamStatus::available, ev::StatusCause::fetch);
    for (const auto& [begin, end] : {std::pair{1200, 2000}, std::pair{5000, 6000}}) {
      events.compute(begin, EventKind::module_begin, 1);
      events.compute(end, EventKind::module_end, 1);
    }
    change(8000, 0, plan::ParamStatus::not_available, ev::StatusCause::release);
    events.host(9000, EventKind::step_end, 7);
    events.host(9500, EventKind::step_begin, 8);
    store.ingest(events.chunk);
  }
  return store;
}

TEST(ParamUses, TellWhatIsUsedFromWhatIsHeld) {
  const store::Store store = used_run();
  ParamUses uses;
  uses.look_at(1, store, 100);
  const analysis::HeldLong* const held = uses.of(store, 1);
  ASSERT_NE(held, nullptr) << uses.missing();
  const auto at = [&](std::int64_t ns, std::uint32_t param = 0) {
    return param_use(*held, store.tables(), param, store.param_state(1, param, ns), ns);
  };
  EXPECT_EQ(at(900).use, ParamUse::not_here);
  EXPECT_EQ(at(1100).use, ParamUse::wanted) << "gathered, before its first use";
  EXPECT_EQ(at(1500).use, ParamUse::wanted);
  EXPECT_EQ(at(3000).use, ParamUse::kept);
  EXPECT_EQ(at(3000).unused_ns, 1000);
  EXPECT_EQ(at(3000).left_ns, 2000);
  EXPECT_EQ(at(5500).use, ParamUse::wanted);
  EXPECT_EQ(at(7500).use, ParamUse::for_nothing);
  EXPECT_EQ(text_of(at(7500)),
            "last used 1.50 \u00b5s ago, not used again in this step, held for 500 ns more");
  EXPECT_EQ(at(8500).use, ParamUse::not_here);
  EXPECT_EQ(at(3000, 3).use, ParamUse::persistent);
  EXPECT_EQ(text_of(at(3000, 3)), "");
}

TEST(ParamUses, AreReadAFewRanksAFrameAndSayWhyThereAreNone) {
  const store::Store store = used_run();
  ParamUses uses;
  uses.look_at(1, store, 3000);
  EXPECT_NE(uses.of(store, 0), nullptr);
  EXPECT_NE(uses.of(store, 1), nullptr);
  EXPECT_EQ(uses.of(store, 2), nullptr);
  EXPECT_EQ(uses.missing(), "");
  uses.look_at(1, store, 4000);
  EXPECT_TRUE(uses.reading()) << "as the legend of the next frame shows";
  EXPECT_NE(uses.of(store, 0), nullptr) << "read before";
  EXPECT_NE(uses.of(store, 2), nullptr);
  uses.look_at(1, store, 4000);
  EXPECT_FALSE(uses.reading());
  uses.look_at(1, store, 9200);
  EXPECT_EQ(uses.of(store, 0), nullptr);
  EXPECT_EQ(uses.missing(), "known within steps");
  uses.look_at(1, store, 9700);
  EXPECT_EQ(uses.missing(), "known when the step has ended");
}

TEST(ParamUses, SayInTheNextFrameThatNoStatusWasRecorded) {
  const store::Store store = used_run(false);
  ParamUses uses;
  uses.look_at(1, store, 3000);
  EXPECT_EQ(uses.of(store, 0), nullptr);
  uses.look_at(1, store, 3000);
  EXPECT_THAT(std::string(uses.missing()), ::testing::HasSubstr("no status of a parameter was recorded"));
}

}  // namespace
}  // namespace shardscope::gui
