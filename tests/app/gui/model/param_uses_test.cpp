// What the partition map says by use: of a parameter whose uses are known by hand.
#include "app/gui/model/param_uses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/app/gui/known_run.h"

namespace shardscope::gui {
namespace {

TEST(ParamUses, TellWhatIsUsedFromWhatIsHeld) {
  const store::Store store = known::used_run();
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
  const store::Store store = known::used_run();
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
  const store::Store store = known::used_run(false);
  ParamUses uses;
  uses.look_at(1, store, 3000);
  EXPECT_EQ(uses.of(store, 0), nullptr);
  uses.look_at(1, store, 3000);
  EXPECT_THAT(std::string(uses.missing()), ::testing::HasSubstr("no status of a parameter was recorded"));
}

}  // namespace
}  // namespace shardscope::gui
