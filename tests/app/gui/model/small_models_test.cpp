// Small view models: a command in a child process, marks of hits, paces of ranks, turns of two threads,
// actions of the update, micro-steps of a step.
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/gui/model/arrivals.h"
#include "app/gui/model/command_run.h"
#include "app/gui/model/compare_tables.h"
#include "app/gui/model/curve.h"
#include "app/gui/model/hit_marks.h"
#include "app/gui/model/micro_steps.h"
#include "app/gui/model/rank_pace_table.h"
#include "app/gui/model/turns.h"
#include "app/gui/model/update_actions.h"
#include "tests/app/analysis/run_builder.h"
#include "tests/app/gui/model/searched_spans.h"
#include "tests/app/gui/model_fixture.h"

namespace shardscope::gui {
namespace {

using namespace std::chrono_literals;

CommandRun::Ended ended(CommandRun& run, std::vector<std::string> argv) {
  std::promise<CommandRun::Ended> done;
  run.start(std::move(argv), [&](CommandRun::Ended how) { done.set_value(std::move(how)); });
  return done.get_future().get();
}

TEST(CommandRun, ItsOutputIsCollectedAndAnExitCodeIsAProblem) {
  CommandRun run;
  const auto good = ended(run, {"sh", "-c", "echo out; echo 'shardscope: said' >&2"});
  EXPECT_EQ(good.out, "out\n");
  EXPECT_EQ(good.problem, "");
  EXPECT_EQ(good.words, "said") << "without the name of the program";
  EXPECT_EQ(ended(run, {"sh", "-c", "echo shardscope: why >&2; exit 3"}).problem, "why");
  EXPECT_EQ(ended(run, {"sh", "-c", "exit 3"}).problem, "sh failed");
  EXPECT_NE(ended(run, {"/no/such/program"}).problem.find("/no/such/program"), std::string::npos);
}

TEST(CommandRun, ACancelledCommandEndsWithItsChildren) {
  CommandRun run;
  std::promise<CommandRun::Ended> done;
  const auto began = std::chrono::steady_clock::now();
  // The child holds the pipe open: were it left alone, the output would end only with it.
  run.start({"sh", "-c", "sleep 60 & wait"}, [&](CommandRun::Ended how) { done.set_value(std::move(how)); });
  EXPECT_TRUE(run.running());
  std::this_thread::sleep_for(100ms);
  run.cancel();
  EXPECT_EQ(done.get_future().get().problem, "ended before it was done");
  EXPECT_LT(std::chrono::steady_clock::now() - began, 30s);
}

TEST(CommandRun, RecordingsHaveNamesOfTheirOwn) {
  const std::string one = temporary_recording("whatif");
  EXPECT_NE(one, temporary_recording("whatif"));
  EXPECT_NE(one.find("whatif"), std::string::npos);
  EXPECT_TRUE(one.ends_with(".zscope"));
}

/// One rank whose module spans of 10 ns begin every 100 ns.
store::Store ten_spans() {
  test::RunBuilder run(1);
  run.span(0, 0, 1000, ev::EventKind::step_begin, ev::StreamId::host, 0);
  for (int i = 0; i < 10; ++i)
    run.span(0, 100 * i, 100 * i + 10, ev::EventKind::module_begin, ev::StreamId::compute, 1);
  return std::move(run.build());
}

TEST(HitMarks, AreWhereTheHitsAreAndOneWhereTheyAreTooClose) {
  const store::Store store = ten_spans();
  SpanQuery query;
  query.words = "layer";
  const SpanSearch search = searched(store, query);
  HitMarks marks;
  marks.start({});
  while (marks.advance(search, kAll)) {
  }
  const HitMarks::List* list = nullptr;
  std::size_t lane = 0;
  for (std::size_t i = 0; i < search.lanes().size(); ++i)
    for (const HitMarks::List& one : marks.lists(i))
      if (!one.hits.empty()) {
        EXPECT_EQ(list, nullptr) << "hits of one depth are one list";
        list = &one;
        lane = i;
      }
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list->hits.size(), 10U);
  EXPECT_FALSE(list->wait);
  const SpanSearch::Lane& of = search.lanes()[lane];
  const auto apart = marks_of(of, *list, {{0, 1000}, 0, 1000}, 4);
  ASSERT_EQ(apart.size(), 10U);
  EXPECT_FLOAT_EQ(apart[3].x0, 300);
  EXPECT_FLOAT_EQ(apart[3].x1, 310);
  const auto part = marks_of(of, *list, {{305, 650}, 0, 345}, 1);
  ASSERT_EQ(part.size(), 4U) << "the one that is cut, and those at 400, 500 and 600";
  EXPECT_FLOAT_EQ(part[0].x0, 0);
  EXPECT_LE(marks_of(of, *list, {{0, 1000}, 0, 20}, 4).size(), 10U) << "two for four points at most";
  EXPECT_TRUE(marks.lists(99).empty());
}

std::shared_ptr<const StepTimes> step_of_ranks(std::uint32_t step,
                                               const std::vector<std::int64_t>& compute_ns) {
  auto out = std::make_shared<StepTimes>();
  out->step = step;
  for (std::uint32_t rank = 0; rank < compute_ns.size(); ++rank) {
    StepTimes::Rank one;
    one.rank = rank;
    one.time.compute_ns = compute_ns[rank];
    out->ranks.push_back(one);
  }
  return out;
}

TEST(RankPaceTable, CountsInHowManyOfTheLastStepsARankWasSlow) {
  auto analysis = std::make_shared<Analysis>();
  for (std::uint32_t step = 0; step < 10; ++step)
    analysis->step_times.push_back(step_of_ranks(step, {100, 100, step >= 4 ? 150 : 100, 100}));
  RankPaceTables tables;
  const RankPaceTable& last = tables.of(analysis, analysis->step_times.back().get());
  EXPECT_EQ(last.longest_ns, 150);
  EXPECT_EQ(last.recent.at(2).slow, 6U);
  EXPECT_EQ(last.recent.at(2).of, kPaceSteps);
  EXPECT_TRUE(last.recent.at(2).lasting());
  EXPECT_EQ(last.recent.at(0).slow, 0U);
  const RankPaceTable& early = tables.of(analysis, analysis->step_times[5].get());
  EXPECT_EQ(early.recent.at(2).slow, 2U);
  EXPECT_EQ(early.recent.at(2).of, 6U);
  EXPECT_FALSE(early.recent.at(2).lasting()) << "two steps are noise";
  EXPECT_TRUE(tables.of(analysis, nullptr).recent.empty());
}

TEST(Turns, TheWindowComesBeforeTheAnalysisThatWaits) {
  Turns turns;
  std::atomic<int> order = 0;
  int window = 0, analysis = 0;
  std::thread first, next;
  {
    const Turns::Turn held = turns.first();
    next = std::thread([&] {
      const Turns::Turn mine = turns.next();
      analysis = ++order;
    });
    std::this_thread::sleep_for(50ms);  // it waits already
    first = std::thread([&] {
      const Turns::Turn mine = turns.first();
      window = ++order;
      std::this_thread::sleep_for(20ms);
    });
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(order, 0) << "one at a time has a turn";
  }
  first.join();
  next.join();
  EXPECT_EQ(window, 1);
  EXPECT_EQ(analysis, 2);
}

class UpdateActions : public ::testing::Test {
 protected:
  UpdateActions() : store_(ten_spans()) {}
  std::optional<SchedulerAction> of(ev::EventKind kind, std::uint8_t code, std::uint32_t a, std::uint32_t b,
                                    std::uint32_t c, std::int64_t v0, std::int64_t v1 = 0) {
    ev::Event event{};
    event.ticks = 70;
    event.kind = kind;
    event.code = code;
    event.a = a;
    event.b = b;
    event.c = c;
    event.v0 = v0;
    event.v1 = v1;
    return update_action(store_, event, {});
  }
  store::Store store_;
};

TEST_F(UpdateActions, SayWhatTheUpdateDid) {
  const auto bits = [](double value) { return std::bit_cast<std::int64_t>(value); };
  const auto clipped = of(ev::EventKind::clip_factor, 0, 7, 0, 0, bits(0.25));
  ASSERT_TRUE(clipped);
  EXPECT_EQ(clipped->at_ns, 70);
  EXPECT_EQ(clipped->text, "Gradients clipped: multiplied by 0.2500");
  EXPECT_FALSE(of(ev::EventKind::clip_factor, 0, 7, 0, 0, bits(1))) << "the norm was within the limit";
  const auto chosen = of(ev::EventKind::columns_selected, 0, 0, 7, 12, 480, 4800);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->param, 0U);
  EXPECT_NE(chosen->text.find("12 of layer.weight"), std::string::npos) << chosen->text;
  const auto votes = of(ev::EventKind::update_votes, 0, 7, 3, 2, bits(0.5), 4);
  ASSERT_TRUE(votes);
  EXPECT_NE(votes->text.find("3 of 4 matrices, 2 are needed"), std::string::npos) << votes->text;
  EXPECT_NE(votes->reason.find("50"), std::string::npos) << votes->reason;
  const auto reset = of(ev::EventKind::feedback_reset, 0, 7, 5, 0, 2000);
  ASSERT_TRUE(reset);
  EXPECT_NE(reset->text.find("5 parameters"), std::string::npos) << reset->text;
  EXPECT_FALSE(of(ev::EventKind::bucket_flush, 0, 1, 1, 1, 1)) << "not of the update";
}

TEST(MicroSteps, AreThoseOfTheStepInOrder) {
  test::RunBuilder run(2);
  for (std::uint32_t step = 0; step < 2; ++step) {
    const std::int64_t at = 1000 * step;
    run.span(0, at, at + 1000, ev::EventKind::step_begin, ev::StreamId::host, step);
    // Another rank is late: on it the first step goes on while this one is in the second.
    run.span(1, at, at + 1100, ev::EventKind::step_begin, ev::StreamId::host, step);
    for (std::uint32_t i = 0; i < (step == 0 ? 4U : 1U); ++i)
      run.span(0, at + 200 * i, at + 200 * i + 150, ev::EventKind::micro_step_begin, ev::StreamId::host, i);
  }
  const store::Store& store = run.build();
  const auto first = micro_steps_of(store, store.steps()[0]);
  ASSERT_EQ(first.size(), 4U);
  EXPECT_EQ(first[2].begin_ns, 400);
  EXPECT_EQ(first[2].end_ns, 550);
  EXPECT_EQ(first[2].number, 2U);
  EXPECT_TRUE(micro_steps_of(store, store.steps()[1]).empty()) << "a step of one needs no lines";
}

TEST(Barriers, SayWhoWaitedForWhom) {
  test::RunBuilder run(3);
  const auto barrier = static_cast<std::uint8_t>(ev::CollectiveOp::barrier);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    run.span(rank, 0, 1000, ev::EventKind::step_begin, ev::StreamId::host, 0);
    run.span(rank, rank == 1 ? 300 : 100, 400, ev::EventKind::collective_begin, ev::StreamId::reduce, 5, 5,
             barrier);
  }
  const store::Store& store = run.build();
  BarrierTexts texts;
  const auto of = [&](std::uint32_t rank) {
    const store::LaneId lane{rank, ev::StreamId::reduce};
    return texts.of(1, store, lane, store.spans(lane, 0).front());
  };
  EXPECT_EQ(of(0), "barrier, waits for rank 1");
  EXPECT_EQ(of(1), "barrier, last to arrive");
  EXPECT_EQ(of(2), "barrier, waits for rank 1");
  EXPECT_EQ(of(0), "barrier, waits for rank 1") << "kept";
  EXPECT_EQ(barrier_text({{4, 10, 0}}, 4), "barrier") << "no other rank was recorded";
}

TEST(ComparedPanels, AFigureAndASettingLeadToWhereTheyAreSeen) {
  EXPECT_EQ(panel_of_metric("peak memory"), "memory");
  EXPECT_EQ(panel_of_metric("step time"), "overview");
  EXPECT_EQ(panel_of_metric("exposed communication"), "communication");
  EXPECT_EQ(panel_of_metric("all-gather busbw, with waiting"), "communication");
  EXPECT_EQ(panel_of_metric("bucket flushes"), "buckets");
  EXPECT_EQ(panel_of_setting("zero_optimization.reduce_bucket_size"), "buckets");
  EXPECT_EQ(panel_of_setting("zero_optimization.stage3_prefetch_bucket_size"), "stepper");
  EXPECT_EQ(panel_of_setting("zero_optimization.offload_optimizer.device"), "memory");
  EXPECT_EQ(panel_of_setting("wall_clock_breakdown"), "trace_info");
}

TEST(Curves, ThatSpanThreeDecadesAreForALogarithmicAxis) {
  EXPECT_TRUE(spans_decades(std::vector<std::vector<double>>{{1, 20}, {1000}}));
  EXPECT_FALSE(spans_decades(std::vector<std::vector<double>>{{1, 999}}));
  EXPECT_FALSE(spans_decades(std::vector<std::vector<double>>{{0, 1, 5000}})) << "zero has no logarithm";
  EXPECT_FALSE(spans_decades(std::vector<std::vector<double>>{}));
}

TEST(TimesOfBars, AreFromTheFirstToTheLastWhicheverWayTheDragWent) {
  const TimeHistogram histogram{{0, 10, 20, 30.5}, {1, 2, 3}, false};
  EXPECT_EQ(times_of(histogram, 1, 1), std::pair(std::int64_t{10}, std::int64_t{20}));
  EXPECT_EQ(times_of(histogram, 0, 2), std::pair(std::int64_t{0}, std::int64_t{31}));
  EXPECT_EQ(times_of(histogram, 2, 0), times_of(histogram, 0, 2));
}

}  // namespace
}  // namespace shardscope::gui
