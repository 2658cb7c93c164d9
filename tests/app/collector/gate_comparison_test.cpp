// Where ranks pass different gates, the first that differs is found and named once.
#include "app/collector/gate_comparison.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace shardscope::collector {
namespace {

using instrumentation::GateKind;

TEST(Gates, ADifferenceNamesRanksAndGatesOnce) {
  using instrumentation::Event;
  using instrumentation::EventKind;
  const auto gate = [](std::uint32_t number, GateKind kind, std::uint32_t id) {
    return Event{.kind = EventKind::gate, .code = static_cast<std::uint8_t>(kind), .a = number, .b = id};
  };
  GateComparison gates;
  const std::vector<Event> one = {gate(1, GateKind::step, 0), gate(2, GateKind::pre_forward, 3),
                                  gate(3, GateKind::post_forward, 3)};
  std::vector<Event> other = one;
  EXPECT_FALSE(gates.add(0, one));
  EXPECT_FALSE(gates.add(1, other));
  other[1].b = 4;
  const auto difference = gates.add(2, other);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->number, 2U);
  EXPECT_EQ(difference->one.rank, 0U);
  EXPECT_EQ(difference->one.id, 3U);
  EXPECT_EQ(difference->other.rank, 2U);
  EXPECT_EQ(difference->other.id, 4U);
  EXPECT_FALSE(gates.add(3, other)) << "once is enough";
  // Numbered alike from behind gate 3 on, and different again.
  gates.alike_from(3);
  EXPECT_FALSE(gates.add(2, other));
  EXPECT_FALSE(gates.add(0, std::vector<Event>{gate(4, GateKind::step, 1)}));
  EXPECT_TRUE(gates.add(1, std::vector<Event>{gate(4, GateKind::step, 2)}));
}

class GateDifference : public testing::Test {
 protected:
  using Event = instrumentation::Event;
  auto pass(std::uint32_t rank, std::uint32_t number, std::uint32_t id,
            GateKind kind = GateKind::pre_forward) {
    return gates_.add(rank, std::vector<Event>{{.kind = instrumentation::EventKind::gate,
                                                .code = static_cast<std::uint8_t>(kind),
                                                .a = number,
                                                .b = id}});
  }
  GateComparison gates_;
};

TEST_F(GateDifference, IsOneOfKindToo) {
  EXPECT_FALSE(pass(0, 1, 7));
  const auto difference = pass(1, 1, 7, GateKind::post_forward);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->one.kind, GateKind::pre_forward);
  EXPECT_EQ(difference->other.kind, GateKind::post_forward);
}

TEST_F(GateDifference, IsWordedByTheModulesOfTheRunAlsoAfterARestart) {
  instrumentation::RunTables tables;
  tables.modules.resize(8);
  tables.modules[7].path = "h.3.mlp";
  tables.modules[0].type = "GPT";
  gates_.learn(tables);
  EXPECT_EQ(gates_.names().name(GateKind::pre_forward, 0), "before the forward of GPT")
      << "a root has no path";
  EXPECT_FALSE(pass(0, 1, 7));
  gates_.restart();
  EXPECT_FALSE(pass(2, 1, 5)) << "what was passed before the restart is not compared";
  const auto difference = pass(1, 1, 7, GateKind::post_forward);
  ASSERT_TRUE(difference);
  EXPECT_EQ(
      gates_.text_of(*difference),
      "ranks pass different gates: as gate 1 rank 2 passed before the forward of module 5, rank 1 passed "
      "after the forward of h.3.mlp");
}

TEST_F(GateDifference, UpToTheGateTheyAreAlikeFromIsNone) {
  EXPECT_FALSE(pass(0, 3, 7));
  gates_.alike_from(3);
  EXPECT_FALSE(pass(1, 3, 8)) << "what the pause has dealt with";
  EXPECT_FALSE(pass(0, 4, 7));
  EXPECT_TRUE(pass(1, 4, 8));
  gates_.alike_from(3);
  EXPECT_FALSE(pass(2, 4, 9)) << "held again at the same gate it begins nothing new";
}

TEST_F(GateDifference, ARankThatIsThousandsOfGatesBehindHidesNoneOfTheOthers) {
  constexpr std::uint32_t kAhead = 1 + 4096;
  EXPECT_FALSE(pass(0, kAhead, 7));
  EXPECT_FALSE(pass(1, 1, 8)) << "nothing remembered to be compared with";
  const auto difference = pass(2, kAhead, 9);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->one.rank, 0U);
}

}  // namespace
}  // namespace shardscope::collector
