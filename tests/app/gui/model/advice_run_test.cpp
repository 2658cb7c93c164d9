// What the window takes from `shardscope findings`: it is what the command printed, and a recording's
// findings have their predicted gains by it.
#include "app/gui/model/advice_run.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "app/gui/model/finding_detail.h"
#include "app/gui/model/session.h"
#include "tests/temporary_folder.h"

namespace shardscope::gui {
namespace {

TEST(AdviceRun, ReadsWhatTheCommandPrints) {
  analysis::Finding full;
  full.severity = ev::Severity::warning;
  full.title = "one bucket for all gradients";
  full.evidence = "1 flush";
  full.next_step = "set reduce_bucket_size";
  full.at_ns = 5;
  full.until_ns = 9;
  full.rank = 3;
  full.id = "large_bucket";
  full.page = "docs/findings/buckets.md";
  full.panel = "buckets";
  full.cost_ms = 1.5;
  full.cost_once_ms = 2.5;
  full.cost_bytes = 77;
  full.bytes_of = analysis::BytesOf::communication;
  full.changes = {{"zero_optimization.reduce_bucket_size", "1000"}};
  full.gain_ms = 1.25;
  full.gain_bytes = -8;
  full.gain_basis = "what-if: 3 plays";
  full.explains = {"late reductions"};
  analysis::Finding bare;
  bare.severity = ev::Severity::error;
  const std::string printed = analysis::findings_json({full, bare}, false);
  const auto [findings, problem] = read_findings(printed);
  EXPECT_EQ(problem, "");
  EXPECT_EQ(analysis::findings_json(findings, false), printed);

  for (const char* wrong : {"", "{}", "[1]", "[{\"severity\": 3}]", "[{}]"})
    EXPECT_NE(read_findings(wrong).second.find("shardscope findings"), std::string::npos) << wrong;
}

/// Polls as the window does until what-if has answered or failed.
void wait_for_advice(Session& run) {
  for (int i = 0; i < 6000 && run.advice().state() == AdviceRun::State::asking; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    run.poll(std::chrono::milliseconds(1));
  }
}

CommandRun::Ended ended_of(std::vector<std::string> argv) {
  CommandRun::Ended out;
  CommandRun command;
  command.start(std::move(argv), [&out](CommandRun::Ended ended) { out = std::move(ended); });
  while (command.running()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return out;
}

TEST(AdviceRun, ARecordingsFindingsGetTheGainsThatTheCommandPrints) {
  const test::TemporaryFolder folder;
  const std::string recording = folder.path() / "slow.zscope";
  const CommandRun::Ended made =
      ended_of({shardscope_program(), "simulate", "--model", "gpt-mini", "--ranks", "4", "--steps", "6",
                "--set", "zero_optimization.stage=2", "--set", "zero_optimization.reduce_bucket_size=2000",
                "--set", "zero_optimization.overlap_comm=false", "--record", recording});
  ASSERT_EQ(made.problem, "");
  const auto run = Session::open_file(recording);
  EXPECT_EQ(run->advice().state(), AdviceRun::State::not_asked);
  ASSERT_TRUE(run->settle());
  ASSERT_TRUE(can_be_played(run->store(), run->findings()));
  EXPECT_NE(advice_words(*run).find("not predicted yet"), std::string::npos);
  run->ask_what_if();
  ASSERT_EQ(run->advice().state(), AdviceRun::State::asking);
  EXPECT_NE(advice_words(*run).find("simulating"), std::string::npos);
  wait_for_advice(*run);
  ASSERT_EQ(run->advice().state(), AdviceRun::State::answered) << run->advice().problem();
  // The command prints every option as well, which the window does not show.
  nlohmann::json printed =
      nlohmann::json::parse(ended_of({shardscope_program(), "findings", recording, "--json"}).out);
  for (nlohmann::json& finding : printed) EXPECT_EQ(finding.erase("options"), 1U);
  EXPECT_EQ(nlohmann::json::parse(analysis::findings_json(run->findings(), true)), printed);
  EXPECT_FALSE(can_be_played(run->store(), run->findings())) << "all were played";
  EXPECT_EQ(advice_words(*run), "");
  // Not a second time.
  run->ask_what_if();
  EXPECT_EQ(run->advice().state(), AdviceRun::State::answered);
}

TEST(AdviceRun, ARecordingThatIsGoneHasItsReason) {
  AdviceRun advice;
  EXPECT_FALSE(advice.take());
  advice.ask("/no/such/run.zscope");
  while (advice.state() == AdviceRun::State::asking) {
    EXPECT_FALSE(advice.take());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(advice.state(), AdviceRun::State::failed);
  EXPECT_NE(advice.problem().find("/no/such/run.zscope"), std::string::npos) << advice.problem();
}

}  // namespace
}  // namespace shardscope::gui
