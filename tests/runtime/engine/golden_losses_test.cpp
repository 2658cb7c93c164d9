#include "tests/runtime/engine/golden_losses.h"

#include <gtest/gtest.h>

#include <fstream>

namespace shardscope::engine::testing::golden_losses_test {
namespace {

nlohmann::json golden() {
  std::ifstream file("tests/golden/losses.json");
  return nlohmann::json::parse(file);
}

TEST(GoldenLosses, EveryCaseAtEveryStage) {
  const std::vector<LossOutcome> outcomes = check_losses(golden());
  EXPECT_EQ(outcomes.size(), 16U);
  for (const LossOutcome& outcome : outcomes) {
    std::printf("%s: %s\n", outcome.title.c_str(), outcome.text.c_str());
    EXPECT_TRUE(outcome.agrees) << outcome.title << ": " << outcome.text;
  }
}

TEST(GoldenLosses, AWrongLossIsSeen) {
  nlohmann::json file = golden();
  const nlohmann::json one = file["cases"][0];
  file["cases"] = nlohmann::json::array({one});
  auto& loss = file["cases"][0]["stages"]["3"]["losses"][1][4][0];
  loss = loss.get<double>() * (1 + 1e-4);
  for (const LossOutcome& outcome : check_losses(file)) {
    EXPECT_EQ(outcome.agrees, !outcome.title.ends_with("stage 3")) << outcome.title;
  }
}

TEST(GoldenLosses, ADamagedCaseFailsAlone) {
  nlohmann::json file = golden();
  nlohmann::json one = file["cases"][0];
  one["stages"] = {{"0", one["stages"]["0"]}};
  file["cases"] = nlohmann::json::array({{{"model", "mlp"}}, one});
  const std::vector<LossOutcome> outcomes = check_losses(file);
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_FALSE(outcomes[0].agrees);
  EXPECT_EQ(outcomes[0].title, "case 0");
  EXPECT_TRUE(outcomes[1].agrees) << outcomes[1].text;
}

}  // namespace
}  // namespace shardscope::engine::testing::golden_losses_test
