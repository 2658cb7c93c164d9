// What the window says at a time whose events a recorder with limits has deleted.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "app/gui/model/names.h"
#include "app/gui/model/stepping.h"
#include "app/store/recording.h"
#include "tests/app/gui/written.h"
#include "tests/app/store/endless_run.h"

namespace shardscope::gui {
namespace {

/// Two ranks whose recorder keeps the newest 1 MB of sixteen rounds of a run.
class NotKept : public testing::Test {
 protected:
  NotKept() {
    const auto file =
        std::filesystem::temp_directory_path() / ("shardscope-not-kept-" + std::to_string(::getpid()));
    store::EndlessRun run(2);
    store::Store totals(store::Keep::totals);
    {
      store::RecordingWriter part(file.string(), {.max_bytes = 1'000'000});
      for (const ev::RunTables& tables : run.run().tables) {
        part.tables(tables.rank, tables);
        totals.set_tables(tables.rank, tables);
      }
      for (int turn = 0; turn < 16; ++turn) {
        run.again([&](const store::Chunk& chunk) {
          part.append(chunk);
          totals.ingest(chunk);
        });
        part.retain(totals);
        part.commit();
      }
      part.finish(totals);
    }
    store_ = store::open_recording(file.string(), nullptr);
    std::filesystem::remove(file);
  }
  store::Store store_;
};

TEST_F(NotKept, ARankPassedGatesThatAreNotKnownAndIsNotSaidToHavePassedNone) {
  const std::int64_t early = store_.end_ns() / 4, late = store_.end_ns() - 1;
  ASSERT_FALSE(store_.is_known(1, early));
  ASSERT_TRUE(store_.is_known(1, late));
  EXPECT_FALSE(gate_position(store_, 1, early).known);
  EXPECT_EQ(no_gate_text(store_, 1, early), not_kept_text());
  EXPECT_EQ(no_gate_text(store_, 1, late), "no gate passed yet");
}

/// The timeline marks the time whose events were deleted, and says why there are none.
TEST_F(NotKept, TheTimelineSaysWhereEventsWereDeleted) {
  AppState app;
  app.run = std::make_unique<Session>(std::move(store_));
  app.run->settle();
  app.fit();
  Written timeline(app, "timeline", 1200, 600);
  const auto says_why = [&](float share) {
    bool found = false;
    for (float y = 60; y < 560 && !found; y += 40) {
      timeline.point_at({200 + share * 980, y});
      found = timeline.has("did not keep");
    }
    return found;
  };
  EXPECT_TRUE(says_why(0.3F)) << timeline.text();
  EXPECT_FALSE(says_why(0.98F)) << "the newest events are kept";
}

}  // namespace
}  // namespace shardscope::gui
