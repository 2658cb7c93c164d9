// The thread that analyses: it comes to what `summary` says, beside a window that reads and a run that grows.
#include "app/gui/model/analyst.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "app/gui/model/format.h"
#include "app/gui/model/session.h"
#include "app/gui/model/trace_info.h"
#include "tests/app/store/synthetic_run.h"

namespace shardscope::gui {
namespace {

using namespace std::chrono_literals;

class File {
 public:
  explicit File(const store::SyntheticRun& run)
      : path(std::string(::testing::TempDir()) + "analyst_" + std::to_string(getpid()) + ".zscope") {
    store::RecordingWriter writer(path);
    store::record(writer, run);
  }
  ~File() { std::remove(path.c_str()); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const std::string path;
};

/// What a frame does, as far as it matters to another thread.
void look_around(const store::Store& store) {
  std::vector<store::Density> columns(50);
  std::vector<store::MemorySample> samples(50);
  for (const store::LaneId lane : store.lanes()) {
    store.density(lane, 0, 0, store.end_ns() + 1, columns);
    store.for_each_span(lane, 0, store.end_ns() / 2, store.end_ns(), [](const store::Span&) {});
  }
  for (const store::RankRow& rank : store.ranks()) {
    store.memory_columns(rank.rank, ev::MemoryPool::device, 0, store.end_ns() + 1, samples);
    store.for_each_instant(rank.rank, 0, store.end_ns() / 3, [](const ev::Event&) {});
  }
}

TEST(Analyst, ARecordingComesToWhatSummarySaysWhileTheWindowReadsIt) {
  const File file(store::make_synthetic_run({.steps = 24}));
  const auto run = Session::open_file(file.path);
  EXPECT_EQ(run->partial(), "partial: 0 of 24 steps analysed") << "nothing was taken over yet";
  ASSERT_TRUE(run->load_time());
  EXPECT_GT(run->load_time()->opened, 0ns);
  EXPECT_EQ(run->load_time()->analysed, 0ns);
  EXPECT_FALSE(load_text(*run)) << "it is not loaded yet";
  const auto opened = std::chrono::steady_clock::now();
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!run->partial().empty() && std::chrono::steady_clock::now() < until) {
    run->poll(1ms);
    const Turns::Turn turn = run->turn();
    look_around(run->store());
  }
  ASSERT_EQ(run->partial(), "");
  const Session::LoadTime load = *run->load_time();
  EXPECT_GT(load.analysed, 0ns);
  EXPECT_LE(load.analysed, std::chrono::steady_clock::now() - opened + 1s)
      << "from the opening on, not since an epoch";
  const auto text = load_text(*run);
  ASSERT_TRUE(text);
  EXPECT_EQ(text->brief, "loaded in " + duration((load.opened + load.analysed).count()).text());
  EXPECT_NE(text->whole.find(grouped(static_cast<std::int64_t>(run->info()->events)) + " events, "),
            std::string::npos)
      << text->whole;
  const store::Store again = store::open_recording(file.path, nullptr);
  EXPECT_EQ(analysis::to_json(run->summary()), analysis::to_json(analysis::summarize(again)));
  EXPECT_EQ(run->findings().size(), analysis::find(again, run->summary()).size());
  for (const store::StepRow& step : again.steps()) {
    const StepTimes* times = run->step_times(step.step);
    ASSERT_NE(times, nullptr) << step.step;
    EXPECT_EQ(times->ranks.size(), again.ranks().size());
  }
  EXPECT_EQ(run->step_times(24), nullptr);
  ASSERT_NE(run->analysis()->digest, nullptr);
  EXPECT_EQ(run->analysis()->digest->steps().size(), 24U);
}

TEST(Analyst, AStoreThatGrowsIsAnalysedInTurnsWithWhoDrawsIt) {
  const store::SyntheticRun made = store::make_synthetic_run({.steps = 12, .chunk_events = 128});
  store::Store store;
  Turns turns;
  Analyst analyst(store, turns);
  for (const auto& tables : made.tables) {
    const Turns::Turn turn = turns.first();
    store.set_tables(tables.rank, tables);
  }
  for (const store::Chunk& chunk : made.chunks) {
    {
      const Turns::Turn turn = turns.first();
      store.ingest(chunk);
    }
    analyst.look(Completeness::growing);
    const Turns::Turn turn = turns.first();
    look_around(store);
  }
  {
    const Turns::Turn turn = turns.first();
    for (const auto& row : made.ranks) store.set_rank(row);
  }
  analyst.look(Completeness::complete);
  ASSERT_TRUE(analyst.wait(60s));
  const auto last = analyst.latest();
  EXPECT_TRUE(last->whole);
  EXPECT_EQ(last->steps, 12U);
  EXPECT_EQ(analysis::to_json(last->summary), analysis::to_json(analysis::summarize(store)));
}

TEST(Analyst, TheLastStepsAreTakenWhenTheRunIsOverThoughNoEventFollows) {
  Session grown(store::make_synthetic_store({.steps = 8}));
  Turns turns;
  Analyst analyst(grown.store(), turns);
  analyst.look(Completeness::growing);
  ASSERT_TRUE(analyst.wait(60s));
  EXPECT_LT(analyst.latest()->steps, 8U) << "what still may come of the last steps is waited for";
  analyst.look(Completeness::complete);
  ASSERT_TRUE(analyst.wait(60s));
  EXPECT_EQ(analyst.latest()->steps, 8U);
  EXPECT_EQ(analyst.latest()->of, Completeness::complete);
}

TEST(Analyst, ARankThatIsBehindInWhatHasArrivedIsWaitedFor) {
  // All of rank 0 is here; of rank 1 the events of its host, which say that steps have ended.
  const store::SyntheticRun made = store::make_synthetic_run({.world = 2, .steps = 60});
  store::Store store;
  Turns turns;
  for (const auto& tables : made.tables) store.set_tables(tables.rank, tables);
  std::size_t of_rank_1 = 0;
  for (const store::Chunk& chunk : made.chunks) {
    if (chunk.rank == 0 || of_rank_1++ < 6) store.ingest(chunk);
  }
  const std::int64_t arrived = store.ranks()[1].last_ns;
  ASSERT_LT(arrived + 400'000'000, store.end_ns());
  Analyst analyst(store, turns);
  analyst.look(Completeness::growing);
  ASSERT_TRUE(analyst.wait(60s));
  const std::size_t taken = analyst.latest()->steps;
  ASSERT_GT(store.steps().size(), taken);
  for (std::size_t i = 0; i < taken; ++i) EXPECT_LE(store.steps()[i].end_ns, arrived - 200'000'000);
}

TEST(Analyst, EndsWithItsSessionWhateverItIsDoing) {
  const File file(store::make_synthetic_run({.steps = 24}));
  for (int i = 0; i < 5; ++i) static_cast<void>(Session::open_file(file.path));
}

TEST(Analyst, ARecordingThatCannotBeReadAgainIsSaid) {
  Analyst analyst("/nowhere/run.zscope");
  ASSERT_TRUE(analyst.wait(60s));
  EXPECT_FALSE(analyst.latest()->whole);
  ASSERT_EQ(analyst.latest()->problems.size(), 1U);
  EXPECT_EQ(analyst.latest()->problems[0].rfind("not analysed: ", 0), 0U) << analyst.latest()->problems[0];
}

TEST(Turns, WhoDrawsIsNotKeptWaitingByABacklog) {
  Turns turns;
  bool stop = false;  // under a turn
  std::uint64_t shared = 0;
  std::thread backlog([&] {
    for (bool over = false; !over;) {
      const Turns::Turn turn = turns.next();
      ++shared;
      over = stop;
    }
  });
  std::uint64_t seen = 0;
  for (int i = 0; i < 2000; ++i) {
    const Turns::Turn turn = turns.first();
    EXPECT_GE(shared, seen);
    seen = shared;
  }
  {
    const Turns::Turn turn = turns.first();
    stop = true;
  }
  backlog.join();
}

}  // namespace
}  // namespace shardscope::gui
