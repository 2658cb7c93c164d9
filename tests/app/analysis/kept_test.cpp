// Figures of a recording with limits: those of the steps that it keeps are the same as of a recording
// that keeps everything, and what is not kept is named, never taken for idle time.
#include "app/analysis/kept.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "app/analysis/digest.h"
#include "app/analysis/distributions.h"
#include "app/analysis/summary.h"
#include "app/store/block.h"
#include "app/store/chunk.h"
#include "app/store/recorded_run.h"
#include "app/store/recording.h"
#include "tests/app/store/endless_run.h"

namespace shardscope::analysis {
namespace {

class KeptPart : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("shardscope-kept-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    store::EndlessRun run(2);
    store::Store totals(store::Keep::totals);
    {
      store::RecordingWriter whole(file("whole.zscope")),
          part(file("part.zscope"), {.max_bytes = 1'000'000, .around_ns = 100'000'000});
      for (const store::ev::RunTables& tables : run.run().tables) {
        for (store::RecordingWriter* writer : {&whole, &part}) writer->tables(tables.rank, tables);
        totals.set_tables(tables.rank, tables);
      }
      for (int turn = 0; turn < 16; ++turn) {
        if (turn == 4) {
          part.keep({.at_ns = totals.origin_ns() + totals.end_ns(),
                     .kind = "loss_jump",
                     .step = 79,
                     .text = "step 79"});
        }
        run.again([&](const store::Chunk& chunk) {
          whole.append(chunk);
          part.append(chunk);
          totals.ingest(chunk);
        });
        part.retain(totals);
        part.commit();
      }
      whole.finish(totals);
      part.finish(totals);
    }
    whole_.emplace(store::open_recording(file("whole.zscope"), nullptr));
    part_.emplace(store::open_recording(file("part.zscope"), nullptr));
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  [[nodiscard]] std::string file(const char* name) const { return (folder_ / name).string(); }
  std::filesystem::path folder_;
  std::optional<store::Store> whole_, part_;
};

TEST_F(KeptPart, NamesTheStepsAndTheMoment) {
  EXPECT_FALSE(kept_of(*whole_));
  EXPECT_TRUE(kept_json(kept_of(*whole_)).is_null());
  const std::optional<Kept> kept = kept_of(*part_);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->all_steps, 16U * store::EndlessRun::kSteps);
  ASSERT_EQ(kept->steps.size(), 2U) << "around the moment, and the newest";
  EXPECT_LE(kept->steps[0].first, 78U);
  EXPECT_GE(kept->steps[0].last, 80U);
  EXPECT_EQ(kept->steps[1].last, kept->all_steps - 1);
  EXPECT_EQ(kept->events + kept->not_kept_events, whole_->event_count());
  const nlohmann::json json = kept_json(kept);
  EXPECT_EQ(json["steps"][1]["last"], kept->all_steps - 1);
  EXPECT_EQ(json["moments"][0]["kind"], "loss_jump");
  EXPECT_EQ(json["moments"][0]["step"], 79);
  EXPECT_TRUE(json["moments"][0]["rank"].is_null());
  EXPECT_NE(text_of(*kept).find("of 320 steps"), std::string::npos) << text_of(*kept);
  EXPECT_NE(text_of(kept->moments[0]).find("(step 79): step 79"), std::string::npos);
}

/// What never ended, and what there is no row of, is not full detail.
TEST(Kept, ARangeHasOnlyStepsThatAreThere) {
  store::Store store;
  store::Block sum;
  sum.parts = 1;
  sum.begin_ns = 1000;
  sum.end_ns = 2000;
  store::RecordedRun(store).append_sum(sum, 10, {}, true);
  store::Chunk chunk;
  chunk.sequence = 1;
  const auto add = [&](store::ev::EventKind kind, std::uint32_t step) {
    store::ev::Event event;
    event.kind = kind;
    event.stream = store::ev::StreamId::host;
    event.a = step;
    event.ticks = 3000 + 100 * chunk.events.size();
    chunk.events.push_back(event);
  };
  for (const std::uint32_t step : {5U, 6U, 7U, 9U, 10U}) {
    add(store::ev::EventKind::step_begin, step);
    if (step != 6) add(store::ev::EventKind::step_end, step);
  }
  store.ingest(chunk);
  const std::optional<Kept> kept = kept_of(store);
  ASSERT_TRUE(kept);
  std::string ranges;
  for (const StepRange& range : kept->steps)
    ranges += std::to_string(range.first) + "-" + std::to_string(range.last) + " ";
  EXPECT_EQ(ranges, "5-5 7-7 9-10 ");
  EXPECT_EQ(kept->whole_steps, 4U);
}

TEST(DistributionsText, SaysWhetherTheyAreOfTheWholeRun) {
  const store::Store store;
  store::RecordingInfo info;
  EXPECT_TRUE(distributions_json(distributions(store, info)).is_null()) << "it had no limits";
  info.limits.max_age_ns = 1;
  EXPECT_EQ(distributions_json(distributions(store, info)), nlohmann::json::array())
      << "none was written yet";
  store::QuantileSketch sketch;
  sketch.add(1'000'000);
  info.distributions.emplace_back(store::SketchKey{.kind = store::ev::EventKind::step_begin}, sketch);
  EXPECT_EQ(text_of(distributions(store, info)).find("whole run"), std::string::npos);
  EXPECT_NE(text_of(distributions(store, info)).find("up to the last minute recorded"), std::string::npos);
  info.complete = true;
  EXPECT_NE(text_of(distributions(store, info)).find("whole run, all ranks"), std::string::npos);
  EXPECT_EQ(text_of(distributions(store, info)).find("last minute"), std::string::npos);
}

TEST(Distributions, OfEachRankAreThoseOfItsLanesWithoutModules) {
  store::RecordingInfo info;
  info.limits.max_age_ns = 1;
  using store::ev::EventKind;
  const auto add = [&](std::uint32_t rank, store::ev::StreamId stream, std::uint32_t module,
                       std::int64_t ns) {
    store::QuantileSketch sketch;
    sketch.add(ns);
    info.distributions.emplace_back(
        store::SketchKey{
            .rank = rank, .stream = stream, .kind = EventKind::step_begin, .code = 0, .module = module},
        sketch);
  };
  add(1, store::ev::StreamId::host, store::ev::kNoId, 4'000'000);
  add(0, store::ev::StreamId::host, store::ev::kNoId, 1'000'000);
  add(0, store::ev::StreamId::compute, store::ev::kNoId, 3'000'000);
  add(store::ev::kNoId, store::ev::StreamId::host, 7, 9'000'000);
  const auto rows = rank_distributions(info);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].rank, 0U);
  EXPECT_EQ(rows[0].spans.what, "step");
  EXPECT_EQ(rows[0].spans.count, 2U);
  EXPECT_DOUBLE_EQ(rows[0].spans.min_ms, 1);
  EXPECT_DOUBLE_EQ(rows[0].spans.max_ms, 3);
  EXPECT_EQ(rows[1].rank, 1U);
  EXPECT_NEAR(rows[1].spans.p50_ms, 4, 0.08);
}

TEST_F(KeptPart, FiguresOfKeptStepsAreThoseOfTheWhole) {
  Digest whole, part;
  (void)whole.update(*whole_);
  (void)part.update(*part_);
  const std::optional<Kept> kept = kept_of(*part_);
  ASSERT_TRUE(kept);
  ASSERT_EQ(part.steps().size(), kept->whole_steps);
  EXPECT_EQ(part.first_measured(), 0U) << "the first that is here is no warm-up";
  EXPECT_EQ(whole.first_measured(), 1U);
  for (const StepDigest& b : part.steps()) {
    const auto at = std::ranges::find(whole.steps(), b.step, &StepDigest::step);
    ASSERT_NE(at, whole.steps().end());
    const StepDigest& a = *at;
    EXPECT_FALSE(b.lacks_events());
    ASSERT_EQ(a.ranks.size(), b.ranks.size());
    for (std::size_t r = 0; r < a.ranks.size(); ++r) {
      EXPECT_EQ(a.ranks[r].begin_ns, b.ranks[r].begin_ns) << b.step;
      EXPECT_EQ(a.ranks[r].end_ns, b.ranks[r].end_ns) << b.step;
      EXPECT_EQ(a.ranks[r].time.compute_ns, b.ranks[r].time.compute_ns) << b.step;
      EXPECT_EQ(a.ranks[r].time.exposed_comm_ns, b.ranks[r].time.exposed_comm_ns) << b.step;
      EXPECT_EQ(a.ranks[r].time.idle_ns, b.ranks[r].time.idle_ns) << b.step;
      EXPECT_EQ(b.ranks[r].time.unrecorded_ns, 0) << b.step;
      EXPECT_EQ(a.ranks[r].fetch_wait_ns, b.ranks[r].fetch_wait_ns) << b.step;
    }
    ASSERT_EQ(a.ops.size(), b.ops.size());
    for (const auto& [op, totals] : a.ops) {
      EXPECT_EQ(totals.count, b.ops.at(op).count) << b.step;
      EXPECT_EQ(totals.transfer_ns, b.ops.at(op).transfer_ns) << b.step;
    }
    EXPECT_EQ(a.prefetch.early, b.prefetch.early) << b.step;
  }
}

TEST_F(KeptPart, TheSummarySaysWhatItIsOf) {
  const Summary whole = summarize(*whole_), part = summarize(*part_);
  EXPECT_FALSE(whole.kept);
  ASSERT_TRUE(part.kept);
  EXPECT_EQ(part.steps, whole.steps);
  EXPECT_EQ(part.step_ms, whole.step_ms);
  EXPECT_EQ(part.loss.size(), whole.loss.size());
  EXPECT_EQ(part.step_ms_median, whole.step_ms_median);
  EXPECT_FALSE(part.losses.any());
  for (std::size_t r = 0; r < part.ranks.size(); ++r) {
    EXPECT_EQ(part.ranks[r].time.unrecorded_ns, 0);
    EXPECT_EQ(part.ranks[r].time_steps, part.kept->whole_steps);
    ASSERT_EQ(part.ranks[r].memory_peak.size(), whole.ranks[r].memory_peak.size());
    for (const auto& [pool, sample] : whole.ranks[r].memory_peak)
      EXPECT_EQ(part.ranks[r].memory_peak.at(pool).bytes, sample.bytes);
  }
  EXPECT_TRUE(nlohmann::json::parse(to_json(whole))["kept"].is_null());
  EXPECT_EQ(nlohmann::json::parse(to_json(part))["kept"]["whole_steps"], part.kept->whole_steps);
}

/// The recorder measures them with no digest at hand: they equal the partition of time of all steps.
TEST_F(KeptPart, OwnTimesOfAllStepsAreThoseOfThePartition) {
  struct Sum {
    std::uint32_t steps = 0;
    std::int64_t own_ns = 0, waited_ns = 0;
  };
  std::map<std::uint32_t, Sum> expected, kept;
  const Digest digest = digest_of(*whole_);
  for (const StepDigest& step : digest.steps()) {
    for (const RankStep& rank : step.ranks) {
      Sum& sum = expected[rank.rank];
      ++sum.steps;
      sum.own_ns += rank.time.total_ns - rank.time.checkpoint_ns - rank.time.exposed_comm_ns;
      sum.waited_ns += rank.time.exposed_comm_ns;
    }
  }
  for (const store::OwnTimeRow& row : part_->own_times()) {
    Sum& sum = kept[row.rank];
    sum.steps += row.steps;
    sum.own_ns += row.own_ns;
    sum.waited_ns += row.waited_ns;
  }
  ASSERT_EQ(kept.size(), 2U);
  for (const auto& [rank, sum] : expected) {
    EXPECT_EQ(kept[rank].steps, sum.steps) << rank;
    EXPECT_EQ(kept[rank].own_ns, sum.own_ns) << rank;
    EXPECT_EQ(kept[rank].waited_ns, sum.waited_ns) << rank;
  }
  EXPECT_TRUE(summarize(*part_).rank_drifts);
  EXPECT_FALSE(summarize(*whole_).rank_drifts);
}

}  // namespace
}  // namespace shardscope::analysis
