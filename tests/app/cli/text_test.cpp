#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "app/cli/detail_switch.h"
#include "app/cli/help_format.h"
#include "app/cli/live_look.h"
#include "app/cli/rank_failure.h"
#include "app/cli/replayed_run.h"
#include "app/cli/summary_text.h"
#include "app/collector/local_runs.h"
#include "app/store/store.h"
#include "instrumentation/plain_text.h"

namespace shardscope::cli {
namespace {

namespace ev = instrumentation;
using testing::HasSubstr;
using testing::Not;

std::string loss_line(const std::vector<double>& loss) {
  analysis::Summary summary;
  summary.loss = loss;
  const std::string text = summary_text(summary);
  const std::size_t begin = text.find("\nloss ") + 1;
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(SummaryText, ALossThatNobodyReportedIsADash) {
  EXPECT_EQ(loss_line({4.5, 4.25}), "loss           4.5000 -> 4.2500");
  EXPECT_EQ(loss_line({4.5, 4.25, NAN}), "loss           4.5000 -> 4.2500");
  EXPECT_EQ(loss_line({NAN, 4.25}), "loss           — -> 4.2500");
  EXPECT_EQ(loss_line({NAN, NAN}), "loss           —");
}

TEST(SummaryText, OutsideMemoryIsThatOfTheRankWithTheMost) {
  constexpr std::int64_t kGib = 1 << 30;
  analysis::Summary summary;
  summary.device = "cuda:0";
  summary.framework = "FSDP2 (PyTorch 2.15.0)";
  summary.kind = analysis::Framework::fsdp2;
  summary.ranks.resize(2);
  EXPECT_THAT(summary_text(summary), Not(HasSubstr("outside memory")));
  summary.ranks[0].outside = {kGib, 9 * kGib, 5};
  summary.ranks[1].rank = 1;
  summary.ranks[1].outside = {3 * kGib, 8 * kGib, 5};
  EXPECT_THAT(
      summary_text(summary),
      HasSubstr("\noutside memory 3.00 GiB at most (rank 1, 8.00 GiB in use in all): CUDA's context and "
                "kernels, NCCL, what goes past PyTorch's allocator, other processes on that device\n"));
}

/// Ranks that are started again from a checkpoint count their steps from there.
TEST(DetailSwitch, StepsThatBeginAgainDoNotKeepTheDetailRaised) {
  std::vector<std::string> requests;
  DetailSwitch detail({.raise = "params", .otherwise = "steps", .raise_steps = 20},
                      [&](const std::string& name) { requests.push_back(name); });
  detail.follow(990, false);
  detail.follow(1000, true);
  detail.follow(1005, false);
  EXPECT_THAT(requests, testing::ElementsAre("steps", "params"));
  detail.follow(900, false);
  detail.follow(919, false);
  EXPECT_EQ(requests.size(), 2U) << "raised for 20 steps from the one it went back to";
  detail.follow(920, false);
  EXPECT_THAT(requests, testing::ElementsAre("steps", "params", "steps"));
}

TEST(PlainText, ATerminalObeysNothingOfIt) {
  EXPECT_EQ(instrumentation::plain_line("a\x1b[31m\n\r\t\x7f"), "a\\x1b[31m\\n\\r\\t\\x7f");
  EXPECT_EQ(instrumentation::plain_line("\xc2\x9b|\xe2\x80\xae|\xe2\x80\xa8|\xef\xbb\xbf"),
            "\\u009b|\\u202e|\\u2028|\\ufeff");
  EXPECT_EQ(instrumentation::plain_line("\xff|\xc0\xaf|\xed\xa0\x80|\xe2\x82"),
            "\\xff|\\xc0\\xaf|\\xed\\xa0\\x80|\\xe2\\x82");
  EXPECT_EQ(instrumentation::plain_line("µs ± 3 — ü 層 😀"), "µs ± 3 — ü 層 😀");
  EXPECT_EQ(instrumentation::plain_lines("a\n\x1b\n"), "a\n\\x1b\n");
  EXPECT_EQ(instrumentation::plain_message("a\nshardscope: b\n  c\n"), "a\n  shardscope: b\n  c\n");
  EXPECT_EQ(instrumentation::plain_json("{\"a\": \"\xc2\x9b\x7f ü\"}\n"), "{\"a\": \"\\u009b\\u007f ü\"}\n");
}

TEST(FindingsText, ANameCannotBreakOutOfItsLine) {
  analysis::Finding finding;
  finding.title = "layer\nshardscope: fine";
  finding.evidence = "\x1b[2J";
  finding.next_step = "look";
  EXPECT_THAT(findings_text({finding}, false),
              HasSubstr("layer\\nshardscope: fine\n         \\x1b[2J\n         Next: look\n"));
}

TEST(SummaryText, UnrecordedTimeAndStepsWithoutAllEventsAreNamed) {
  analysis::Summary summary;
  summary.stage = 3;
  summary.steps = 10;
  summary.steps_measured = 9;
  summary.lacking_steps = 4;
  summary.losses.dropped = 300;
  analysis::RankSummary rank;
  rank.time.compute_ns = 50'000'000;
  rank.time.idle_ns = 5'000'000;
  rank.time.total_ns = 90'000'000;
  rank.time.unrecorded_ns = 35'000'000;
  rank.time_steps = 9;
  summary.ranks = {rank};
  // Of nine steps 35 ms, 90 ms in all.
  EXPECT_THAT(summary_text(summary), HasSubstr("\nms per step, mean of"));
  EXPECT_THAT(summary_text(summary), HasSubstr(" 3.889 "));
  EXPECT_THAT(summary_text(summary), HasSubstr(" 10.000 "));
  summary.steps = summary.steps_measured = 1;
  EXPECT_THAT(summary_text(summary), HasSubstr("1 (measured, though it is the first"));
  summary.steps = 10;
  summary.steps_measured = 9;
  EXPECT_THAT(summary_text(summary), HasSubstr("events are missing in 4 of 10 steps: 300 dropped"));
  summary.elements_per_step = 1000;
  summary.elements_steps = 5;
  EXPECT_THAT(summary_text(summary), HasSubstr("over 5 of 9 steps; the others lack events"));
  summary.ops.resize(1);
  summary.ops[0].busbw_gbs = 5.1;
  summary.ops[0].busbw_waiting_gbs = 0.59;
  EXPECT_THAT(summary_text(summary), HasSubstr("transfer alone GB/s"));
  EXPECT_THAT(summary_text(summary), HasSubstr("5.100"));
  EXPECT_THAT(summary_text(summary), HasSubstr("0.590"));
}

TEST(SummaryText, SaysWhatIsMissing) {
  analysis::Summary summary;
  summary.events = 100;
  EXPECT_THAT(summary_text(summary), HasSubstr("100, 0 dropped, 0 messages lost\n"));
  EXPECT_THAT(summary_text(summary), Not(HasSubstr("problem")));
  summary.losses = {.dropped = 3, .shed = 1, .lost_messages = 1, .damaged_events = 20, .absent_events = 7};
  summary.problems = {"chunk 6: checksum does not match"};
  EXPECT_THAT(summary_text(summary),
              HasSubstr("100, 3 dropped (1 of them by a collector), 1 message lost, 20 damaged, 7 not in the "
                        "recording\nproblem        chunk 6: checksum does not match\n"));
}

TEST(SummaryText, SaysUnmatchedSpanEnds) {
  analysis::Summary summary;
  summary.events = 100;
  summary.losses = {.unmatched_ends = 5, .explained_ends = 1};
  summary.unmatched_ends = {{2, ev::EventKind::module_end, 5, 1}};
  EXPECT_THAT(summary_text(summary),
              HasSubstr("100, 0 dropped, 0 messages lost, 5 unmatched span ends, 1 of them explained: "
                        "events are missing there\n"
                        "               unexplained unmatched ends: rank 2: 4 module_end\n"));
  summary.losses.explained_ends = 5;
  summary.unmatched_ends = {{2, ev::EventKind::module_end, 5, 5}};
  EXPECT_THAT(summary_text(summary),
              HasSubstr("5 unmatched span ends, explained: events are missing there\n"));
  EXPECT_THAT(summary_text(summary), Not(HasSubstr("unexplained")));
}

/// The reason given is one of this run.
TEST(SummaryText, SaysWhySomethingIsNotKnown) {
  analysis::Summary summary;
  summary.stage = 3;
  summary.recorded_detail = ev::Detail::modules;
  EXPECT_THAT(
      summary_text(summary),
      HasSubstr("prefetch       not known: prefetches are recorded from detail params on, and nothing above "
                "modules was recorded\n"
                "trace          not known: modes of it were not recorded, though the detail was "
                "modules\n"));
  summary.recorded_detail = ev::Detail::params;
  EXPECT_THAT(summary_text(summary),
              HasSubstr("prefetch       not known: prefetches were not recorded, though the detail was "
                        "params\n"));
  summary.recorded_detail.reset();
  EXPECT_THAT(summary_text(summary), HasSubstr("from detail params on, and nothing was recorded\n"));
}

TEST(SummaryText, SaysHowWellClocksAreKnown) {
  analysis::Summary summary;
  summary.ranks.resize(2);
  summary.ranks[0].clock_offset_ns = -1'250'000;
  summary.ranks[0].clock_residual_ns = 3'400;
  summary.ranks[0].clock_drift = store::ClockDrift{.ppb = -80'149, .bound_ppb = 2'300};
  summary.ranks[1].rank = 1;
  EXPECT_THAT(summary_text(summary), HasSubstr("\n0           -1.25 ms     ±3.40 µs    -80.1 ± 2.3 ppm\n"
                                               "1               0 ns        ±0 ns                  —\n"));
}

TEST(SummaryText, OfNothingThereAreNoFigures) {
  analysis::Summary summary;
  summary.problems = {"nothing is in it"};
  EXPECT_EQ(summary_text(summary), "events         0\nproblem        nothing is in it\n");
}

TEST(LiveLook, ACollectorThatIsBehindIsNotSaidToBeAbsent) {
  using Link = collector::Viewer::Link;
  const std::string behind = no_answer_text("tcp://127.0.0.1:9", Link::catching_up, 1'234'567, 4, 20);
  EXPECT_THAT(
      behind,
      HasSubstr("connected, but still behind the run after 20 s: 1234567 events of 4 ranks are read"));
  EXPECT_THAT(behind, Not(HasSubstr("no collector")));
  EXPECT_THAT(no_answer_text("tcp://127.0.0.1:9", Link::connecting, 0, 0, 0.5),
              HasSubstr("no collector answered within 0.5 s"));
}

TEST(LiveLook, NamesTheRunsThatListenElsewhere) {
  const std::vector<collector::LocalRun> runs = {{"tcp://127.0.0.1:5711", "shardscope run --config a.json"},
                                                 {"tcp://127.0.0.1:9", "shardscope record b.zscope"},
                                                 {"tcp://127.0.0.1:5713", std::string(100, 'x')}};
  EXPECT_EQ(
      collector::text_of(runs, "tcp://127.0.0.1:9"),
      "your runs that listen: tcp://127.0.0.1:5711 (shardscope run --config a.json), tcp://127.0.0.1:5713 (" +
          std::string(60, 'x') + "...)");
  EXPECT_EQ(collector::text_of({{"tcp://127.0.0.1:9", "x"}}, "tcp://127.0.0.1:9"), "");
}

TEST(Help, SaysInWordsWhatAValueIs) {
  EXPECT_EQ(value_words("TEXT"), "TEXT");
  EXPECT_EQ(value_words("TEXT:ENDPOINT"), "ENDPOINT");
  EXPECT_EQ(value_words("TEXT:{steps,phases}"), "steps|phases");
  EXPECT_EQ(value_words("TEXT:cpu|cuda|cuda:N"), "cpu|cuda|cuda:N");
  EXPECT_EQ(value_words("UINT:UINT in [0 - 1000]"), "N from 0 to 1000");
  EXPECT_EQ(value_words("FLOAT:POSITIVE:FLOAT in [0 - 86400]"), "N from 0 to 86400");
  EXPECT_EQ(value_words("UINT:POSITIVE"), "N above 0");
  EXPECT_EQ(value_words("INT"), "N");
}

TEST(WhatIf, PlaysNoRunOfAnotherFramework) {
  store::Store store;
  EXPECT_THAT(why_not_played(store), HasSubstr("does not describe the run"));
  instrumentation::RunTables tables;
  tables.config_json = "{\"zero_optimization\": {\"stage\": 3}}";
  store.set_tables(0, tables);
  EXPECT_EQ(why_not_played(store), "");
  tables.framework = "DeepSpeed 0.19.8";
  store::Store attached;
  attached.set_tables(0, tables);
  EXPECT_THAT(why_not_played(attached), HasSubstr("this one was trained by DeepSpeed 0.19.8"));
}

TEST(WhatIf, SaysHowFarTheModelIsOffInWords) {
  EXPECT_EQ(model_error_text(-7.9), "the model's step is 7.9 % shorter than the recorded one");
  EXPECT_EQ(model_error_text(12), "the model's step is 12.0 % longer than the recorded one");
}

TEST(RankFailure, IsReadFromTheNoticeOfTheLauncher) {
  const auto killed = exit_in_notice(
      "Primary job  terminated normally, but 1 process returned\nmpirun noticed that process rank 1 with PID "
      "4711 on "
      "node n1 exited on signal 9 (Killed).\n");
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->rank, 1U);
  EXPECT_EQ(killed->exit_code, 137);
  EXPECT_FALSE(exit_in_notice("mpirun detected that one or more processes exited with non-zero status"));
}

}  // namespace
}  // namespace shardscope::cli
