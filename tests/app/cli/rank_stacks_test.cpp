#include "app/cli/rank_stacks.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace shardscope::cli {
namespace {

// As python/shardscope/_stacks.py writes it.
constexpr const char* kStacks =
    "2 Python threads, the innermost call of each first\n"
    "thread MainThread:\n"
    "  wait at torch/distributed/distributed_c10d.py:88\n"
    "  wrapper at /usr/lib/python3.11/contextlib.py:81\n"
    "  Trainer.step at /home/a/my run/train.py:57\n"
    "  <module> at /home/a/my run/train.py:99\n"
    "thread loader:\n"
    "  load at /home/a/data.py:3\n";

TEST(ScriptLine, IsTheInnermostCallThatIsNoPackages) {
  const auto line = script_line(3, kStacks);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->rank, 3U);
  EXPECT_EQ(line->function, "Trainer.step");
  EXPECT_EQ(line->file, "/home/a/my run/train.py");
  EXPECT_EQ(line->line, 57U);
}

TEST(ScriptLine, IsOfTheMainThreadOrNothing) {
  EXPECT_FALSE(
      script_line(0, "thread MainThread:\n  wait at torch/a.py:1\nthread loader:\n  load at /a.py:3\n"));
  EXPECT_FALSE(script_line(0, "none: RuntimeError: no frames"));
  EXPECT_FALSE(script_line(0, ""));
  EXPECT_FALSE(script_line(0, "thread MainThread:\n  <module> at <string>:1\n   at :\n"));
}

TEST(ScriptLine, EachSideHasOneThatCanAnswer) {
  analysis::Hang hang;
  hang.culprit = 2;
  hang.ranks.resize(4);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    hang.ranks[rank].rank = rank;
    if (rank != 2) hang.ranks[rank].waits_for = {2};
  }
  EXPECT_EQ(ranks_of_sides(hang), (std::vector<std::uint32_t>{2, 0}));
  hang.ranks[2].how = analysis::RankState::How::stopped;
  EXPECT_EQ(ranks_of_sides(hang), (std::vector<std::uint32_t>{0}));
  hang.difference.emplace().sides = {{{0, 1}, {}, "", 0}, {{3}, {}, "", 0}};
  EXPECT_EQ(ranks_of_sides(hang), (std::vector<std::uint32_t>{0, 3}));
}

TEST(ScriptLine, IsInTheDiagnosis) {
  const std::vector<ScriptLine> lines = {*script_line(3, kStacks)};
  EXPECT_NE(text_of(lines).find("  rank 3    /home/a/my run/train.py:57, in Trainer.step\n"),
            std::string::npos);
  EXPECT_EQ(text_of(std::vector<ScriptLine>{}), "");
  const auto json = nlohmann::json::parse(with_lines("{}", lines));
  EXPECT_EQ(
      json["lines"][0],
      nlohmann::json(
          {{"rank", 3}, {"function", "Trainer.step"}, {"file", "/home/a/my run/train.py"}, {"line", 57}}));
}

}  // namespace
}  // namespace shardscope::cli
