// Tiles of a recording: what a view of dozens of blocks is drawn from, how few are read for it, and what
// happens where they are missing or damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "app/store/database.h"
#include "app/store/tile.h"
#include "tests/app/store/recording_files.h"
#include "tests/app/store/row_picture.h"

namespace shardscope::store {
namespace {

constexpr LaneId kLane{0, ev::StreamId::compute};
constexpr std::uint8_t kDepth = 5;  ///< most spans

class Tiles : public RecordingTest {
 protected:
  /// Each chunk is a block at once; so few of them that the whole row in memory is too coarse for the view.
  Tiles() : run_(make_synthetic_run({.world = 1, .steps = 100, .chunk_events = 4096})) {}
  void SetUp() override {
    RecordingTest::SetUp();
    path_ = write("tiles.zscope", run_);
  }
  /// A copy that `sql` was done to.
  std::string changed(const std::string& name, const std::string& sql) const {
    std::filesystem::copy_file(path_, file(name));
    Database database(file(name), Database::Access::create);
    database.execute(sql);
    return file(name);
  }
  /// The whole run.
  static RowView all(const Store& store) {
    return {.lane = kLane, .depth = kDepth, .begin_ns = 0, .end_ns = store.end_ns()};
  }
  static RowPicture seen_whole(const Store& store) { return seen(store, all(store)); }
  SyntheticRun run_;
  std::string path_;
};

TEST_F(Tiles, EverySixteenBlocksHaveOneAndTheRestHasToo) {
  Database database(path_, Database::Access::read);
  const std::int64_t blocks = database.integer("SELECT count(*) FROM blocks");
  ASSERT_GT(blocks, 2 * std::int64_t{kTileBlocks});
  ASSERT_GT(blocks % std::int64_t{kTileBlocks}, 1) << "the rest is to have a tile";
  EXPECT_EQ(database.integer("SELECT count(DISTINCT id >> 11) FROM tiles"),
            blocks / std::int64_t{kTileBlocks} + 1);
  EXPECT_EQ(database.integer("SELECT count(*) FROM tiles WHERE id >> 11 NOT IN (SELECT id FROM blocks)"), 0);
}

TEST_F(Tiles, AWideViewReadsAFewOfThemInsteadOfEveryBlock) {
  const Store tiled = open_recording(path_, nullptr, Verify::as_read);
  const Store bare = open_recording(changed("bare.zscope", "DELETE FROM tiles"), nullptr, Verify::as_read);
  EXPECT_THAT(bare.problems(), testing::IsEmpty());
  const int few = frames_until_whole(tiled, all(tiled)), many = frames_until_whole(bare, all(bare));
  EXPECT_LE(few, 5);
  EXPECT_GE(many, 30);
  // Both show what the run held.
  const Store whole = whole_of(run_);
  for (const Store* store : {&tiled, &bare}) EXPECT_TRUE(alike(seen_whole(whole), seen_whole(*store), 0.02));
}

TEST_F(Tiles, EndAtOnePictureHoweverFramesAreCut) {
  const Store limited = open_recording(path_, nullptr, Verify::as_read);
  const Store unlimited = open_recording(path_, nullptr, Verify::as_read);
  EXPECT_GT(frames_until_whole(limited, all(limited)), 1);
  EXPECT_TRUE(same_picture(seen_whole(limited), seen_whole(unlimited)));
}

TEST_F(Tiles, AViewThatStaysIsRefinedForAsLongAsAFrameMayTake) {
  const Store store = open_recording(path_, nullptr, Verify::as_read);
  constexpr std::chrono::nanoseconds kNone{0};
  // What is new has to be drawn: it may read for as long as reading may take.
  store.limit_reading(kNone, std::chrono::seconds(60));
  (void)seen_whole(store);
  EXPECT_TRUE(store.wants_more());
  // The same again is not all drawn again.
  store.limit_reading(kNone, std::chrono::seconds(60));
  const RowPicture whole = seen_whole(store);
  EXPECT_FALSE(store.wants_more());
  // Once it is whole nothing else is looked at, and what is asked beside it is new.
  store.limit_reading(kNone, std::chrono::seconds(60));
  EXPECT_TRUE(same_picture(seen_whole(store), whole));
  EXPECT_FALSE(store.wants_more());
  const std::int64_t begin = store.end_ns() / 4;
  (void)seen(store,
             {.lane = kLane, .depth = kDepth + 1, .begin_ns = begin, .end_ns = begin + store.end_ns() / 100});
  store.limit_reading(std::nullopt);
  EXPECT_TRUE(same_picture(seen_whole(open_recording(path_, nullptr, Verify::as_read)), whole));
}

TEST_F(Tiles, OneThatIsDamagedIsNamedAndFinerLevelsAreReadInstead) {
  const std::string path = changed(
      "damaged.zscope", "UPDATE tiles SET bytes = substr(bytes, 1, 20) || x'0102' || substr(bytes, 23)");
  const Store damaged = open_recording(path, nullptr, Verify::as_read);
  const Store bare = open_recording(changed("bare.zscope", "DELETE FROM tiles"), nullptr, Verify::as_read);
  EXPECT_TRUE(same_picture(seen_whole(damaged), seen_whole(bare)));
  ASSERT_FALSE(damaged.problems().empty());
  EXPECT_THAT(damaged.problems()[0], testing::HasSubstr("checksum"));
  EXPECT_THAT(damaged.problems()[0], testing::HasSubstr("rank 0"));
  EXPECT_TRUE(damaged.gaps().empty());  // no event is lost
  // Asked for again, it is not named again.
  const std::size_t named = damaged.problems().size();
  (void)seen_whole(damaged);
  EXPECT_EQ(damaged.problems().size(), named);
  RecordingInfo info;
  (void)open_recording(path, &info);
  EXPECT_TRUE(mentions(info, "made again")) << testing::PrintToString(info.problems);
}

TEST_F(Tiles, ADamagedBlockStaysAGapInAViewThatHasATileOfIt) {
  const std::string path =
      changed("block.zscope",
              "UPDATE chunks SET bytes = substr(bytes, 1, length(bytes) - 100) || x'00' || substr(bytes, "
              "length(bytes) - 98) WHERE id = (SELECT min(id) FROM chunks)");
  const Store store = open_recording(path, nullptr, Verify::as_read);
  EXPECT_GT(seen_whole(store)[5].busy, 0.0F);
  (void)store.spans(kLane, kDepth, 0, store.end_ns() / 100);  // finds it
  ASSERT_EQ(store.gaps().size(), 1U);
  EXPECT_EQ(seen_whole(store)[5].busy, 0.0F);
}

TEST(TileRows, AreTheSumOfTheirBlocks) {
  TileMaker maker;
  BlockPage page;
  page.lanes[1].resize(1);
  for (int block = 0; block < 16; ++block) {
    DensityPyramid row;
    for (int i = 0; i < 400; ++i) {
      const std::int64_t at = 1'000'000 + (block * 400 + i) * std::int64_t{10'000};
      row.append(at, at + 2'500, ev::EventKind::module_begin, 3);
    }
    row.settle();
    page.lanes[1][0] = row;
    maker.append(page);
  }
  const std::vector<TileRow> rows = maker.rows();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].row, tile_row(ev::StreamId::compute, 0));
  const DensityPyramid tile = decode_tile(rows[0].bytes.data(), rows[0].bytes.size());
  const DensityBucket total = tile.total();
  EXPECT_EQ(total.begins, 16U * 400U);
  EXPECT_NEAR(total.busy_ns, 16 * 400 * 2500.0, 0.01 * 16 * 400 * 2500);
  EXPECT_EQ(total.code(), 3);
  // 64 ms in at most 2,048 buckets.
  EXPECT_TRUE(tile.covers(64e6 / 1000));
  EXPECT_FALSE(tile.covers(64e6 / 5000));
  EXPECT_THROW((void)decode_tile(rows[0].bytes.data(), rows[0].bytes.size() - 1), std::runtime_error);
}

}  // namespace
}  // namespace shardscope::store
