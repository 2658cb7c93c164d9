// Whose the elements are on the partition map, with few ranks and with more than have a colour of their own.
#include "app/gui/model/owner_bands.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/app/gui/known_run.h"

namespace shardscope::gui {
namespace {

TEST(OwnerBands, AreTheOwnersInOrderOfTheElements) {
  const store::Store store = known::run();
  const ElementAxis elements(store.tables(), ElementScale::linear);
  OwnerBands bands;
  for (std::uint32_t param = 0; param < known::kParams; ++param) {
    const std::vector<OwnerBand>& of = bands.of(1, store, elements, 1, param);
    ASSERT_EQ(of.size(), known::kThirds);
    for (std::uint32_t third = 0; third < known::kThirds; ++third) {
      EXPECT_EQ(of[third].colour, known::owner(param, third));
      EXPECT_EQ(of[third].begin, third * known::kElems / known::kThirds);
      EXPECT_EQ(of[third].end, (third + 1) * known::kElems / known::kThirds);
    }
  }
}

TEST(OwnerBands, ManyRanksShareTheColoursOfAScaleInOrder) {
  constexpr std::uint32_t kWorld = 512;
  ev::RunTables tables = known::tables();
  tables.world = kWorld;
  tables.slices.clear();
  for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
    ev::SliceInfo slice;
    slice.param = 0;
    slice.rank = rank;
    slice.param_offset = rank * 10;
    slice.elems = 10;
    tables.slices.push_back(slice);
  }
  store::Store store;
  store.set_tables(0, tables);
  const ElementAxis elements(store.tables(), ElementScale::linear);
  OwnerBands bands;
  const std::vector<OwnerBand>& of = bands.of(1, store, elements, 0, 0);
  ASSERT_EQ(of.size(), owner_colours(kWorld));
  EXPECT_TRUE(std::ranges::is_sorted(of, {}, &OwnerBand::colour));
  EXPECT_EQ(of.front().begin, 0);
  EXPECT_EQ(of.back().end, kWorld * 10);
  EXPECT_EQ(owner_colour(0, kWorld), 0U);
  EXPECT_EQ(owner_colour(kWorld - 1, kWorld), kScaleColours - 1);
  EXPECT_EQ(owner_colour(15, 16), 15U) << "each its own";
}

/// The same job once more, on other ranks: the run's name and its parameters are as before.
TEST(OwnerBands, OfARunThatWasOpenedAnewAreThoseOfThatRun) {
  const store::Store before = known::run();
  ev::RunTables tables = known::tables();
  for (ev::SliceInfo& slice : tables.slices) slice.rank = (slice.rank + 1) % known::kRanks;
  store::Store after;
  after.set_tables(0, tables);
  OwnerBands bands;
  Blocks blocks;
  const std::uint32_t first =
      bands.of(1, before, ElementAxis(before.tables(), ElementScale::linear), 0, 0).front().colour;
  blocks.update(1, before);
  for (ev::ParamInfo& param : tables.params) param.name = "layers.0." + param.name;
  store::Store renamed;
  renamed.set_tables(0, tables);
  blocks.update(2, renamed);
  EXPECT_EQ(blocks.names(), std::vector<std::string>{"layers.0"});
  EXPECT_EQ(bands.of(2, after, ElementAxis(after.tables(), ElementScale::linear), 0, 0).front().colour,
            (first + 1) % known::kRanks);
}

TEST(Blocks, AreNumberedInOrderOfTheModel) {
  const store::Store store = known::run();
  Blocks blocks;
  blocks.update(1, store);
  EXPECT_EQ(blocks.names(), (std::vector<std::string>{"h.0", "h.1", "norm"}));
  EXPECT_EQ(blocks.of(0), 0U);
  EXPECT_EQ(blocks.of(1), 0U);
  EXPECT_EQ(blocks.of(2), 1U);
  EXPECT_EQ(blocks.of(3), 2U);
}

}  // namespace
}  // namespace shardscope::gui
