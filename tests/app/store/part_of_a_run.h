// One run, recorded whole and with limits, and what the two must agree in.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <random>

#include "app/store/retention.h"
#include "tests/app/store/endless_run.h"
#include "tests/app/store/recording_files.h"

namespace shardscope::store {

inline constexpr std::int64_t kSecond = 1'000'000'000;

/// One run, recorded whole and with limits.
class PartOfARun : public RecordingTest {
 protected:
  static constexpr int kTurns = 20;
  /// `at_turn(writer, turn, origin)` is called before each turn.
  template <typename AtTurn>
  void record_with(const Retention& retention, AtTurn at_turn, bool finished = true) {
    EndlessRun run(2);
    Store totals(Keep::totals);
    RecordingWriter whole(file("whole.zscope")), part(file("part.zscope"), retention);
    for (ev::RunTables tables : run.run().tables) {
      tables.world = std::max(tables.world, world_);
      for (RecordingWriter* writer : {&whole, &part}) writer->tables(tables.rank, tables);
      totals.set_tables(tables.rank, tables);
    }
    for (int turn = 0; turn < kTurns; ++turn) {
      if (turn == repeat_at_) run.repeat(8);
      at_turn(part, turn, totals);
      run.again([&](const Chunk& chunk) {
        whole.append(chunk);
        part.append(chunk);
        totals.ingest(chunk);
      });
      part.retain(totals);
      part.commit();
      largest_ = std::max(largest_, std::filesystem::file_size(file("part.zscope")));
    }
    for (const RankRow& row : run.run().ranks) {
      RankRow now = row;
      now.events = 0;
      totals.set_rank(now);
    }
    whole.finish(totals);
    if (!finished) ::kill(::getpid(), SIGKILL);
    part.finish(totals);
    EXPECT_EQ(part.error(), "");
  }
  void record_with(const Retention& retention) {
    record_with(retention, [](RecordingWriter&, int, const Store&) {});
  }
  [[nodiscard]] Store open(const char* name, RecordingInfo* info = nullptr) const {
    return open_recording(file(name), info);
  }
  std::uintmax_t largest_ = 0;
  int repeat_at_ = -1;       ///< at this turn the steps of the eight before begin again
  std::uint32_t world_ = 0;  ///< larger than that of the run: its ranks are those of one node
};

inline void expect_sums_of_all(const Store& whole, const Store& part) {
  EXPECT_EQ(part.event_count(), whole.event_count());
  EXPECT_EQ(part.end_ns(), whole.end_ns());
  EXPECT_EQ(part.origin_ns(), whole.origin_ns());
  ASSERT_EQ(part.steps().size(), whole.steps().size());
  for (std::size_t i = 0; i < whole.steps().size(); ++i) {
    const StepRow &a = whole.steps()[i], &b = part.steps()[i];
    EXPECT_EQ(a.step, b.step);
    EXPECT_EQ(a.begin_ns, b.begin_ns) << a.step;
    EXPECT_EQ(a.end_ns, b.end_ns) << a.step;
    EXPECT_EQ(a.tokens, b.tokens) << a.step;
    EXPECT_THAT(a.loss, testing::NanSensitiveDoubleEq(b.loss)) << a.step;
    EXPECT_THAT(a.learning_rate, testing::NanSensitiveDoubleEq(b.learning_rate)) << a.step;
  }
  const auto x = whole.span_totals(), y = part.span_totals();
  ASSERT_EQ(x.size(), y.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(x[i].lane, y[i].lane);
    EXPECT_EQ(x[i].count, y[i].count);
    EXPECT_EQ(x[i].total_ns, y[i].total_ns);
    EXPECT_EQ(x[i].min_ns, y[i].min_ns);
    EXPECT_EQ(x[i].max_ns, y[i].max_ns);
  }
  for (const RankRow& row : whole.ranks()) {
    const auto a = whole.memory_peak(row.rank, ev::MemoryPool::device);
    const auto b = part.memory_peak(row.rank, ev::MemoryPool::device);
    ASSERT_TRUE(a && b);
    EXPECT_EQ(a->bytes, b->bytes);
    EXPECT_EQ(a->at_ns, b->at_ns);
    for (const ev::EventKind kind : {ev::EventKind::param_status, ev::EventKind::fetch_decision})
      EXPECT_EQ(whole.instant_count(row.rank, kind), part.instant_count(row.rank, kind));
  }
}

/// Spans, instants and states in [from, until). `memory`: as well; behind the last block of a recording that
/// was cut off it is made anew, and this run, which begins over and over, frees nothing of what it held
/// before.
inline void expect_same_details(const Store& whole, const Store& part, std::int64_t from, std::int64_t until,
                                bool memory = true) {
  ASSERT_LT(from, until);
  ASSERT_EQ(whole.lanes(), part.lanes());
  for (const LaneId lane : whole.lanes()) {
    for (std::uint8_t d = 0; d < whole.depth_count(lane); ++d)
      expect_same_spans(whole.spans(lane, d, from, until), part.spans(lane, d, from, until), "kept");
  }
  std::vector<ParamState> x(whole.tables().params.size()), y(x.size());
  std::mt19937_64 random(7);
  for (const RankRow& row : whole.ranks()) {
    expect_same_events(whole.instants(row.rank, from, until), part.instants(row.rank, from, until));
    for (int i = 0; i < 20; ++i) {
      const std::int64_t at =
          from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(until - from));
      whole.param_states(row.rank, at, x);
      part.param_states(row.rank, at, y);
      for (std::size_t p = 0; p < x.size(); ++p) ASSERT_EQ(x[p].status, y[p].status) << at;
      if (!memory) continue;
      ASSERT_EQ(whole.memory_at(row.rank, ev::MemoryPool::device, at).bytes,
                part.memory_at(row.rank, ev::MemoryPool::device, at).bytes);
    }
  }
}

}  // namespace shardscope::store
